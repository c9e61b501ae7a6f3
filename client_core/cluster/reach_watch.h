// ReachWatch: looks now and then whether a worker reaches the memory nodes of its view, and tells
// when one has not been reached for a while, and when it is reached again. On the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_REACH_WATCH_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_REACH_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/coro/executor.h"
#include "client_core/layout/types.h"

namespace onetrip {

class ReachWatch {
 public:
  // Looks in a row, not time: a process that stood still must not take that for a node's silence.
  static constexpr uint32_t kLooksToLose = 3;
  static constexpr uint64_t kLookNs = 400'000'000;

  struct Calls {
    std::function<std::shared_ptr<const View>()> view;  // the newest
    std::function<bool(NodeId)> answers;                // true: it answers on an open channel
    std::function<void(NodeId, bool reached)> tell;
  };

  // Looks every `look_ns` from now on; 0: never. `executor` outlives it.
  ReachWatch(Executor& executor, uint64_t look_ns, Calls calls);
  ReachWatch(const ReachWatch&) = delete;
  ReachWatch& operator=(const ReachWatch&) = delete;
  ~ReachWatch();

  // Nodes that are out are not looked at, and reached as far as is told when they come in.
  void Look();

 private:
  struct Node {
    uint32_t lost_looks = 0;
    bool lost = false;  // and told
  };
  class LookTimer final : public Timer {
   public:
    explicit LookTimer(ReachWatch& watch) : watch_(watch) {}
    void Fire() override;

   private:
    ReachWatch& watch_;
  };
  void Arm();

  Executor& executor_;
  const uint64_t look_ns_;
  const Calls calls_;
  std::vector<Node> nodes_;
  LookTimer timer_{*this};
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_REACH_WATCH_H_
