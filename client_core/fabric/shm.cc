#include "client_core/fabric/shm.h"

#include <algorithm>
#include <memory>
#include <span>

#include "client_core/base/check.h"
#include "client_core/fabric/memory_ops.h"

namespace onetrip {
namespace {

constexpr uint64_t kLineBytes = 64;
// How long a worker sleeps before it looks for an answer again: a node of this host takes tens of
// microseconds, one that hangs is given up after a while.
constexpr uint64_t kLookNsMin = 10'000;
constexpr uint64_t kLookNsMax = 1'000'000;

// From the line that holds the first byte to the one that holds the last.
template <int kForWrite>
void PrefetchLines(const std::byte* from, uint32_t bytes) {
  const std::byte* end = from + bytes;
  from -= reinterpret_cast<uintptr_t>(from) % kLineBytes;
  for (; from < end; from += kLineBytes) __builtin_prefetch(from, kForWrite);
}

}  // namespace

ShmFabric::ShmFabric(const Clock& clock, const std::vector<MemoryEndpoint*>& endpoints,
                     Executor* executor)
    : Fabric(clock, /*completes_inline=*/true), executor_(executor) {
  for (size_t i = 0; i < endpoints.size(); ++i) {
    if (endpoints[i] != nullptr) SetEndpoint(NodeId{static_cast<uint16_t>(i)}, endpoints[i]);
  }
}

ShmFabric::Node& ShmFabric::At(NodeId node) {
  if (nodes_.size() <= node.value) nodes_.resize(node.value + size_t{1});
  return nodes_[node.value];
}

void ShmFabric::SetEndpoint(NodeId node, MemoryEndpoint* endpoint) {
  Node& known = At(node);
  known.endpoint = endpoint;
  known.base = endpoint->base();
  known.bytes = known.evicted ? 0 : endpoint->bytes();
}

// An operation takes no time here: none is under way.
void ShmFabric::SetEvicted(NodeId node, bool evicted) {
  Node& known = At(node);
  known.evicted = evicted;
  known.bytes = evicted || known.endpoint == nullptr ? 0 : known.endpoint->bytes();
}

bool ShmFabric::Reaches(NodeId node) const {
  if (node.value >= nodes_.size()) return false;
  const Node& known = nodes_[node.value];
  return !known.evicted && known.endpoint != nullptr && known.endpoint->reachable();
}

bool ShmFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> /*waiter*/) {
  const std::span<const Node> nodes(nodes_);
  for (FabricOp& op : round_trip->ops()) {
    op.ok = false;
    if (op.node.value >= nodes.size()) continue;
    const Node& node = nodes[op.node.value];
    // Addresses may come out of remote memory: a bad one fails, it does not touch anything.
    if (!InBounds(op, node.bytes) || !node.endpoint->reachable()) continue;
    ExecuteOp(op, node.base);
    // An acquire load, so what was read is older. What was written went to the node's memory if the
    // flag still stands: taking the mapping away interrupts every CPU that uses it, after that.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    op.ok = node.endpoint->reachable();
  }
  return true;
}

Task<Result<ControlReply>> ShmFabric::Control(NodeId node, ControlRequest request) {
  const Node& known = At(node);
  if (known.evicted || known.endpoint == nullptr || !known.endpoint->reachable()) {
    co_return Status(StatusCode::kUnavailable, "the memory node is lost");
  }
  const std::shared_ptr<const PendingControl> pending = known.endpoint->Start(request);
  // The endpoint ends every request within its time.
  for (uint64_t look_ns = kLookNsMin; !pending->done.load(std::memory_order_acquire);
       look_ns = std::min(2 * look_ns, kLookNsMax)) {
    CHECK(executor_ != nullptr);
    co_await executor_->SleepFor(look_ns);
    if (At(node).evicted) co_return Status(StatusCode::kUnknownOutcome, "the memory node was left");
  }
  if (!pending->reply.has_value()) {
    co_return Status(StatusCode::kUnknownOutcome, "the memory node was lost");
  }
  co_return *pending->reply;
}

void ShmFabric::Prefetch(RemoteAddr at, uint32_t bytes) const {
  if (at.node.value >= nodes_.size()) return;
  const Node& node = nodes_[at.node.value];
  if (at.offset < node.bytes) PrefetchLines<0>(node.base + at.offset, bytes);
}

void ShmFabric::PrefetchForWrite(RemoteAddr at, uint32_t bytes) const {
  if (at.node.value >= nodes_.size()) return;
  const Node& node = nodes_[at.node.value];
  if (at.offset < node.bytes) PrefetchLines<1>(node.base + at.offset, bytes);
}

}  // namespace onetrip
