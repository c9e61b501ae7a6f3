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
      foreign_(context),
      sweeper_(context, blocks_),
      retirement_(context, reclaimer, metrics_, blocks_, foreign_) {
  next_grant_node_ = context.membership.index.value;  // workers start at different nodes
}

Allocator::~Allocator() { CHECK(!maintaining_); }

Task<void> Allocator::ReserveRetiredRing(bool may_use_reserve) {
  if (!retired_registers().needs_ring() ||
      retired_registers().added() < context_.options.retired_ring_after) {
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
  if (retired_registers().needs_ring()) {
    retired_registers().GiveRing(ring.value());
    blocks_.KeepBlockOf(ring.value());
  } else {
    FreeUnpublished(ring.value(), kRing);
  }
}

Reclaimer::Backlog Allocator::backlog() const {
  Reclaimer::Backlog backlog;
  backlog.bytes = metrics_.retired_bytes.Value();
  backlog.retired_since = retirement_.retired_since();
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
  retirement_.BeginTick();
  if (retired_registers().HasPending()) {
    co_await ReserveRetiredRing();
    co_await retirement_.PublishRegisters();
  }
  if (retirement_.wants_doubt()) co_await retirement_.DoubtRegisters();
  if (foreign_.has_late() && context_.fabric.settled()) co_await foreign_.TellLate();
  CHECK(!foreign_.has_late() || !context_.fabric.settled());
  // A failure leaves memory retired a little longer; the next round tries again.
  (void)co_await reclaimer_.Tick(backlog());
  retirement_.ReleaseSafe();
  const uint64_t wanted = reclaimer_.others_want();
  sweeper_.NoteOthersWant(wanted);
  if (!closing_.empty() || accounting_) holders_.Advance();
  if (!closing_.empty()) OpenClosed();
  if (!foreign_.empty()) (void)co_await foreign_.Flush();
  if (!opening_.empty()) co_await TellOpened();
  if (!to_return_.empty()) co_await ReturnAgain();
  if (has_unheard_grant_) co_await ClaimUnheard(presence);
  if (!to_claim_.empty()) co_await ClaimAgain();
  if (sweeper_.has_uncollected()) co_await sweeper_.CollectAgain();
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_await sweeper_.SweepInTurn();
  if (wanted != 0) CloseFor(wanted);
  if (!emptying_.empty()) FillAgainWhatIsLate();
  if (context_.view().leaving != 0) {
    co_await LeaveRing();
    co_await sweeper_.SweepLeaving();
  }
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
    const Result<GlobalAddr> ring = co_await retired_registers().Leave();
    if (ring.ok() && !ring.value().is_null()) {
      FreeUnpublished(ring.value(), SizeClass::For(kRetiredRingBytes));
    }
    if (ring.ok() && !retired_registers().left().is_null()) {
      const Result<GlobalAddr> other = co_await retired_registers().TakeLeftRing();
      if (other.ok() && !other.value().is_null()) {
        FreeUnpublished(other.value(), SizeClass::For(kRetiredRingBytes));
      }
    }
    // A node may be on its way out.
    left = ring.ok();
    if (ring.ok() || context_.executor.NowNs() >= deadline_ns) break;
    co_await context_.executor.SleepFor(kPauseNs);
  }
  co_await sweeper_.SweepAll();
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_await ReturnFreeBlocks(/*all=*/true);
  co_return left;
}

}  // namespace onetrip
