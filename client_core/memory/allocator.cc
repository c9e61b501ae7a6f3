#include "client_core/memory/allocator.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/index_layout.h"
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
      retirement_(context, reclaimer, metrics_, blocks_, foreign_),
      shortage_(context, reclaimer),
      requests_(context, shortage_, transit_),
      returner_(context, blocks_, transit_),
      grants_(context, metrics_, blocks_, locks_, sweeper_, transit_, requests_, returner_),
      opener_(context, reclaimer, metrics_, holders_, blocks_, foreign_, sweeper_, transit_,
              requests_),
      claims_(context, blocks_, sweeper_, transit_, requests_),
      accounting_(context, reclaimer, metrics_, holders_, blocks_, retirement_, sweeper_, opener_),
      compaction_(context, blocks_) {}

Allocator::~Allocator() { CHECK(!maintaining_); }

bool Allocator::HasLittle() const {
  constexpr uint64_t kShare = 16;
  uint64_t free_bytes = metrics_.free_bytes.Value();
  // Blocks of these hold nothing else.
  for (const uint64_t bytes : {uint64_t{kSubtableBytes}, kRetiredRingBytes}) {
    free_bytes -= metrics_.free_bytes.ValueOf(SizeClass::For(bytes));
  }
  return free_bytes < metrics_.owned_bytes.Value() / kShare;
}

Task<void> Allocator::ReserveRetiredRing(bool may_use_reserve) {
  if (!retired_registers().needs_ring() ||
      retired_registers().added() < context_.options.retired_ring_after) {
    co_return;
  }
  constexpr SizeClass kRing = SizeClass::For(kRetiredRingBytes);
  const Holder holder(*this);
  Result<GlobalAddr> ring = co_await AllocatePinned(kRing);
  if (!ring.ok() && may_use_reserve) {
    const Status granted = co_await grants_.Grant(
        {.size_class = kRing, .near = GlobalAddr(), .may_use_reserve = true});
    if (granted.ok()) ring = co_await AllocatePinned(kRing);
  }
  if (!ring.ok()) co_return;
  // Another call may have got one meanwhile.
  if (retired_registers().needs_ring()) {
    retired_registers().GiveRing(ring.value());
    blocks_.KeepBlockOf(ring.value());
  } else {
    FreeUnpublished(ring.value(), kRing);
  }
}

// A worker that is short of a class itself has none of it to give.
uint64_t Allocator::MayGive(uint64_t classes) const {
  const SizeClass own = shortage_.told();
  return own.is_valid() ? classes & ~(1ULL << own.index()) : classes;
}

Reclaimer::Backlog Allocator::backlog() const {
  Reclaimer::Backlog backlog;
  backlog.bytes = metrics_.retired_bytes.Value();
  backlog.retired_since = retirement_.retired_since();
  backlog.wanted = shortage_.told();
  backlog.tight = shortage_.says_tight();
  backlog.gives = gives();
  return backlog;
}

Task<void> Allocator::Maintain() {
  if (maintaining_) co_return;
  maintaining_ = true;
  const Quiesce::InFlightGuard in_flight(context_.quiesce);
  const absl::Cleanup done = [this] { maintaining_ = false; };
  retirement_.BeginTick();
  if (retired_registers().HasPending()) {
    // Memory comes back through the ring: in a full pool it takes some of the reserve, or the few
    // entries of the seat keep back what thousands of DELs have given up.
    co_await ReserveRetiredRing(/*may_use_reserve=*/retired_registers().is_behind());
    co_await retirement_.PublishRegisters();
  }
  if (retirement_.wants_doubt()) co_await retirement_.DoubtRegisters();
  if (foreign_.has_late() && context_.fabric.settled()) co_await foreign_.TellLate();
  CHECK(!foreign_.has_late() || !context_.fabric.settled());
  // A failure leaves memory retired a little longer; the next round tries again.
  (void)co_await reclaimer_.Tick(backlog());
  // Those that are left out have the next round.
  while (retirement_.ReleaseSome() && !context_.quiesce.is_impatient()) {
    co_await context_.executor.Yield();
  }
  const uint64_t wanted = reclaimer_.others_want();
  sweeper_.NoteOthersWant(wanted);
  if (opener_.has_closing() || accounting_.is_open()) holders_.Advance();
  if (opener_.has_closing()) opener_.OpenClosed();
  if (!foreign_.empty()) (void)co_await foreign_.Flush();
  if (transit_.has_opening()) co_await opener_.TellOpened();
  if (transit_.return_count() > 0) co_await returner_.ReturnAgain();
  if (requests_.has_unheard_grant()) {
    Operation operation;
    operation.in_flight = in_flight;
    co_await claims_.ClaimUnheard(operation);
  }
  if (transit_.claim_count() > 0) co_await claims_.ClaimAgain();
  if (sweeper_.has_uncollected()) co_await sweeper_.CollectAgain();
  if (!blocks_.to_clear().empty()) co_await locks_.Clear();
  co_await sweeper_.SweepInTurn();
  if (wanted != 0) opener_.CloseFor(MayGive(wanted));
  if (compaction_.has_emptying()) compaction_.FillAgainWhatIsLate();
  if (context_.view().leaving != 0) {
    co_await LeaveRing();
    co_await sweeper_.SweepLeaving();
  }
  if (blocks_.has_wholly_free())
    co_await returner_.ReturnFreeBlocks(/*all=*/is_scarce() || is_tight());
}

