// Frees what is lost in a worker's own blocks: objects whose unlinker died before it freed them,
// buffers of words whose writers are gone, records of unknown outcomes (PROTOCOLS, "What is lost
// comes back").
#include "client_core/kv/chores/lost_memory.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/orphan_inventory.h"

namespace onetrip {
namespace {

constexpr Status kBusy(StatusCode::kUnavailable, "blocks of the dead are being taken over");
constexpr uint32_t kRestsMax = 64;
constexpr uint32_t kRestsMaxAfterFailures = 8;
constexpr int kCollectTries = 5;
constexpr uint64_t kAccountPatienceNs = 1'000'000'000;
constexpr uint32_t kAcquireTries = 4;
// Workers that look behind the same death at different times.
constexpr uint32_t kTurns = 8;
// For this number of rests a worker that has its turn lets its own blocks become open first.
constexpr uint64_t kRestsToOpen = 8;

}  // namespace

// A worker notes at once what may be lost, so that operations that hold something then have ended
// by the time of the look. The look takes a walk over the index, and makes all workers look every
// register up anew: so it is done when memory is short, and once behind each event that has left
// something for sure, one worker after the other.
void LostMemory::AccountIfDue(bool leaving_in_vain) {
  const uint64_t now_ns = core_.context.executor.NowNs();
  NoteLosses();
  // A look that is to come finds what was lost before its note only.
  const bool begins = account_.anew || (account_.has_lost && account_.turn_ns == 0) ||
                      (account_.may_have_lost && !core_.allocator.accounting().is_open());
  if (begins && !inheriting_) {
    const uint64_t turn = 1 + core_.context.membership.index.value % kTurns;
    if (account_.has_lost) {
      account_.BeginTurn(now_ns + turn * core_.context.options.account_rest_us * 1000,
                         account_.has_lost_elsewhere);
    }
    account_.may_have_lost = account_.has_lost = account_.has_lost_elsewhere = account_.anew =
        false;
    core_.allocator.accounting().Begin();
  }
  const bool has_turn = account_.HasTurn(now_ns);
  const bool may_begin = now_ns >= account_.next_ns && !core_.held() && !inheriting_;
  // Its look would miss the blocks that it is about to open itself.
  const uint64_t opened_ns =
      account_.turn_ns + kRestsToOpen * core_.context.options.account_rest_us * 1000;
  const bool may_acquire = may_begin && (!core_.allocator.opener().opens() || now_ns >= opened_ns);
  if (has_turn && account_.open_blocks == AccountState::OpenBlocks::kOthers && may_acquire) {
    core_.context.executor.Spawn(core_.gate, AcquireOpenBlocks());
  }
  const bool leaves = core_.allocator.leaving_blocks() != 0 && leaving_in_vain;
  const bool is_due =
      core_.allocator.accounting().is_open() && may_begin &&
      account_.open_blocks != AccountState::OpenBlocks::kAcquiring &&
      (core_.allocator.is_scarce() || core_.context.options.accounts_always != 0 || leaves ||
       (has_turn && account_.open_blocks == AccountState::OpenBlocks::kAcquired));
  const bool may_go_on = core_.allocator.accounting().MayGoOn() || Planted(Bug::kAccountedAtOnce);
  if (is_due && may_go_on && !inheriting_) core_.context.executor.Spawn(core_.gate, Account());
}

bool LostMemory::BeginInheriting() {
  if (std::exchange(inheriting_, true)) return false;
  if (core_.registers) core_.registers->cache.BeginInheriting();
  return true;
}

void LostMemory::EndInheriting() {
  inheriting_ = false;
  if (core_.registers) core_.registers->cache.EndInheriting();
}

bool LostMemory::OwesLook() const {
  const BlocksInTransit::Trade trade = core_.allocator.transit().trade();
  return account_.has_lost || account_.anew || account_.turn_ns != 0 || trade.gave ||
         (trade.took && account_.was_scarce) ||
         core_.allocator.retired_registers().departures() != account_.departures_before;
}

void LostMemory::NoteLosses() {
  const uint64_t acquired = core_.allocator.metrics().blocks_acquired.Value();
  if (std::exchange(account_.acquired_before, acquired) != acquired ||
      core_.context.options.accounts_always != 0) {
    account_.may_have_lost = true;
  }
  // The worker that lost an object may not know, as when a bit did not get through.
  const bool is_scarce = core_.allocator.is_scarce();
  if (is_scarce && core_.context.executor.NowNs() >= account_.next_ns)
    account_.may_have_lost = true;
  // Blocks that changed owners in a shortage may have lost objects since a look in it, and there
  // may have been no time for one.
  const bool was_scarce = std::exchange(account_.was_scarce, is_scarce);
  if (!is_scarce) {
    const BlocksInTransit::Trade trade = core_.allocator.transit().TakeTrade();
    account_.has_lost = account_.has_lost || trade.gave || (trade.took && was_scarce);
    account_.has_lost_elsewhere = account_.has_lost_elsewhere || trade.gave;
  }
  const uint64_t unknown = core_.outcomes_unknown + core_.metrics.objects_left.Value();
  if (std::exchange(account_.unknown_before, unknown) < unknown ||
      core_.allocator.claims().TakeMayLack()) {
    account_.has_lost = account_.has_lost_elsewhere = true;
  }
  const auto& seats = core_.context.view().live_seats;
  bool departed = false;
  for (size_t i = 0; i < seats.size(); ++i) {
    const uint64_t gone = std::exchange(account_.seats_before[i], seats[i]) & ~seats[i];
    departed = departed || gone != 0;
    if (core_.registers) core_.allocator.retired_registers().NoteGone(i, gone);
  }
  if (core_.registers) {  // else no worker reads which ones have signed off
    const uint64_t departures = core_.allocator.retired_registers().departures();
    departed = std::exchange(account_.departures_before, departures) != departures;
  }
  if (!departed) return;
  account_.has_lost = account_.has_lost_elsewhere = account_.anew = true;
  account_.next_ns = 0;
  if (account_.open_blocks == AccountState::OpenBlocks::kAcquired) {
    account_.open_blocks = AccountState::OpenBlocks::kOthers;
  }
}

// No other worker finds what is lost there, nor asks for a block in which nothing is free.
Task<void> LostMemory::AcquireOpenBlocks() {
  account_.open_blocks = AccountState::OpenBlocks::kAcquiring;
  const uint64_t before = core_.allocator.metrics().blocks_acquired.Value();
  Status failure;
  for (uint32_t region = 0; region < core_.context.view().regions.size() && !core_.stopping;) {
    if (Planted(Bug::kOpenNotLookedAt)) break;
    Operation operation;
    const bool begun = co_await core_.WaitToBegin(&operation);
    if (!begun) failure = kHeld;
    if (!begun) break;
    const Result<bool> may_be_more = co_await core_.allocator.grants().AcquireOpenIn(region);
    if (!may_be_more.ok()) failure = may_be_more.status();
    if (!may_be_more.ok() || !may_be_more.value()) ++region;
  }
  account_.open_blocks = AccountState::OpenBlocks::kAcquired;
  account_.failures = failure.ok() ? 0 : account_.failures + 1;
  // A node may be on its way out. Else it looks at what it has got.
  if (!failure.ok() && account_.failures < kAcquireTries) {
    account_.EndTurn();
    account_.BeginTurn(
        core_.context.executor.NowNs() + core_.context.options.account_rest_us * 1000,
        /*elsewhere=*/true);
  }
  // The objects in use in the blocks that it got are suspect now.
  if (core_.allocator.metrics().blocks_acquired.Value() != before) {
    account_.anew = true;
  } else if (!core_.allocator.accounting().is_open()) {
    account_.EndTurn();  // another worker was short, and a look behind the loss is over
  }
}

Task<void> LostMemory::Account() {
  const uint64_t found_before = core_.allocator.metrics().objects_found.Value();
  account_.gives_way = false;
  account_.looks = true;
  const Status status = co_await FreeLost();
  account_.looks = false;
  const uint64_t found = core_.allocator.metrics().objects_found.Value() - found_before;
  if (status.ok()) {
    core_.allocator.accounting().End();
    const bool was_turn = account_.open_blocks == AccountState::OpenBlocks::kAcquired;
    if (was_turn && !account_.anew) account_.EndTurn();
  }
  // One that has found nothing makes the next wait longer; so does one that comes to no end.
  const bool is_urgent = found > 0 || core_.allocator.leaving_blocks() != 0;
  const uint32_t rests_max = status.ok() ? kRestsMax : kRestsMaxAfterFailures;
  account_.rests = is_urgent ? 1 : std::min(2 * account_.rests, rests_max);
  if (account_.anew) account_.rests = 1;  // a worker has died meanwhile
  account_.next_ns = core_.context.executor.NowNs() +
                     account_.rests * core_.context.options.account_rest_us * 1000;
  if (found > 0) {
    LogInfo("freed " + std::to_string(found) + " objects that nothing named any more");
  }
}

// A walk that only looks for what is lost gives way. Another take-over does not.
Task<void> LostMemory::AwaitAccount() {
  const uint64_t deadline_ns = core_.context.executor.NowNs() + kAccountPatienceNs;
  while (account_.looks && !core_.stopping && core_.context.executor.NowNs() < deadline_ns) {
    account_.gives_way = true;
    co_await core_.context.executor.SleepFor(core_.context.options.epoch_tick_us * 1000);
  }
}

Task<Status> LostMemory::FreeLost() {
  // A take-over of blocks inherits, too.
  if (!BeginInheriting()) co_return kBusy;
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kAccount);
  const absl::Cleanup done = [this] { EndInheriting(); };
  OrphanInventory inventory(core_.context, /*is_of_the_dead=*/false, &account_.gives_way);
  for (const Accounting::Suspects& block : core_.allocator.accounting().SuspectBlocks()) {
    inventory.blocks.Add(block.start, block.size_class, core_.context.membership.id);
  }
  if (inventory.blocks.blocks().empty()) co_return Status::Ok();
  const std::shared_ptr<const View> view = core_.context.master.view();
  if (core_.registers) core_.registers->cache.BeginLook();
  Status status = co_await names_.LookAtNames(inventory, *view);
  if (!status.ok()) co_return status;
  TellUnnamed(inventory);
  status = co_await names_.AwaitUnlinked();
  if (status.ok() && core_.registers && !Planted(Bug::kUnseenRemembered)) {
    core_.registers->cache.ForgetUnseen();
  }
  // This worker gives back itself what only it knows of.
  if (core_.registers && !Planted(Bug::kOwnBuffersLost)) {
    core_.registers->cache.ForEachLive(
        [this](GlobalAddr addr) { core_.allocator.accounting().KnowOf(addr); });
  }
  core_.index.ForEachUnnamed(
      [this](GlobalAddr addr) { core_.allocator.accounting().KnowOf(addr); });
  for (auto block = inventory.blocks.blocks().begin();
       status.ok() && block != inventory.blocks.blocks().end(); ++block) {
    if (core_.stopping || core_.context.quiesce.held()) co_return kHeld;
    status = co_await FreeLostOf(inventory, block->second);
  }
  co_return status;
}

