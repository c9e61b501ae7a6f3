// The background work that runs beside the operations.
#include "client_core/kv/chores/chores.h"

namespace onetrip {

void Chores::StartTicks() {
  core_.context.executor.timers().Add(
      &tick_timer_, core_.context.executor.NowNs() + core_.context.options.epoch_tick_us * 1000);
}

void Chores::OnTick() {
  core_.context.ForgetFormerViews();
  // No worker waits for the epochs of a cluster in which nothing was retired: then this worker only
  // looks, ten times more rarely, if that is still so, and publishes at every other look.
  constexpr uint64_t kQuietFactor = 10;
  constexpr uint32_t kQuietTicks = 2;
  // Nor for memory that this worker could give.
  const bool quiet = core_.allocator.retired_count() == 0 &&
                     core_.reclaimer.others_retired_bytes() == 0 && !core_.allocator.is_scarce() &&
                     !core_.allocator.gives();
  quiet_ticks_ = quiet ? quiet_ticks_ + 1 : 0;
  if (quiet_ticks_ % kQuietTicks == 0 && !core_.context.quiesce.holds_all()) {
    core_.context.executor.Spawn(core_.gate, core_.allocator.Maintain());
  }
  expiry.WalkForExpiredIfDue();
  leaver.SeeToLeavingIfDue();
  lost.AccountIfDue(leaver.looks_in_vain());
  compactor.CompactIfScarce();
  uint32_t entry = 0;
  if (!finishing_splits_ && !core_.held() && core_.index.MetUnfinishedSplit(&entry)) {
    core_.context.executor.Spawn(core_.gate, FinishSplits());
  }
  const uint64_t tick_ns = core_.context.options.epoch_tick_us * 1000;
  core_.context.executor.timers().Add(
      &tick_timer_, core_.context.executor.NowNs() + (quiet ? kQuietFactor * tick_ns : tick_ns));
}

// The workers that began them have ended, or given up. What fails is tried again at a later tick.
Task<void> Chores::FinishSplits() {
  finishing_splits_ = true;
  Quiesce::InFlightGuard in_flight(core_.context.quiesce);
  Status status;
  for (uint32_t entry = 0;
       status.ok() && !core_.stopping && core_.index.MetUnfinishedSplit(&entry);) {
    status = co_await core_.index.FinishSplit(in_flight, entry);
  }
  finishing_splits_ = false;
}

}  // namespace onetrip
