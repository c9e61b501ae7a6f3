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
namespace {

// Bitmap words per round trip: each costs an operation per backup.
constexpr size_t kForeignBatch = RoundTrip::kMaxOps / (kMaxReplicas - 1);

// The 64 of `objects` whose bits are in the bitmap's `word`.
uint64_t BitsOf(const std::vector<bool>& objects, uint32_t word) {
  uint64_t bits = 0;
  const size_t end = std::min<size_t>(objects.size(), (word + 1) * size_t{64});
  for (size_t i = word * size_t{64}; i < end; ++i) bits |= uint64_t{objects[i]} << (i % 64);
  return bits;
}

}  // namespace

Task<Status> Allocator::FlushForeign() {
  std::vector<ForeignFree> batch;
  std::swap(batch, foreign_);
  std::sort(batch.begin(), batch.end(),
            [](const ForeignFree& a, const ForeignFree& b) { return a.word < b.word; });
  // One addend per bitmap word.
  std::vector<ForeignFree> words;
  for (const ForeignFree& free : batch) {
    if (words.empty() || words.back().word != free.word) {
      words.push_back(free);
      continue;
    }
    CHECK((words.back().bit & free.bit) == 0);  // an object freed twice
    words.back().bit |= free.bit;
  }
  // Backups before the primary: the owner sweeps what the primary shows and may then return the
  // block, after which no late addend may arrive anywhere. All where one view has them, so that no
  // replica is asked twice: if the primary is lost in between, a backup that has the bits takes its
  // place. What the primary does not hear a look for what is lost finds.
  Status first_failure;
  for (size_t first = 0; first < words.size(); first += kForeignBatch) {
    const size_t end = std::min(words.size(), first + kForeignBatch);
    const View& view = context_.view();
    RoundTripPtr backups = context_.fabric.NewRoundTrip();
    RoundTripPtr primary = context_.fabric.NewRoundTrip();
    std::vector<LateFree> late;
    for (size_t i = first; i < end; ++i) {
      primary->Faa(view.Locate(words[i].word, 0), words[i].bit);
      for (int replica = 1; replica < view.LiveReplicas(words[i].word); ++replica) {
        backups->Faa(view.Locate(words[i].word, replica), words[i].bit);
      }
      late.push_back({words[i], view.regions[words[i].word.region()]});
    }
    Status status;
    if (!backups->empty()) status = co_await context_.fabric.Post(backups);
    if (!status.ok() && !Planted(Bug::kLateBitShown)) {
      first_failure = status;
      late_.insert(late_.end(), late.begin(), late.end());
      continue;
    }
    status = co_await context_.fabric.Post(primary);
    if (status.ok()) continue;
    first_failure = status;
    has_lost_bits_ = true;
  }
  co_return first_failure;
}

Task<void> Allocator::TellLate() {
  std::vector<LateFree> late;
  std::swap(late, late_);
  for (size_t first = 0; first < late.size(); first += RoundTrip::kMaxOps) {
    RoundTripPtr primary = context_.fabric.NewRoundTrip();
    for (size_t i = first; i < std::min(late.size(), first + RoundTrip::kMaxOps); ++i) {
      const ForeignFree& free = late[i].free;
      const RemoteAddr at = context_.view().Locate(free.word, 0);
      // Another primary may have heard of it, as a backup.
      const bool is_it = at.node == late[i].told.nodes[0] &&
                         at.offset == late[i].told.base[0] + free.word.offset();
      if (is_it) primary->Faa(at, free.bit);
      has_lost_bits_ = has_lost_bits_ || !is_it;
    }
    if (primary->empty()) continue;
    const Status status = co_await context_.fabric.Post(primary);
    has_lost_bits_ = has_lost_bits_ || !status.ok();
  }
}

Task<Status> Allocator::SweepBlock(GlobalAddr start, const std::vector<bool>* unused) {
  OwnBlock* block = blocks_.Find(start);
  // A bit must be collected once: two sweeps that read it would both subtract it.
  if (block == nullptr || block->sweeping) co_return Status::Ok();
  block->sweeping = true;
  ++gathering_;
  const Status status = co_await CollectFreed(*block, unused);
  --gathering_;
  block->sweeping = false;
  co_return status;
}

