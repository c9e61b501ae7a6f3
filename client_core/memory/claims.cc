#include "client_core/memory/claims.h"

#include <array>
#include <cstddef>

#include "client_core/base/planted_bug.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {

Task<Status> Claims::TakeOver(GlobalAddr start, SizeClass size_class, WorkerId from,
                              const std::vector<bool>& named, std::vector<bool>* freed) {
  constexpr Status kLater(StatusCode::kUnavailable, "this worker is still giving the block up");
  if (transit_.IsReturning(start) || transit_.IsOpeningNow(start)) co_return kLater;
  // Whoever has had it since need not have given it back.
  if (transit_.DropReturn(start)) transit_.ClaimLater(start, size_class);
  const BlocksInTransit::Mark taken = transit_.MarkTaken(start);
  if (!context_.view().Contains(start)) {
    co_return Status(StatusCode::kUnavailable, "the block's region has been given up");
  }
  const Status asked = co_await TakeOverOnReplicas(start, size_class, from);
  if (!asked.ok()) co_return asked;
  std::vector<bool> used = named;
  const Status read = co_await AddFreed(start, freed, &used);
  if (!read.ok()) {
    transit_.ClaimLater(start, size_class);
    co_return read;
  }
  if (context_.memory_observer != nullptr) {
    for (uint32_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      context_.memory_observer->Reclaimed(ObjectAddr(start, size_class, static_cast<uint16_t>(i)),
                                          size_class);
    }
  }
  // Nothing that others have had since is told again.
  transit_.DropOpening(start);
  blocks_.Adopt(start, size_class, size_class.index(), &used);
  co_return co_await sweeper_.Sweep(start);
}

// The primary first: one of two who try gets it. What may be this worker's then is claimed later.
Task<Status> Claims::TakeOverOnReplicas(GlobalAddr start, SizeClass size_class, WorkerId from) {
  const RegionPlacement asked = context_.view().regions[start.region()];
  for (int replica = 0; replica < context_.view().LiveReplicas(start); ++replica) {
    const Result<ControlReply> reply =
        co_await requests_.AskToTakeOver(start, size_class, replica, from, context_.membership.id);
    if (!reply.ok()) {
      transit_.ClaimLater(start, size_class);
      co_return reply.status();
    }
    if (reply.value().outcome == ControlReply::Outcome::kFull) {
      if (replica > 0 || from == context_.membership.id) transit_.ClaimLater(start, size_class);
      co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
    }
    if (reply.value().outcome != ControlReply::Outcome::kDone) {
      co_return Status(StatusCode::kCorrupt, "replicas disagree about who owns a block");
    }
  }
  const Status all = requests_.HaveAskedAll(start, asked);
  if (!all.ok()) transit_.ClaimLater(start, size_class);
  co_return all;
}

// Adds what the bitmap shows, on any replica, to what is used: it comes back by a sweep, like
// everything that others free.
Task<Status> Claims::AddFreed(GlobalAddr start, std::vector<bool>* freed, std::vector<bool>* used) {
  const View& view = context_.view();
  const GlobalAddr bitmap = start + BitmapOffset(start.block());
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::array<const uint64_t*, kMaxReplicas> words{};
  const int live = view.LiveReplicas(start);
  for (int replica = 0; replica < live; ++replica) {
    words[replica] = reinterpret_cast<const uint64_t*>(
        round_trip->Read(view.Locate(bitmap, replica), kBlockHeaderBytes));
  }
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  freed->assign(used->size(), false);
  for (uint32_t i = 0; i < used->size(); ++i) {
    for (int replica = 0; replica < live; ++replica) {
      if ((words[replica][i / 64] >> (i % 64) & 1) != 0) (*used)[i] = (*freed)[i] = true;
    }
    // Whoever freed it may not have lived to tell the primary.
    may_lack_ = may_lack_ || ((*freed)[i] && (words[0][i / 64] >> (i % 64) & 1) == 0);
  }
  co_return Status::Ok();
}

Task<Result<bool>> Claims::ClaimGranted(Operation& operation, uint32_t first_region) {
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
    if (transit_.IsGoing(start)) all = false;
    if (transit_.IsGoing(start)) continue;
    // It may have been granted anew, of another class.
    transit_.DropClaim(start);
    transit_.ClaimLater(start, named.second.size_class);
  }
  co_return all;
}

Task<void> Claims::ClaimUnheard(Operation& operation) {
  constexpr uint64_t kRestTicks = 20;  // a walk over all block tables
  // A request that was not answered may yet be granted.
  if (!context_.fabric.settled() || context_.quiesce.held()) co_return;
  if (context_.executor.NowNs() < next_walk_ns_) co_return;
  next_walk_ns_ = context_.executor.NowNs() + kRestTicks * context_.options.epoch_tick_us * 1000;
  requests_.SetUnheardGrant(false);
  const Result<bool> all = co_await ClaimGranted(operation, /*first_region=*/0);
  if (!all.ok() || !all.value()) requests_.SetUnheardGrant(true);
}

Task<void> Claims::ClaimAgain() {
  for (size_t left = transit_.claim_count(); left > 0 && transit_.claim_count() > 0; --left) {
    if (context_.quiesce.held()) co_return;
    const BlocksInTransit::Granted one = transit_.NextClaim();
    co_await Claim(one.start, one.size_class);
  }
}

Task<void> Claims::Claim(GlobalAddr start, SizeClass size_class) {
  constexpr uint32_t kInVain = 8;
  if (!context_.view().Contains(start)) co_return;
  if (blocks_.Find(start) != nullptr || transit_.IsTaken(start) || transit_.IsGoing(start)) {
    co_return;
  }
  // A request that has failed may yet arrive, and one that is under way may be for this block.
  if (!context_.fabric.settled() || requests_.is_asking()) {
    if (context_.fabric.settled() && ++waited_ >= kInVain) requests_.PauseAsking();
    co_return transit_.ClaimLater(start, size_class);
  }
  waited_ = 0;
  const NodeRequests::NotAsked not_asked(requests_, context_.view().Locate(start, 0).node);
  // Who is the primary by now, and has not heard of that, would decide as a backup does.
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const GlobalAddr at(start.region(), offsetof(RegionHeader, blocks) + start.block() * 8);
  const uint64_t* bits = round_trip->ReadWord(context_.view().Locate(at, 0));
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return transit_.ClaimLater(start, size_class);
  const BlockEntry own(BlockEntry::Use::kOwned, context_.membership.id, size_class);
  if (*bits != own.bits()) co_return;
  const std::vector<bool> used(ObjectsPerBlock(size_class, start.block()), true);
  std::vector<bool> freed;
  (void)co_await TakeOver(start, size_class, context_.membership.id, used, &freed);
  may_lack_ = may_lack_ || blocks_.Find(start) != nullptr;
}

}  // namespace onetrip
