#include "client_core/memory/node_requests.h"

#include "client_core/base/planted_bug.h"

namespace onetrip {

Task<Result<ControlReply>> NodeRequests::AskForBlock(NodeId node, ControlRequest request) {
  while (std::find(not_asked_.begin(), not_asked_.end(), node) != not_asked_.end() ||
         context_.executor.NowNs() < not_asking_until_ns_) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
  }
  ++asking_;
  Result<ControlReply> reply = co_await context_.fabric.Control(node, request);
  --asking_;
  if (reply.status().code() == StatusCode::kUnknownOutcome) has_unheard_grant_ = true;
  if (!reply.ok()) co_return reply.status();
  if (reply.value().is_tight) shortage_.NoteTight();
  if (reply.value().outcome == ControlReply::Outcome::kDone && !reply.value().is_tight) {
    shortage_.NotePlenty();
  }
  if (reply.value().outcome == ControlReply::Outcome::kFull) {
    co_return Status(StatusCode::kOutOfMemory, "the memory node has no free memory");
  }
  const bool opened = reply.value().outcome == ControlReply::Outcome::kOpened;
  const GlobalAddr start = reply.value().block;
  if (opened && !reply.value().size_class.is_valid()) {
    co_return Status(StatusCode::kCorrupt, "a memory node opened a block of no size class");
  }
  // The node has not heard yet that the region has moved, and what it says of that means nothing;
  // or it has, before this worker, or of a region that was added, and would keep the block for it.
  // Or one of the two has not heard that the region leaves.
  const bool leaves = request.kind == ControlRequest::Kind::kAllocOpen && request.block.is_null();
  if (!context_.view().Contains(start) || context_.view().Locate(start, 0).node != node ||
      context_.view().IsLeaving(start) != leaves) {
    const BlocksInTransit::Mark returning = transit_.MarkReturning(start);
    request.kind = opened ? ControlRequest::Kind::kTakeOver : ControlRequest::Kind::kFree;
    request.block = start;
    if (opened) {
      request.size_class = reply.value().size_class;
      request.from = context_.membership.id;
      request.owner = kNobody;
    }
    const Result<ControlReply> told = co_await context_.fabric.Control(node, request);
    if (!told.ok()) transit_.ClaimLater(start, request.size_class);
    co_return Status(StatusCode::kUnavailable, "a memory node and this worker know different maps");
  }
  co_return reply;
}

void NodeRequests::PauseAsking() {
  constexpr uint64_t kTicks = 4;
  constexpr uint64_t kRestTicks = 40;
  const uint64_t tick_ns = context_.options.epoch_tick_us * 1000;
  const uint64_t now_ns = context_.executor.NowNs();
  if (now_ns < not_asking_until_ns_ + kRestTicks * tick_ns) return;
  not_asking_until_ns_ = now_ns + kTicks * tick_ns;
}

Task<Result<ControlReply>> NodeRequests::AskToTakeOver(GlobalAddr start, SizeClass size_class,
                                                       int replica, WorkerId from, WorkerId to) {
  ControlRequest request;
  request.kind = ControlRequest::Kind::kTakeOver;
  request.size_class = size_class;
  request.owner = to;
  request.block = start;
  request.from = from;
  co_return co_await context_.fabric.Control(context_.view().Locate(start, replica).node, request);
}

Status NodeRequests::HaveAskedAll(GlobalAddr block, const RegionPlacement& asked) const {
  const View& view = context_.view();
  if (Planted(Bug::kReplicaNotAsked)) return Status::Ok();
  if (view.Contains(block) && view.regions[block.region()] == asked) return Status::Ok();
  return Status(StatusCode::kUnavailable, "a block's replicas have changed while it was granted");
}

}  // namespace onetrip
