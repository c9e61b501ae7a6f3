#include "client_core/fabric/shm.h"

#include "client_core/fabric/memory_ops.h"

namespace onetrip {

ShmFabric::ShmFabric(const Clock& clock, const std::vector<MemoryEndpoint*>& endpoints)
    : Fabric(clock, /*completes_inline=*/true) {
  for (MemoryEndpoint* endpoint : endpoints) {
    nodes_.push_back({endpoint, endpoint->base(), endpoint->bytes()});
  }
}

void ShmFabric::SetEndpoint(NodeId node, MemoryEndpoint* endpoint) {
  CHECK(node.value < nodes_.size());
  nodes_[node.value] = {endpoint, endpoint->base(), endpoint->bytes()};
}

bool ShmFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> /*waiter*/) {
  for (FabricOp& op : round_trip->ops()) {
    CHECK(op.node.value < nodes_.size());
    const Node& node = nodes_[op.node.value];
    // Addresses may come out of remote memory: a bad one fails, it does not touch anything.
    op.ok = false;
    if (!node.endpoint->reachable() || !InBounds(op, node.bytes)) continue;
    ExecuteOp(op, node.base);
    // An acquire load, so what was read is older. What was written went to the node's memory if the
    // flag still stands: taking the mapping away interrupts every CPU that uses it, after that.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    op.ok = node.endpoint->reachable();
  }
  return true;
}

Task<Result<ControlReply>> ShmFabric::Control(NodeId node, ControlRequest request) {
  CHECK(node.value < nodes_.size());
  MemoryEndpoint* endpoint = nodes_[node.value].endpoint;
  if (!endpoint->reachable()) {
    co_return Status(StatusCode::kUnavailable, "the memory node is lost");
  }
  const ControlReply reply = endpoint->Handle(request);
  if (!endpoint->reachable()) {
    co_return Status(StatusCode::kUnknownOutcome, "the memory node was lost");
  }
  co_return reply;
}

void ShmFabric::Prefetch(RemoteAddr at, uint32_t bytes) const {
  const Node& node = nodes_[at.node.value];
  if (at.offset >= node.bytes) return;
  for (uint64_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(node.base + at.offset + line);
}

}  // namespace onetrip
