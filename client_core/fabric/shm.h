// The shm backend: memory nodes whose memory is mapped into this process. Operations run inline, on
// the caller's CPU, without a system call; a worker that uses it never suspends on them. Only what
// it asks a node's process for takes time. An operation is believed only if its node is reachable
// after it, too: see release_when_lost in shm_segment.h.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_SHM_H_
#define ONETRIP_CLIENT_CORE_FABRIC_SHM_H_

#include <vector>

#include "client_core/coro/executor.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

class ShmFabric final : public Fabric {
 public:
  // `endpoints[i]` is node i, null if it is not reached; all outlive the fabric, or until
  // SetEndpoint replaces them. `executor` is the worker's; null: all endpoints are in this process.
  ShmFabric(const Clock& clock, const std::vector<MemoryEndpoint*>& endpoints,
            Executor* executor = nullptr);

  // Node `node` is reached by `endpoint` from now on: it has come back, or is new.
  void SetEndpoint(NodeId node, MemoryEndpoint* endpoint);

  Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) override;
  void SetEvicted(NodeId node, bool evicted) override;
  [[nodiscard]] bool Reaches(NodeId node) const override;
  void Prefetch(RemoteAddr at, uint32_t bytes) const override;
  void PrefetchForWrite(RemoteAddr at, uint32_t bytes) const override;

 protected:
  bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) override;

 private:
  struct Node {
    MemoryEndpoint* endpoint = nullptr;  // null: not reached yet
    std::byte* base = nullptr;
    uint64_t bytes = 0;  // 0 also while the node is evicted: nothing is within its bounds
    bool evicted = false;
  };
  Node& At(NodeId node);

  Executor* const executor_;
  std::vector<Node> nodes_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_SHM_H_
