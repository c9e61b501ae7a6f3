#include "client_core/memory/grants.h"

#include <utility>
#include <vector>

#include "client_core/fabric/fabric.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// Regions that are asked for a block of registers near buffers.
constexpr uint32_t kAskedBeside = 8;

}  // namespace

// A block for buffers has to lie on their registers' nodes. One that is granted elsewhere serves
// the registers there; when memory nodes grant nothing but that, they are asked region by region.
Task<Status> Grants::Grant(Want want) {
  const uint16_t nodes = context_.view().node_count;
  Status failure(StatusCode::kOutOfMemory, "no memory node has free memory");
  bool elsewhere = false;
  for (int i = 0; i < nodes; ++i) {
    const NodeId node = requests_.NextNode(nodes);
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

Task<Status> Grants::GrantBeside(SizeClass size_class, SizeClass buffer_class, GlobalAddr near) {
  constexpr Status kNowhere(StatusCode::kOutOfMemory, "no memory node has free memory");
  if (!blocks_.has_elsewhere()) co_return kNowhere;
  // A block that it is granted elsewhere meanwhile stays.
  const Status granted = co_await Grant({.size_class = buffer_class, .near = near});
  if (granted.ok()) co_return granted;
  (void)blocks_.BufferList(buffer_class, near);  // a new view makes lists anew, once
  for (const OwnBlock* const block : blocks_.list(size_class.index())) {
    if (blocks_.HasBuffers(buffer_class, block->start, OwnBlocks::kBuffersOfAWrite)) {
      co_return Status::Ok();
    }
  }
  const Want want = {.size_class = size_class, .near = GlobalAddr()};
  uint32_t asked = 0;
  for (uint32_t region = 0; region < context_.view().regions.size(); ++region) {
    const GlobalAddr at(region, kBlockBytes);
    if (context_.view().IsLeaving(at) ||
        !blocks_.HasBuffers(buffer_class, at, OwnBlocks::kBuffersOfAWrite)) {
      continue;
    }
    if (asked++ == kAskedBeside || context_.quiesce.held()) break;
    const Result<GlobalAddr> block = co_await GrantBy(context_.view().Locate(at, 0).node, want, at);
    if (block.ok() && blocks_.IsListedFor(block.value(), want)) co_return Status::Ok();
  }
  co_return kNowhere;
}

Task<Result<GlobalAddr>> Grants::GrantBy(NodeId node, Want want, GlobalAddr within) {
  const SizeClass size_class = want.size_class;
  // A block goes back when each replica answers: not block after block until then.
  constexpr size_t kReturnsWaitingMax = 4;
  if (transit_.ReturnsWaiting(node, size_class) >= kReturnsWaitingMax) {
    co_return Status(StatusCode::kUnavailable, "a replica has yet to take blocks back");
  }
  ControlRequest request;
  request.kind =
      want.may_use_reserve ? ControlRequest::Kind::kAllocReserve : ControlRequest::Kind::kAlloc;
  request.size_class = size_class;
  request.owner = context_.membership.id;
  request.block = within;
  const Result<ControlReply> reply = co_await requests_.AskForBlock(node, request);
  if (!reply.ok()) co_return reply.status();
  const GlobalAddr start = reply.value().block;
  const uint32_t list =
      want.near.is_null() ? blocks_.ListFor(want) : blocks_.BufferList(size_class, start);
  if (reply.value().outcome == ControlReply::Outcome::kOpened) {
    const Result<GlobalAddr> adopted = co_await AdoptOpened(start, size_class, list);
    NoteTook(start);
    co_return adopted;
  }
  if (!transit_.HasComeBack(start)) {
    co_await returner_.ReturnBlock(start, size_class);
    co_return Status(StatusCode::kUnavailable, "a memory node has yet to hear of an open block");
  }
  Status granted;
  {
    const BlocksInTransit::Mark taken = transit_.MarkTaken(start);
    granted = co_await GrantOnBackups(start, size_class);
  }
  if (!granted.ok()) {
    // A block that a replica takes for another worker's, since it was away when that one gave it
    // back, would only be granted again: it stays this worker's and unused until a repair.
    const bool disputed = granted.code() == StatusCode::kCorrupt;
    if (!disputed) co_await returner_.ReturnBlock(start, size_class);
    co_return disputed ? Status(StatusCode::kUnavailable, granted.message()) : granted;
  }
  blocks_.Adopt(start, size_class, list);
  co_return start;
}

Task<Status> Grants::GrantOnBackups(GlobalAddr block, SizeClass size_class) {
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
  co_return requests_.HaveAskedAll(block, asked);
}

Task<bool> Grants::AcquireSparse() {
  const uint16_t nodes = context_.view().node_count;
  for (int i = 0; i < nodes; ++i) {
    const NodeId node = requests_.NextNode(nodes);
    if (context_.view().IsOut(node)) continue;
    ControlRequest request;
    request.kind = ControlRequest::Kind::kAllocSparse;
    request.size_class = SizeClass(0);
    request.owner = context_.membership.id;
    const Result<ControlReply> reply = co_await requests_.AskForBlock(node, request);
    if (!reply.ok() || reply.value().outcome != ControlReply::Outcome::kOpened) continue;
    const SizeClass size_class = reply.value().size_class;
    const Result<GlobalAddr> adopted =
        co_await AdoptOpened(reply.value().block, size_class, size_class.index());
    NoteTook(reply.value().block);
    if (adopted.ok()) co_return true;
  }
  co_return false;
}

Task<Result<bool>> Grants::AcquireOpenIn(uint32_t region) {
  constexpr uint32_t kAcquiredAtOnce = 16;
  const GlobalAddr within(region, kBlockBytes);
  for (uint32_t acquired = 0; acquired < kAcquiredAtOnce && !context_.quiesce.held(); ++acquired) {
    if (!context_.view().Contains(within) || context_.view().IsLeaving(within)) co_return false;
    const NodeId node = context_.view().Locate(within, 0).node;
    const Result<GlobalAddr> start = co_await AcquireAnyOpen(node, within);
    if (start.status().code() == StatusCode::kOutOfMemory) co_return false;
    if (!start.ok()) co_return start.status();
    if (OwnBlock* const block = blocks_.Find(start.value()); block != nullptr) {
      block->looked_at = true;
    }
  }
  co_return true;
}

Task<bool> Grants::AcquireLeaving() {
  constexpr uint32_t kAcquiredAtOnce = 4;
  const uint16_t nodes = context_.view().node_count;
  uint32_t acquired = 0;
  for (uint16_t i = 0; i < nodes; ++i) {
    const NodeId node{i};
    while (!context_.view().IsOut(node)) {
      if (acquired == kAcquiredAtOnce || context_.quiesce.held()) co_return true;
      const Result<GlobalAddr> start = co_await AcquireAnyOpen(node, GlobalAddr());
      if (!start.ok()) break;
      ++acquired;
    }
  }
  co_return false;
}

Task<Result<GlobalAddr>> Grants::AcquireAnyOpen(NodeId node, GlobalAddr within) {
  ControlRequest request;
  request.kind = ControlRequest::Kind::kAllocOpen;
  request.size_class = SizeClass(0);
  request.owner = context_.membership.id;
  request.block = within;
  const Result<ControlReply> reply = co_await requests_.AskForBlock(node, request);
  if (!reply.ok()) co_return reply.status();
  if (reply.value().outcome != ControlReply::Outcome::kOpened) {
    co_return Status(StatusCode::kCorrupt, "a memory node gave a block that is not open");
  }
  const SizeClass size_class = reply.value().size_class;
  co_return co_await AdoptOpened(reply.value().block, size_class, size_class.index());
}

Task<Result<GlobalAddr>> Grants::AdoptOpened(GlobalAddr start, SizeClass size_class,
                                             uint32_t list) {
  // This worker itself has just opened it, and tells the nodes again: what it gets there would be
  // opened under its hands.
  if (!transit_.HasComeBack(start)) {
    // If the node had heard, it has to hear again.
    transit_.OpenLater({start, size_class, /*asked_primary=*/true});
    co_return Status(StatusCode::kUnavailable, "a memory node has yet to hear of an open block");
  }
  Status acquired;
  {
    const BlocksInTransit::Mark taken = transit_.MarkTaken(start);
    acquired = co_await AcquireOnBackups(start, size_class);
  }
  if (!acquired.ok()) {
    // If this worker opened one again that a replica takes for another worker's, it would be given
    // it again.
    const bool disputed = acquired.code() == StatusCode::kCorrupt;
    disputed ? transit_.ClaimLater(start, size_class) : transit_.OpenLater({start, size_class});
    co_return disputed ? Status(StatusCode::kUnavailable, acquired.message()) : acquired;
  }
  const std::vector<bool> used(ObjectsPerBlock(size_class, start.block()), true);
  OwnBlock& block = blocks_.Adopt(start, size_class, list, &used);
  metrics_.blocks_acquired.Add();
  if (block.is_buffers()) block.stale_lock = used;
  const Status swept = co_await sweeper_.Sweep(start);
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_return swept.ok() ? Result<GlobalAddr>(start) : swept;
}

Task<Status> Grants::AcquireOnBackups(GlobalAddr start, SizeClass size_class) {
  const RegionPlacement asked = context_.view().regions[start.region()];
  for (int replica = 1; replica < context_.view().LiveReplicas(start); ++replica) {
    const Result<ControlReply> reply = co_await requests_.AskToTakeOver(
        start, size_class, replica, kNobody, context_.membership.id);
    if (!reply.ok()) co_return reply.status();
    if (reply.value().outcome == ControlReply::Outcome::kFull) {
      co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
    }
    if (reply.value().outcome != ControlReply::Outcome::kDone) {
      co_return Status(StatusCode::kCorrupt, "a replica has yet to hear of an open block");
    }
  }
  co_return requests_.HaveAskedAll(start, asked);
}

}  // namespace onetrip