void LostMemory::TellUnnamed(const OrphanInventory& inventory) {
  if (core_.context.memory_observer == nullptr) return;
  for (const auto& [start, block] : inventory.blocks.blocks()) {
    for (size_t i = 0; i < block.named.size(); ++i) {
      const GlobalAddr addr = ObjectAddr(block.start, block.size_class, static_cast<uint16_t>(i));
      if (!block.named[i] && core_.allocator.accounting().IsSuspect(addr))
        core_.context.memory_observer->Unnamed(addr);
    }
  }
}

Task<Status> LostMemory::FreeLostOf(OrphanInventory& inventory, const OrphanBlocks::Block& block) {
  const std::vector<NamedBuffer>& buffers = inventory.buffers[block.start.bits()];
  // No operation that might give the object back uses it any more.
  std::vector<bool> unused(block.named.size());
  for (size_t i = 0; i < unused.size(); ++i) unused[i] = !block.named[i];
  for (const NamedBuffer& named : buffers) {
    if (named.buffer_class != block.size_class) continue;
    unused[ObjectIndex(named.buffer.addr, block.start, block.size_class)] = true;
  }
  Operation operation;
  Status collected;
  // Another collection may be running there, at each tick.
  const uint64_t tick_ns = core_.context.options.epoch_tick_us * 1000;
  for (int i = 0; i < kCollectTries; ++i) {
    operation.in_flight = Quiesce::InFlightGuard();
    if (i > 0)
      co_await core_.context.executor.SleepFor(core_.context.executor.rng().Below(tick_ns));
    const bool begun = co_await core_.WaitToBegin(&operation);
    if (!begun) co_return kHeld;
    collected = co_await core_.allocator.accounting().CollectFreed(block.start, unused);
    if (collected.ok()) break;
  }
  // Another time.
  if (!collected.ok()) co_return Status::Ok();
  for (const NamedBuffer& named : buffers) {
    const GlobalAddr addr = named.buffer.addr;
    if (named.buffer_class != block.size_class || !core_.allocator.accounting().IsSuspect(addr))
      continue;
    core_.registers->cache.Inherit(named.ref, named.buffer_class, named.buffer);
    core_.allocator.accounting().KnowOf(addr);
  }
  for (size_t i = 0; i < block.named.size(); ++i) {
    const GlobalAddr addr = ObjectAddr(block.start, block.size_class, static_cast<uint16_t>(i));
    if (!block.named[i] && core_.allocator.accounting().IsSuspect(addr))
      core_.allocator.accounting().FreeLost(addr);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
