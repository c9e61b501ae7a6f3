// Blocks from memory nodes (FUSEE 4.4).
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

// For so long others hear that a memory node has said that it is tight.
constexpr uint64_t kTightNs = 1'000'000'000;

}  // namespace

// A block for buffers has to lie on their registers' nodes. What is granted elsewhere serves the
// registers there; when memory nodes grant nothing but that, they are asked region by region.
Task<Status> Allocator::GrantBlock(Want want) {
  const uint16_t nodes = context_.view().node_count;
  Status failure(StatusCode::kOutOfMemory, "no memory node has free memory");
  bool elsewhere = false;
  for (int i = 0; i < nodes; ++i) {
    const NodeId node{static_cast<uint16_t>(next_grant_node_++ % nodes)};
    if (context_.view().IsOut(node)) continue;
    Result<GlobalAddr> granted = co_await GrantBy(node, want, GlobalAddr());
    if (!granted.ok() && granted.status().code() == StatusCode::kCorrupt) {
      co_return granted.status();
    }
    if (!granted.ok()) {
      if (granted.status().code() != StatusCode::kOutOfMemory) failure = granted.status();
      continue;
    }
    if (blocks_.IsListedFor(granted.value(), want)) co_return Status::Ok();
    elsewhere = true;
  }
  const auto regions = static_cast<uint32_t>(context_.view().regions.size());
  for (uint32_t i = 0; elsewhere && i < regions; ++i) {
    const uint32_t region = (want.near.region() + i) % regions;
    // Any address there but the first of all, which is null.
    const GlobalAddr at(region, kBlockBytes);
    if (blocks_.BufferList(want.size_class, at) != blocks_.ListFor(want)) continue;
    const Result<GlobalAddr> granted =
        co_await GrantBy(context_.view().Locate(at, 0).node, want, at);
    if (granted.ok() && blocks_.IsListedFor(granted.value(), want)) co_return Status::Ok();
    if (!granted.ok() && granted.status().code() != StatusCode::kOutOfMemory) {
      failure = granted.status();
    }
  }
  co_return failure;
}

Task<Result<ControlReply>> Allocator::AskForBlock(NodeId node, ControlRequest request) {
  while (std::find(not_asked_.begin(), not_asked_.end(), node) != not_asked_.end() ||
         context_.executor.NowNs() < not_asking_until_ns_) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
  }
  ++asking_;
  Result<ControlReply> reply = co_await context_.fabric.Control(node, request);
  --asking_;
  if (reply.status().code() == StatusCode::kUnknownOutcome) has_unheard_grant_ = true;
  if (!reply.ok()) co_return reply.status();
  if (reply.value().is_tight) tight_until_ns_ = context_.executor.NowNs() + kTightNs;
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
    returning_.push_back(start);
    request.kind = opened ? ControlRequest::Kind::kTakeOver : ControlRequest::Kind::kFree;
    request.block = start;
    if (opened) {
      request.size_class = reply.value().size_class;
      request.from = context_.membership.id;
      request.owner = kNobody;
    }
    const Result<ControlReply> told = co_await context_.fabric.Control(node, request);
    returning_.erase(std::find(returning_.begin(), returning_.end(), start));
    if (!told.ok()) ClaimLater(start, request.size_class);
    co_return Status(StatusCode::kUnavailable, "a memory node and this worker know different maps");
  }
  co_return reply;
}

Task<Result<GlobalAddr>> Allocator::GrantBy(NodeId node, Want want, GlobalAddr within) {
  const SizeClass size_class = want.size_class;
  // What a replica does not answer for goes back when it does: not block after block until then.
  constexpr std::ptrdiff_t kReturnedAtOnce = 4;
  const auto waits = std::count_if(to_return_.begin(), to_return_.end(), [&](const Returning& one) {
    return one.primary == node && one.size_class == size_class;
  });
  if (waits >= kReturnedAtOnce) {
    co_return Status(StatusCode::kUnavailable, "a replica has yet to take blocks back");
  }
  ControlRequest request;
  request.kind =
      want.may_use_reserve ? ControlRequest::Kind::kAllocReserve : ControlRequest::Kind::kAlloc;
  request.size_class = size_class;
  request.owner = context_.membership.id;
  request.block = within;
  const Result<ControlReply> reply = co_await AskForBlock(node, request);
  if (!reply.ok()) co_return reply.status();
  const GlobalAddr start = reply.value().block;
  const uint32_t list =
      want.near.is_null() ? blocks_.ListFor(want) : blocks_.BufferList(size_class, start);
  if (reply.value().outcome == ControlReply::Outcome::kOpened) {
    const Result<GlobalAddr> adopted = co_await AdoptOpened(start, size_class, list);
    trade_.took = trade_.took || blocks_.Find(start) != nullptr;
    co_return adopted;
  }
  if (!HasComeBack(start)) {
    co_await ReturnBlock(start, size_class);
    co_return Status(StatusCode::kUnavailable, "a memory node has yet to hear of an open block");
  }
  taking_.push_back(start);
  const Status granted = co_await GrantOnBackups(start, size_class);
  taking_.erase(std::find(taking_.begin(), taking_.end(), start));
  if (!granted.ok()) {
    // One that a replica takes for somebody else's, since it was away when that was given back,
    // would only be granted again: it stays ours and unused until a repair.
    const bool disputed = granted.code() == StatusCode::kCorrupt;
    if (!disputed) co_await ReturnBlock(start, size_class);
    co_return disputed ? Status(StatusCode::kUnavailable, granted.message()) : granted;
  }
  blocks_.Adopt(start, size_class, list);
  co_return start;
}

Task<Status> Allocator::GrantOnBackups(GlobalAddr block, SizeClass size_class) {
  const RegionPlacement asked = context_.view().regions[block.region()];
  for (int replica = 1; replica < context_.view().LiveReplicas(block); ++replica) {
    ControlRequest request;
    request.kind = ControlRequest::Kind::kGrant;
    request.size_class = size_class;
    request.owner = context_.membership.id;
    request.block = block;
    const NodeId node = context_.view().Locate(block, replica).node;
    const Result<ControlReply> reply = co_await context_.fabric.Control(node, request);
    if (!reply.ok()) co_return reply.status();
    if (reply.value().outcome == ControlReply::Outcome::kFull) {
      co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
    }
    if (reply.value().outcome != ControlReply::Outcome::kDone) {
      co_return Status(StatusCode::kCorrupt, "replicas disagree about who owns a block");
    }
  }
  co_return HaveAskedAll(block, asked);
}

}  // namespace onetrip
