// Objects that one worker frees in another's block: bits by FAA on the one side, the owner's sweeps
// on the other (FUSEE 4.4).
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
// The primary first: one of two who try gets it. What may be this worker's then is claimed later.
Task<Status> Allocator::TakeOverOnReplicas(GlobalAddr start, SizeClass size_class, WorkerId from) {
  const RegionPlacement asked = context_.view().regions[start.region()];
  for (int replica = 0; replica < context_.view().LiveReplicas(start); ++replica) {
    ControlRequest request;
    request.kind = ControlRequest::Kind::kTakeOver;
    request.size_class = size_class;
    request.owner = context_.membership.id;
    request.block = start;
    request.from = from;
    const Result<ControlReply> reply =
        co_await context_.fabric.Control(context_.view().Locate(start, replica).node, request);
    if (!reply.ok()) {
      ClaimLater(start, size_class);
      co_return reply.status();
    }
    if (reply.value().outcome == ControlReply::Outcome::kFull) {
      if (replica > 0 || from == context_.membership.id) ClaimLater(start, size_class);
      co_return Status(StatusCode::kUnavailable, "a replica has yet to hear of its region");
    }
    if (reply.value().outcome != ControlReply::Outcome::kDone) {
      co_return Status(StatusCode::kCorrupt, "replicas disagree about who owns a block");
    }
  }
  const Status all = HaveAskedAll(start, asked);
  if (!all.ok()) ClaimLater(start, size_class);
  co_return all;
}

// Adds what the bitmap shows, on any replica, to what is used: it comes back by a sweep, like
// everything that others free.
Task<Status> Allocator::AddFreed(GlobalAddr start, std::vector<bool>* freed,
                                 std::vector<bool>* used) {
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

Task<Status> Allocator::TakeOver(GlobalAddr start, SizeClass size_class, WorkerId from,
                                 const std::vector<bool>& named, std::vector<bool>* freed) {
  constexpr Status kLater(StatusCode::kUnavailable, "this worker is still giving the block up");
  if (IsAmong(returning_, start) || IsOpeningNow(start)) co_return kLater;
  // Whoever has had it since need not have given it back.
  const size_t to_be_returned =
      std::erase_if(to_return_, [start](const Returning& one) { return one.start == start; });
  if (to_be_returned != 0) ClaimLater(start, size_class);
  taking_.push_back(start);
  const absl::Cleanup taken = [&] {
    taking_.erase(std::find(taking_.begin(), taking_.end(), start));
  };
  if (!context_.view().Contains(start)) {
    co_return Status(StatusCode::kUnavailable, "the block's region has been given up");
  }
  const Status asked = co_await TakeOverOnReplicas(start, size_class, from);
  if (!asked.ok()) co_return asked;
  std::vector<bool> used = named;
  const Status read = co_await AddFreed(start, freed, &used);
  if (!read.ok()) {
    ClaimLater(start, size_class);
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
  std::erase_if(opening_, [start](const Opening& one) { return one.start == start; });
  blocks_.Adopt(start, size_class, size_class.index(), &used);
  co_return co_await sweeper_.Sweep(start);
}

}  // namespace onetrip