// A bit at a backup alone is on its way to the primary, or got lost on it: then it would come to
// light when the primary is lost, long after the object has been found.
Task<Status> Allocator::CollectFreed(OwnBlock& block, const std::vector<bool>* unused) {
  const GlobalAddr bitmap = block.start + BitmapOffset(block.start.block());
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::array<const uint64_t*, kMaxReplicas> words{};
  const int replicas = unused == nullptr ? 1 : context_.view().LiveReplicas(bitmap);
  for (int replica = 0; replica < replicas; ++replica) {
    words[replica] = reinterpret_cast<const uint64_t*>(
        round_trip->Read(context_.view().Locate(bitmap, replica), kBlockHeaderBytes));
  }
  Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  for (uint32_t i = 0; i < kBitmapWords; ++i) {
    const GlobalAddr word = bitmap + i * 8;
    uint64_t bits = words[0][i];
    for (int replica = 1; replica < replicas; ++replica) {
      bits |= words[replica][i] & BitsOf(*unused, i);
    }
    for (const Uncollected& known : uncollected_) {
      if (known.word == word) bits &= ~known.bits;
    }
    if (bits == 0) continue;
    status = co_await Collect(block, word, bits);
    if (status.ok()) continue;
    if (status.code() != StatusCode::kCorrupt) uncollected_.push_back({word, bits});
    co_return status;
  }
  co_return Status::Ok();
}

Task<Status> Allocator::Collect(OwnBlock& block, GlobalAddr word, uint64_t bits) {
  const auto first_index =
      static_cast<uint32_t>((word.bits() - block.start.bits() - BitmapOffset(word.block())) * 8);
  if (first_index + 64 - static_cast<uint32_t>(std::countl_zero(bits)) > block.objects) {
    co_return Status(StatusCode::kCorrupt, "a free bitmap names an object that does not exist");
  }
  // A backup may lack a bit, or may have lost it already.
  const View& view = context_.view();
  const int replicas = view.LiveReplicas(word);
  RoundTripPtr look = context_.fabric.NewRoundTrip();
  RoundTripPtr clear = context_.fabric.NewRoundTrip();
  std::array<RemoteAddr, kMaxReplicas> at{};
  std::array<const uint64_t*, kMaxReplicas> found{};
  for (int replica = 0; replica < replicas; ++replica) {
    at[replica] = view.Locate(word, replica);
    found[replica] = look->ReadWord(at[replica]);
  }
  Status status = co_await context_.fabric.Post(look);
  if (!status.ok()) co_return status;
  for (int replica = 0; replica < replicas; ++replica) {
    const uint64_t addend = Planted(Bug::kBitsCollectedTwice) ? 0 : -(*found[replica] & bits);
    clear->Faa(at[replica], addend);
  }
  status = co_await context_.fabric.Post(clear);
  if (!status.ok()) co_return status;
  for (uint64_t left = bits; left != 0; left &= left - 1) {
    blocks_.ListAgain(block, static_cast<uint16_t>(first_index + std::countr_zero(left)));
  }
  co_return Status::Ok();
}

Task<void> Allocator::CollectAgain() {
  for (size_t i = 0; i < uncollected_.size();) {
    const Uncollected known = uncollected_[i];
    OwnBlock* block = blocks_.Find(known.word);
    CHECK(block != nullptr);  // it has objects that are not free
    if (block->sweeping || !context_.fabric.settled()) co_return;
    block->sweeping = true;
    ++gathering_;
    const Status status = co_await Collect(*block, known.word, known.bits);
    --gathering_;
    block->sweeping = false;
    if (!status.ok()) co_return;
    const auto is_known = [&](const Uncollected& other) {
      return other.word == known.word && other.bits == known.bits;
    };
    uncollected_.erase(std::find_if(uncollected_.begin(), uncollected_.end(), is_known));
  }
}

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
  co_return co_await SweepBlock(start);
}

Task<void> Allocator::SweepSome(uint32_t count) {
  // Alone, nobody else frees our objects.
  if (context_.view().worker_index_end <= 1) co_return;
  for (uint32_t i = 0; i < count && !blocks_.all().empty(); ++i) {
    const OwnBlock& block = *blocks_.all()[next_sweep_++ % blocks_.size()];
    if (block.is_wholly_free()) continue;
    (void)co_await SweepBlock(block.start);
  }
}

}  // namespace onetrip
