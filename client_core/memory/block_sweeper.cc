#include "client_core/memory/block_sweeper.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr uint32_t kSweepsPerTurn = 16;
constexpr uint32_t kSweepsInShortage = 512;
// In one turn of maintenance, which the cluster may wait for.
constexpr uint32_t kLeavingSweepsPerTurn = 4;

// The 64 of `objects` whose bits are in the bitmap's `word`.
uint64_t BitsOf(const std::vector<bool>& objects, uint32_t word) {
  uint64_t bits = 0;
  const size_t end = std::min<size_t>(objects.size(), (word + 1) * size_t{64});
  for (size_t i = word * size_t{64}; i < end; ++i) bits |= uint64_t{objects[i]} << (i % 64);
  return bits;
}

}  // namespace

Task<Status> BlockSweeper::Sweep(GlobalAddr start, const std::vector<bool>* unused) {
  OwnBlock* block = blocks_.Find(start);
  // A bit must be collected once: two sweeps that read it would both subtract it.
  if (block == nullptr || block->sweeping) co_return Status::Ok();
  block->sweeping = true;
  ++sweeping_;
  const Status status = co_await CollectFreed(*block, unused);
  --sweeping_;
  block->sweeping = false;
  co_return status;
}

// A bit at a backup alone is on its way to the primary, or got lost on it: then it would come to
// light when the primary is lost, long after the object has been found.
Task<Status> BlockSweeper::CollectFreed(OwnBlock& block, const std::vector<bool>* unused) {
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
  uint64_t any = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    for (uint32_t i = 0; i < kBitmapWords; ++i) any |= words[replica][i];
  }
  if (any == 0) co_return Status::Ok();
  for (uint32_t i = 0; i < kBitmapWords; ++i) {
    uint64_t bits = words[0][i];
    for (int replica = 1; replica < replicas; ++replica) {
      bits |= words[replica][i] & BitsOf(*unused, i);
    }
    if (bits == 0) continue;
    const GlobalAddr word = bitmap + i * 8;
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

Task<Status> BlockSweeper::Collect(OwnBlock& block, GlobalAddr word, uint64_t bits) {
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

Task<void> BlockSweeper::CollectAgain() {
  for (size_t i = 0; i < uncollected_.size();) {
    const Uncollected known = uncollected_[i];
    OwnBlock* block = blocks_.Find(known.word);
    CHECK(block != nullptr);  // it has objects that are not free
    if (block->sweeping || !context_.fabric.settled()) co_return;
    block->sweeping = true;
    ++sweeping_;
    const Status status = co_await Collect(*block, known.word, known.bits);
    --sweeping_;
    block->sweeping = false;
    if (!status.ok()) co_return;
    const auto is_known = [&](const Uncollected& other) {
      return other.word == known.word && other.bits == known.bits;
    };
    uncollected_.erase(std::find_if(uncollected_.begin(), uncollected_.end(), is_known));
  }
}

Task<void> BlockSweeper::SweepSome(uint32_t count) {
  // Alone: no other worker frees objects of this one.
  if (context_.view().worker_index_end <= 1) co_return;
  for (uint32_t i = 0; i < count && !blocks_.all().empty(); ++i) {
    const OwnBlock& block = *blocks_.all()[next_sweep_++ % blocks_.size()];
    if (block.is_wholly_free()) continue;
    (void)co_await Sweep(block.start);
  }
}

bool BlockSweeper::MayBeUncollected(const OwnBlock& block) const {
  return std::any_of(uncollected_.begin(), uncollected_.end(), [&](const Uncollected& known) {
    return known.word.block_start() == block.start;
  });
}

void BlockSweeper::NoteOthersWant(uint64_t classes) {
  if ((classes & ~others_wanted_) != 0) owed_sweeps_ = static_cast<uint32_t>(blocks_.size());
  others_wanted_ = classes;
  if (classes == 0) owed_sweeps_ = 0;
}

Task<void> BlockSweeper::SweepInTurn() {
  const uint32_t sweeps = owed_sweeps_ > 0 ? kSweepsInShortage : kSweepsPerTurn;
  co_await SweepSome(sweeps);
  owed_sweeps_ -= std::min(owed_sweeps_, sweeps);
}

Task<void> BlockSweeper::SweepLeaving() {
  if (context_.view().worker_index_end <= 1 || blocks_.leaving_count() == 0) co_return;
  uint32_t swept = 0;
  for (size_t i = 0; i < blocks_.size() && swept < kLeavingSweepsPerTurn; ++i) {
    if (context_.quiesce.held()) co_return;
    const OwnBlock& block = *blocks_.all()[next_leaving_++ % blocks_.size()];
    if (!block.leaving || block.is_wholly_free()) continue;
    ++swept;
    (void)co_await Sweep(block.start);
  }
}

void BlockSweeper::UseView(const View& view) {
  std::erase_if(uncollected_, [&](const Uncollected& one) { return !view.Contains(one.word); });
}

}  // namespace onetrip
