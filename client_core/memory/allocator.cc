#include "client_core/memory/allocator.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_layout.h"

namespace onetrip {

Allocator::Allocator(WorkerContext& context, Reclaimer& reclaimer)
    : context_(context),
      reclaimer_(reclaimer),
      blocks_(context, metrics_, holders_),
      locks_(context, metrics_, blocks_),
      retired_registers_(context, reclaimer) {
  next_grant_node_ = context.membership.index.value;  // workers start at different nodes
}

Allocator::~Allocator() { CHECK(!maintaining_); }

void Allocator::Release(GlobalAddr addr, SizeClass size_class) {
  const uint16_t index = ObjectIndex(addr, addr.block_start(), size_class);
  OwnBlock* block = blocks_.Find(addr);
  if (context_.memory_observer != nullptr) {
    const bool is_buffer = block != nullptr && block->list >= SizeClass::kCount;
    context_.memory_observer->Released(addr, size_class,
                                       is_buffer ? MemoryUse::kBuffer : MemoryUse::kObject);
  }
  if (block != nullptr) {
    CHECK(block->size_class == size_class);
    blocks_.ListAgain(*block, index);
    return;
  }
  const GlobalAddr word = addr.block_start() + BitmapOffset(addr.block()) + index / 64 * 8;
  foreign_.push_back({word, 1ULL << (index % 64)});
}

void Allocator::FreeUnpublished(GlobalAddr addr, SizeClass size_class) {
  Release(addr, size_class);
}

void Allocator::Retire(GlobalAddr addr, SizeClass size_class) {
  if (accounting_) KnowOf(addr);
  retired_.push_back({addr, size_class, reclaimer_.current_epoch(), NoteUnlinked()});
  if (context_.memory_observer != nullptr) context_.memory_observer->Retired(addr, size_class);
  metrics_.retired_bytes.Add(size_class.bytes());
  ++retired_since_tick_;
  retired_bytes_since_tick_ += size_class.bytes();
}

void Allocator::RetireRegister(GlobalAddr addr, SizeClass size_class) {
  if (accounting_) KnowOf(addr);
  retired_registers_.Add({addr, size_class, NoteUnlinked()});
  if (context_.memory_observer != nullptr) context_.memory_observer->Retired(addr, size_class);
  metrics_.retired_bytes.Add(size_class.bytes());
  ++retired_since_tick_;
  retired_bytes_since_tick_ += size_class.bytes();
}

Task<void> Allocator::ReserveRetiredRing(bool may_use_reserve) {
  if (!retired_registers_.needs_ring() ||
      retired_registers_.added() < context_.options.retired_ring_after) {
    co_return;
  }
  constexpr SizeClass kRing = SizeClass::For(kRetiredRingBytes);
  const Holder holder(*this);
  Result<GlobalAddr> ring = co_await AllocatePinned(kRing);
  if (!ring.ok() && may_use_reserve) {
    const Status granted =
        co_await GrantBlock({.size_class = kRing, .near = GlobalAddr(), .may_use_reserve = true});
    if (granted.ok()) ring = co_await AllocatePinned(kRing);
  }
  if (!ring.ok()) co_return;
  // Somebody else may have got one meanwhile.
  if (retired_registers_.needs_ring()) {
    retired_registers_.GiveRing(ring.value());
    blocks_.KeepBlockOf(ring.value());
  } else {
    FreeUnpublished(ring.value(), kRing);
  }
}

Task<void> Allocator::PublishRetiredRegisters() {
  co_await ReserveRetiredRing();
  std::vector<RetiredRegisters::Retired> published;
  (void)co_await retired_registers_.Publish(&published);
  for (const RetiredRegisters::Retired& retired : published) {
    retired_.push_back(
        {retired.addr, retired.size_class, reclaimer_.current_epoch(), retired.unlinked});
  }
}

void Allocator::ReleaseSafe() {
  while (!retired_.empty() &&
         (reclaimer_.IsSafe(retired_.front().epoch) || Planted(Bug::kRetiredAtOnce))) {
    const Retired retired = retired_.front();
    retired_.pop_front();
    metrics_.retired_bytes.Sub(retired.size_class.bytes());
    NoteReleased(retired.unlinked);
    Release(retired.addr, retired.size_class);
  }
}

uint64_t Allocator::NoteUnlinked() {
  const uint64_t epoch = reclaimer_.current_epoch();
  if (unlinked_.empty() || unlinked_.back().epoch != epoch) unlinked_.push_back({epoch, 0});
  ++unlinked_.back().objects;
  return epoch;
}

void Allocator::NoteReleased(uint64_t unlinked) {
  const auto found =
      std::find_if(unlinked_.begin(), unlinked_.end(),
                   [&](const UnlinkedCount& count) { return count.epoch == unlinked; });
  CHECK(found != unlinked_.end() && found->objects > 0);
  --found->objects;
  while (!unlinked_.empty() && unlinked_.front().objects == 0) unlinked_.pop_front();
}

Reclaimer::Backlog Allocator::backlog() const {
  Reclaimer::Backlog backlog;
  backlog.bytes = metrics_.retired_bytes.Value();
  if (!unlinked_.empty() && !Planted(Bug::kRetiredNotTold)) {
    backlog.retired_since = unlinked_.front().epoch;
  }
  if (context_.executor.NowNs() < short_until_ns_) backlog.wanted = short_of_;
  backlog.tight = context_.executor.NowNs() < tight_until_ns_;
  backlog.gives = gives();
  return backlog;
}

Task<void> Allocator::Maintain() {
  if (maintaining_) co_return;
  maintaining_ = true;
  const ViewHold::Presence presence(context_.hold);
  const absl::Cleanup done = [this] { maintaining_ = false; };
  retired_since_tick_ = 0;
  retired_bytes_since_tick_ = 0;
  if (retired_registers_.HasPending()) co_await PublishRetiredRegisters();
  if (doubt_wanted_) {
    const Status doubted = co_await retired_registers_.DoubtAll();
    doubt_wanted_ = !doubted.ok();
    if (doubted.ok()) doubted_epoch_ = reclaimer_.current_epoch();
  }
  if (!late_.empty() && context_.fabric.settled()) co_await TellLate();
  CHECK(late_.empty() || !context_.fabric.settled());
  // A failure leaves memory retired a little longer; the next round tries again.
  (void)co_await reclaimer_.Tick(backlog());
  ReleaseSafe();
  const uint64_t wanted = reclaimer_.others_want();
  if ((wanted & ~answered_) != 0) owed_sweeps_ = static_cast<uint32_t>(blocks_.size());
  answered_ = wanted;
  if (wanted == 0) owed_sweeps_ = 0;
  if (!closing_.empty() || accounting_) holders_.Advance();
  if (!closing_.empty()) OpenClosed();
  if (!foreign_.empty()) (void)co_await FlushForeign();
  if (!opening_.empty()) co_await TellOpened();
  if (!to_return_.empty()) co_await ReturnAgain();
  if (has_unheard_grant_) co_await ClaimUnheard(presence);
  if (!to_claim_.empty()) co_await ClaimAgain();
  if (!uncollected_.empty()) co_await CollectAgain();
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  const uint32_t sweeps = owed_sweeps_ > 0 ? kSweepBlocksInShortage : kSweepBlocksPerTick;
  co_await SweepSome(sweeps);
  owed_sweeps_ -= std::min(owed_sweeps_, sweeps);
  if (wanted != 0) CloseFor(wanted);
  if (!emptying_.empty()) FillAgainWhatIsLate();
  if (context_.view().leaving != 0) co_await SeeToLeaving();
  if (blocks_.has_wholly_free()) co_await ReturnFreeBlocks(/*all=*/is_scarce() || is_tight());
}

Task<bool> Allocator::Drain() {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  constexpr uint64_t kPatienceWithHoldsNs = 3 * kPatienceNs;
  constexpr uint64_t kPauseNs = 1'000'000;
  uint64_t deadline_ns = context_.executor.NowNs() + kPatienceNs;
  // Holds may come again and again, for the very reason that keeps this worker from its end.
  const uint64_t last_ns = context_.executor.NowNs() + kPatienceWithHoldsNs;
  // While all hold, nobody's epoch moves, and it is not for this worker to keep them waiting.
  while (retired_count() > 0 && context_.executor.NowNs() < deadline_ns) {
    if (context_.hold.holds_all()) {
      deadline_ns = std::min(context_.executor.NowNs() + kPatienceNs, last_ns);
    } else {
      co_await Maintain();
    }
    if (retired_count() > 0) co_await context_.executor.SleepFor(kPauseNs);
  }
  (void)co_await context_.hold.Wait(deadline_ns);
  const ViewHold::Presence presence(context_.hold);
  co_await Maintain();
  bool left = false;
  while (retired_count() == 0) {
    const Result<GlobalAddr> ring = co_await retired_registers_.Leave();
    if (ring.ok() && !ring.value().is_null()) {
      FreeUnpublished(ring.value(), SizeClass::For(kRetiredRingBytes));
    }
    if (ring.ok() && !retired_registers_.left().is_null()) {
      const Result<GlobalAddr> other = co_await retired_registers_.TakeLeftRing();
      if (other.ok() && !other.value().is_null()) {
        FreeUnpublished(other.value(), SizeClass::For(kRetiredRingBytes));
      }
    }
    // A node may be on its way out.
    left = ring.ok();
    if (ring.ok() || context_.executor.NowNs() >= deadline_ns) break;
    co_await context_.executor.SleepFor(kPauseNs);
  }
  co_await SweepSome(static_cast<uint32_t>(blocks_.size()));
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_await ReturnFreeBlocks(/*all=*/true);
  co_return left;
}

}  // namespace onetrip