Task<bool> Allocator::Drain() {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  constexpr uint64_t kPatienceWithHoldsNs = 3 * kPatienceNs;
  constexpr uint64_t kPauseNs = 1'000'000;
  uint64_t deadline_ns = context_.executor.NowNs() + kPatienceNs;
  // Holds may come again and again, for the very reason that keeps this worker from its end.
  const uint64_t last_ns = context_.executor.NowNs() + kPatienceWithHoldsNs;
  // While all hold, no epoch moves, and it is not for this worker to keep them waiting.
  while (retired_count() > 0 && context_.executor.NowNs() < deadline_ns) {
    if (context_.quiesce.holds_all()) {
      deadline_ns = std::min(context_.executor.NowNs() + kPatienceNs, last_ns);
    } else {
      co_await Maintain();
    }
    if (retired_count() > 0) co_await context_.executor.SleepFor(kPauseNs);
  }
  (void)co_await context_.quiesce.Wait(deadline_ns);
  const Quiesce::InFlightGuard in_flight(context_.quiesce);
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
  co_await returner_.ReturnFreeBlocks(/*all=*/true);
  co_return left;
}

Task<bool> Allocator::OpenAllBut(const std::vector<GlobalAddr>& keep) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const bool released = co_await context_.quiesce.Wait(context_.executor.NowNs() + kPatienceNs);
  // A request that has failed may yet arrive: the worker that takes the blocks over waits for that.
  if (!released || !context_.fabric.settled()) co_return false;
  const Quiesce::InFlightGuard in_flight(context_.quiesce);
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) block->kept = false;
  bool keeps_in_own = true;
  for (const GlobalAddr addr : keep) {
    keeps_in_own &= blocks_.Find(addr) != nullptr;
    blocks_.KeepBlockOf(addr);
  }
  std::vector<OwnBlock*> open;
  for (const std::unique_ptr<OwnBlock>& block : blocks_.all()) {
    const bool waits = sweeper_.IsCollecting(*block);
    if (!block->kept && !waits) open.push_back(block.get());
  }
  for (OwnBlock* const block : open) opener_.Disown(*block);
  if (!foreign_.empty()) (void)co_await foreign_.Flush();
  co_await opener_.TellOpened();
  const bool leaves_nothing = keeps_in_own && !foreign_.has_lost_bits() && !claims_.may_lack() &&
                              !foreign_.has_late() && !transit_.has_opening() &&
                              transit_.return_count() == 0 && transit_.claim_count() == 0 &&
                              !requests_.has_unheard_grant();
  co_return leaves_nothing;
}

void Allocator::UseView(const View& view) {
  compaction_.UseView(view);
  opener_.UseView(view);
  transit_.UseView(view);
  foreign_.UseView(view);
  sweeper_.UseView(view);
  blocks_.UseView(view);
}

// Others read it as long as it has what they have not seen. Until there is another one, the few
// entries of the seat have to do.
Task<void> Allocator::LeaveRing() {
  const GlobalAddr ring = retired_registers().given();
  if (!ring.is_null() && context_.view().IsLeaving(ring)) retired_registers().LeaveRing();
  if (retired_registers().left().is_null()) co_return;
  const Result<GlobalAddr> left = co_await retired_registers().TakeLeftRing();
  if (left.ok() && !left.value().is_null()) {
    Retire(left.value(), SizeClass::For(kRetiredRingBytes));
  }
}

}  // namespace onetrip
