// Blocks on their way back to their memory nodes, and what becomes of a block when a node did not
// answer amid that, or amid a take-over (PROTOCOLS, "Open blocks").
#include <algorithm>
#include <cstddef>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {

Task<Status> Allocator::TellReturned(NodeId node, GlobalAddr start, SizeClass size_class) {
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

Task<void> Allocator::ReturnBlock(GlobalAddr start, SizeClass size_class) {
  const NodeId primary = context_.view().Locate(start, 0).node;
  returning_.push_back(start);
  returning_to_backups_.push_back(start);
  // Backups first: the primary hands the block out again as soon as it has it back.
  Status status;
  for (int replica = context_.view().LiveReplicas(start) - 1; replica > 0; --replica) {
    // The view may have changed since the last one.
    if (replica >= context_.view().LiveReplicas(start)) continue;
    status = co_await TellReturned(context_.view().Locate(start, replica).node, start, size_class);
    if (!status.ok()) break;
  }
  returning_to_backups_.erase(std::ranges::find(returning_to_backups_, start));
  const bool may_free = status.ok() && context_.view().Locate(start, 0).node == primary;
  if (may_free) status = co_await TellReturned(primary, start, size_class);
  returning_.erase(std::ranges::find(returning_, start));
  if (Planted(Bug::kReturnForgotten)) co_return;
  if (!may_free || status.code() == StatusCode::kUnavailable) {
    to_return_.push_back({start, size_class, primary});
  } else if (!status.ok()) {
    ClaimLater(start, size_class);
  }
}

Task<void> Allocator::ReturnAgain() {
  for (size_t left = to_return_.size(); left > 0 && !to_return_.empty(); --left) {
    if (!context_.fabric.settled() || context_.hold.held()) co_return;
    const Returning one = to_return_.front();
    to_return_.pop_front();
    // Another primary may have been told, as a backup, and may have granted it since.
    if (context_.view().Locate(one.start, 0).node != one.primary) {
      ClaimLater(one.start, one.size_class);
      continue;
    }
    ++gathering_;
    co_await ReturnBlock(one.start, one.size_class);
    --gathering_;
  }
}

Task<void> Allocator::ReturnFreeBlocks(bool all) {
  for (const GlobalAddr start : blocks_.TakeWhollyFree()) {
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
    ++gathering_;
    co_await ReturnBlock(start, size_class);
    --gathering_;
  }
}

bool Allocator::HasComeBack(GlobalAddr start) {
  if (Planted(Bug::kOpenedTwice)) return true;
  std::erase_if(opening_, [start](const Opening& one) { return one.start == start; });
  std::erase_if(to_return_, [start](const Returning& one) { return one.start == start; });
  return !IsOpening(start) && !IsAmong(returning_to_backups_, start);
}

void Allocator::ClaimLater(GlobalAddr start, SizeClass size_class) {
  if (Planted(Bug::kHalfTakenForgotten)) return;
  to_claim_.push_back({start, size_class});
}

Task<Result<bool>> Allocator::ClaimGranted(Operation& operation, uint32_t first_region) {
  OrphanBlocks own(context_);
  const auto is_own = [self = context_.membership.id](BlockEntry granted) {
    return granted.owner() == self;
  };
  const Status status = co_await own.Find(operation, is_own, first_region);
  if (!status.ok()) co_return status;
  bool all = true;
  for (const auto& named : own.blocks()) {
    const GlobalAddr start = named.second.start;
    if (blocks_.Find(start) != nullptr) continue;
    // It is being told that it is free, or open: that may come to nothing, or to another one's.
    if (IsGoing(start)) all = false;
    if (IsGoing(start)) continue;
    // It may have been granted anew, of another class.
    std::erase_if(to_claim_, [start](const Granted& one) { return one.start == start; });
    ClaimLater(start, named.second.size_class);
  }
  co_return all;
}

Task<void> Allocator::ClaimUnheard(const ViewHold::Presence& presence) {
  constexpr uint64_t kRestTicks = 20;  // a walk over all block tables
  // What was not heard may yet be granted.
  if (!context_.fabric.settled() || context_.hold.held()) co_return;
  if (context_.executor.NowNs() < next_claim_walk_ns_) co_return;
  next_claim_walk_ns_ =
      context_.executor.NowNs() + kRestTicks * context_.options.epoch_tick_us * 1000;
  has_unheard_grant_ = false;
  Operation operation;
  operation.presence = presence;
  const Result<bool> all = co_await ClaimGranted(operation, /*first_region=*/0);
  if (!all.ok() || !all.value()) has_unheard_grant_ = true;
}

Task<void> Allocator::ClaimAgain() {
  for (size_t left = to_claim_.size(); left > 0 && !to_claim_.empty(); --left) {
    if (context_.hold.held()) co_return;
    const Granted one = to_claim_.front();
    to_claim_.pop_front();
    co_await Claim(one.start, one.size_class);
  }
}

bool Allocator::IsGoing(GlobalAddr start) const {
  const bool waits =
      std::ranges::any_of(to_return_, [start](const Returning& one) { return one.start == start; });
  return waits || IsAmong(returning_, start) || IsOpening(start);
}

void Allocator::PauseAskingInTime() {
  constexpr uint32_t kInVain = 8;
  constexpr uint64_t kTicks = 4;
  constexpr uint64_t kRestTicks = 40;
  if (++claims_waited_ < kInVain) return;
  const uint64_t tick_ns = context_.options.epoch_tick_us * 1000;
  const uint64_t now_ns = context_.executor.NowNs();
  if (now_ns < not_asking_until_ns_ + kRestTicks * tick_ns) return;
  not_asking_until_ns_ = now_ns + kTicks * tick_ns;
}

Task<void> Allocator::Claim(GlobalAddr start, SizeClass size_class) {
  if (!context_.view().Contains(start)) co_return;
  if (blocks_.Find(start) != nullptr || IsAmong(taking_, start) || IsGoing(start)) co_return;
  // What has failed may yet arrive, and what is asked for now may be this.
  if (!context_.fabric.settled() || asking_ != 0) {
    if (context_.fabric.settled()) PauseAskingInTime();
    co_return to_claim_.push_back({start, size_class});
  }
  claims_waited_ = 0;
  const NotAsked not_asked(*this, context_.view().Locate(start, 0).node);
  // Who is the primary by now, and has not heard of that, would decide as a backup does.
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const GlobalAddr at(start.region(), offsetof(RegionHeader, blocks) + start.block() * 8);
  const uint64_t* bits = round_trip->ReadWord(context_.view().Locate(at, 0));
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return to_claim_.push_back({start, size_class});
  const BlockEntry own(BlockEntry::Use::kOwned, context_.membership.id, size_class);
  if (*bits != own.bits()) co_return;
  const std::vector<bool> used(ObjectsPerBlock(size_class, start.block()), true);
  std::vector<bool> freed;
  (void)co_await TakeOver(start, size_class, context_.membership.id, used, &freed);
  may_lack_ = may_lack_ || blocks_.Find(start) != nullptr;
}

}  // namespace onetrip
