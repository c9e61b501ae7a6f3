// SimNode: a memory node's process in a simulated world. It has the product's NodeSession, and
// does what that says as client_core/control/grpc_node_master_client.cc does: takes its place,
// serves, refuses the workers it is told to, and comes back with its memory after a crash.
#ifndef ONETRIP_TESTS_SIM_SIM_NODE_H_
#define ONETRIP_TESTS_SIM_SIM_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/control_link.h"

namespace onetrip {

class SimNode {
 public:
  struct Events {
    // It has its place, for the first time of all its lives.
    std::function<void(NodeId, const View&)> placed;
    // From now on nothing of `worker` takes effect on it.
    std::function<void(NodeId, WorkerId)> refuse;
    // Reports if any process can reach it.
    std::function<void(NodeId, bool reachable)> reachable;
    // It closes all channels: nothing that was sent on them and has failed takes effect any more.
    std::function<void(NodeId)> close;
    // It was sent a view, and takes the roles that it has there.
    std::function<void(NodeId, const View&)> viewed;
    // How much of its memory is used.
    std::function<NodeUsage(NodeId)> usage;
  };

  // The objects that it is given outlive it. `number`: for people and for its memory's name; the
  // master gives out another.
  SimNode(SimExecutor& world, SimMaster& master, const ControlSettings& settings, uint32_t number,
          uint64_t bytes, Events events);
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;
  ~SimNode();

  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] bool serving() const { return serving_; }
  [[nodiscard]] std::optional<NodeId> id() const { return id_; }

  // The process starts, the first time or after a crash. REQUIRES: it is down.
  void Start();
  // The process dies; its memory stays.
  void Crash();
  // It dies for good: Start() does nothing any more.
  void Lose();
  [[nodiscard]] bool up() const { return life_ != nullptr; }
  // Its connection to the master breaks.
  void BreakControl();
  void SetPaused(bool paused);

 private:
  // One process.
  class Life;

  SimExecutor& world_;
  SimMaster& master_;
  const ControlSettings& settings_;
  const uint32_t number_;
  const uint64_t bytes_;
  const Events events_;
  std::optional<NodeId> id_;
  bool serving_ = false;
  bool paused_ = false;
  bool lost_ = false;
  uint16_t port_ = 7000;                      // another one in every life
  std::vector<std::unique_ptr<Life>> lives_;  // events refer to all of them
  Life* life_ = nullptr;                      // null: it is down
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SIM_NODE_H_
