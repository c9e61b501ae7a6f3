#include "client_core/memory/block_returner.h"

#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

Task<void> BlockReturner::ReturnFreeBlocks(bool all) {
  const std::vector<GlobalAddr> candidates = blocks_.TakeWhollyFree();
  for (const GlobalAddr start : candidates) {
    OwnBlock* block = blocks_.Find(start);
    if (block == nullptr) continue;
    block->queued_for_return = false;
    if (!block->is_wholly_free()) continue;
    const SizeClass size_class = block->size_class;
    // One wholly free block per class stays, so that a set and a delete in turn do not ask a memory
    // node each time; unless memory is short, or the block is a span of its own. One whose bitmap
    // is being read stays until that is over.
    const bool listed = !block->is_set_aside();
    const bool last = listed && blocks_.list(block->list).size() == 1;
    if ((!all && last && !size_class.is_span()) || block->sweeping) {
      blocks_.QueueForReturn(*block);
      continue;
    }
    blocks_.Remove(*block);
    ++returning_;
    co_await ReturnBlock(start, size_class);
    --returning_;
  }
}

Task<void> BlockReturner::ReturnBlock(GlobalAddr start, SizeClass size_class) {
  const NodeId primary = context_.view().Locate(start, 0).node;
  Status status;
  bool may_free = false;
  {
    const BlocksInTransit::Mark returning = transit_.MarkReturning(start);
    status = co_await TellBackups(start, size_class);
    may_free = status.ok() && context_.view().Locate(start, 0).node == primary;
    if (may_free) status = co_await TellReturned(primary, start, size_class);
  }
  if (Planted(Bug::kReturnForgotten)) co_return;
  if (!may_free || status.code() == StatusCode::kUnavailable) {
    transit_.ReturnLater({start, size_class, primary});
  } else if (!status.ok()) {
    transit_.ClaimLater(start, size_class);
  }
}

// Backups first: the primary hands the block out again as soon as it has it back.
Task<Status> BlockReturner::TellBackups(GlobalAddr start, SizeClass size_class) {
  const BlocksInTransit::Mark returning = transit_.MarkReturningToBackups(start);
  for (int replica = context_.view().LiveReplicas(start) - 1; replica > 0; --replica) {
    // The view may have changed since the last one.
    if (replica >= context_.view().LiveReplicas(start)) continue;
    const Status status =
        co_await TellReturned(context_.view().Locate(start, replica).node, start, size_class);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

Task<void> BlockReturner::ReturnAgain() {
  for (size_t left = transit_.return_count(); left > 0 && transit_.return_count() > 0; --left) {
    if (!context_.fabric.settled() || context_.quiesce.held()) co_return;
    const BlocksInTransit::Returning one = transit_.NextReturn();
    // Another primary may have been told, as a backup, and may have granted it since.
    if (context_.view().Locate(one.start, 0).node != one.primary) {
      transit_.ClaimLater(one.start, one.size_class);
      continue;
    }
    ++returning_;
    co_await ReturnBlock(one.start, one.size_class);
    --returning_;
  }
}

Task<Status> BlockReturner::TellReturned(NodeId node, GlobalAddr start, SizeClass size_class) {
  ControlRequest request;
  request.kind = ControlRequest::Kind::kFree;
  request.size_class = size_class;
  request.owner = context_.membership.id;
  request.block = start;
  const Result<ControlReply> reply = co_await context_.fabric.Control(node, request);
  if (!reply.ok()) co_return reply.status();
  if (reply.value().outcome == ControlReply::Outcome::kFull) {
    co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
  }
  // Whatever else it says, the block is not this worker's there.
  co_return Status::Ok();
}

}  // namespace onetrip
