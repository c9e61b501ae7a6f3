// Freeing what is lost in a worker's own blocks: what somebody has unlinked and not lived to free,
// buffers of words whose writers are gone, records of unknown outcomes (PROTOCOLS, "What is lost
// comes back").
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/kv/estate.h"
#include "client_core/kv/kv_impl.h"

namespace onetrip {
namespace {

constexpr Status kBusy(StatusCode::kUnavailable, "blocks of the dead are being taken over");
constexpr uint32_t kRestsMax = 64;

}  // namespace

// What may be lost is noted at once, so that operations that hold something then have ended by the
// time that memory is short. Only then is it looked for: that takes a walk over the index, and
// makes everybody look every register up anew.
void KvImpl::AccountIfScarce() {
  const bool always = context_.options.accounts_always != 0;
  const uint64_t acquired = allocator_.metrics().blocks_acquired.Value();
  if (std::exchange(acquired_before_, acquired) != acquired || always) may_have_lost_ = true;
  // Nobody may have seen the seat of who is gone without anybody.
  const uint64_t departures = allocator_.retired_registers().departures();
  if (std::exchange(departures_before_, departures) != departures) {
    account_anew_ = true;
    next_account_ns_ = 0;
  }
  const bool begins = account_anew_ || (may_have_lost_ && !allocator_.accounting());
  if (begins && !taking_over_) {
    may_have_lost_ = account_anew_ = false;
    allocator_.BeginAccount();
  }
  const bool leaves = allocator_.leaving_blocks() != 0 && leaving_looks_.in_vain != 0;
  const bool is_due = allocator_.accounting() && (allocator_.is_scarce() || always || leaves) &&
                      context_.executor.NowNs() >= next_account_ns_;
  const bool may_go_on = allocator_.AccountMayGoOn() || Planted(Bug::kAccountedAtOnce);
  if (is_due && may_go_on && !held() && !taking_over_) context_.executor.Spawn(gate_, Account());
}

Task<void> KvImpl::Account() {
  const uint64_t found_before = allocator_.metrics().objects_found.Value();
  const Status status = co_await FreeLost();
  const uint64_t found = allocator_.metrics().objects_found.Value() - found_before;
  if (status.ok()) allocator_.EndAccount();
  // One that has found nothing makes the next wait longer.
  const bool is_urgent = found > 0 || !status.ok() || allocator_.leaving_blocks() != 0;
  account_rests_ = is_urgent ? 1 : std::min(2 * account_rests_, kRestsMax);
  next_account_ns_ =
      context_.executor.NowNs() + account_rests_ * context_.options.account_rest_us * 1000;
  if (found > 0) {
    LogInfo("freed " + std::to_string(found) + " objects that nothing named any more");
  }
}

Task<Status> KvImpl::FreeLost() {
  // Who takes blocks over inherits, too.
  if (std::exchange(taking_over_, true)) co_return kBusy;
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kAccount);
  if (registers_) registers_->cache.BeginInheriting();
  const absl::Cleanup done = [this] {
    taking_over_ = false;
    if (registers_) registers_->cache.EndInheriting();
  };
  Estate estate(context_, /*is_of_the_dead=*/false);
  for (const Allocator::Suspects& block : allocator_.SuspectBlocks()) {
    estate.blocks.Add(block.start, block.size_class, context_.membership.id);
  }
  const std::shared_ptr<const View> view = context_.master.view();
  Status status = co_await LookAtNames(estate, *view);
  if (!status.ok()) co_return status;
  TellUnnamed(estate);
  status = co_await AwaitUnlinked();
  // What this worker alone knows of it gives back itself.
  if (registers_ && !Planted(Bug::kOwnBuffersLost)) {
    registers_->cache.ForEachLive([this](GlobalAddr addr) { allocator_.KnowOf(addr); });
  }
  index_.ForEachUnnamed([this](GlobalAddr addr) { allocator_.KnowOf(addr); });
  for (auto block = estate.blocks.blocks().begin();
       status.ok() && block != estate.blocks.blocks().end(); ++block) {
    if (stopping_ || context_.hold.held()) co_return kHeld;
    status = co_await FreeLostOf(estate, block->second);
  }
  co_return status;
}

void KvImpl::TellUnnamed(const Estate& estate) {
  if (context_.memory_observer == nullptr) return;
  for (const auto& [start, block] : estate.blocks.blocks()) {
    for (size_t i = 0; i < block.named.size(); ++i) {
      const GlobalAddr addr = ObjectAddr(block.start, block.size_class, static_cast<uint16_t>(i));
      if (!block.named[i] && allocator_.IsSuspect(addr)) context_.memory_observer->Unnamed(addr);
    }
  }
}

Task<Status> KvImpl::FreeLostOf(Estate& estate, const OrphanBlocks::Block& block) {
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) co_return kHeld;
  const Status collected = co_await allocator_.CollectForAccount(block.start);
  // Another time.
  if (!collected.ok()) co_return Status::Ok();
  const auto found = estate.buffers.find(block.start.bits());
  if (found != estate.buffers.end()) {
    for (const NamedBuffer& named : found->second) {
      const GlobalAddr addr = named.buffer.addr;
      if (named.buffer_class != block.size_class || !allocator_.IsSuspect(addr)) continue;
      registers_->cache.Inherit(named.ref, named.buffer_class, named.buffer);
      allocator_.KnowOf(addr);
    }
  }
  for (size_t i = 0; i < block.named.size(); ++i) {
    const GlobalAddr addr = ObjectAddr(block.start, block.size_class, static_cast<uint16_t>(i));
    if (!block.named[i] && allocator_.IsSuspect(addr)) allocator_.FreeLost(addr);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
