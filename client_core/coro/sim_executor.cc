#include "client_core/coro/sim_executor.h"

#include <algorithm>
#include <utility>

namespace onetrip {
namespace {

constexpr int64_t kMillion = 1'000'000;

}  // namespace

bool SimExecutor::RunReady() {
  if (!ready_.empty()) {
    ready_.Pop().resume();
    return true;
  }
  return PollAll() || timers().FireOne(NowNs()) || RunAProcess();
}

bool SimExecutor::RunAProcess() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    SimProcess* process = processes_[next_process_++ % processes_.size()];
    if (process->RunReady()) return true;
  }
  return false;
}

uint64_t SimExecutor::EarliestNs() const {
  uint64_t earliest_ns = timers().EarliestNs();
  for (const SimProcess* process : processes_) {
    earliest_ns = std::min(earliest_ns, process->EarliestWorldNs());
  }
  return earliest_ns;
}

bool SimExecutor::RunOnce() {
  if (!RunReady()) {
    const uint64_t earliest_ns = EarliestNs();
    if (earliest_ns == TimerHeap::kNever) return false;
    manual_clock_.AdvanceTo(earliest_ns);
    RunReady();
  }
  ++steps_;
  return true;
}

bool SimExecutor::RunUntilIdle(uint64_t max_steps) {
  for (uint64_t i = 0; i < max_steps; ++i) {
    if (!RunOnce()) return true;
  }
  return ready_.empty() && EarliestNs() == TimerHeap::kNever;
}

void SimExecutor::RunUntil(uint64_t time_ns) {
  for (;;) {
    if (RunReady()) {
      ++steps_;
    } else if (EarliestNs() <= time_ns) {
      RunOnce();
    } else {
      break;
    }
  }
  manual_clock_.AdvanceTo(time_ns);
}

bool SimExecutor::RunReadyAmidTurn() {
  if (!ready_.empty()) return false;
  if (timers().EarliestNs() > NowNs()) return RunAProcess();
  return timers().earliest()->may_fire_amid_turn() && timers().FireOne(NowNs());
}

void SimExecutor::StandStill(SimProcess& process, uint64_t ns) {
  const uint64_t until_ns = NowNs() + ns;
  CHECK(!std::exchange(process.amid_turn_, true));
  while (true) {
    if (RunReadyAmidTurn()) {
      ++steps_;
      continue;
    }
    const uint64_t earliest_ns = EarliestNs();
    if (earliest_ns <= NowNs() || earliest_ns > until_ns) break;
    manual_clock_.AdvanceTo(earliest_ns);
  }
  manual_clock_.AdvanceTo(until_ns);
  process.amid_turn_ = false;
}

uint64_t SkewedClock::LocalNs(uint64_t world_ns) const {
  int64_t local_ns = static_cast<int64_t>(world_ns) + offset_ns_;
  if (drift_ppm_ != 0) {
    const auto elapsed_ns = static_cast<int64_t>(world_ns - since_ns_);
    local_ns += elapsed_ns / kMillion * drift_ppm_ + elapsed_ns % kMillion * drift_ppm_ / kMillion;
  }
  return std::max(floor_ns_, static_cast<uint64_t>(std::max<int64_t>(local_ns, 0)));
}

void SkewedClock::Step(int64_t delta_ns) {
  const uint64_t world_ns = world_.NowNs();
  const uint64_t local_ns = LocalNs(world_ns);
  floor_ns_ = local_ns;
  offset_ns_ = static_cast<int64_t>(local_ns) - static_cast<int64_t>(world_ns) + delta_ns;
  since_ns_ = world_ns;
  ++changes_;
}

void SkewedClock::SetDriftPpm(int64_t ppm) {
  Step(0);
  drift_ppm_ = ppm;
}

uint64_t SkewedClock::WorldNs(uint64_t local_ns) const {
  const uint64_t now_ns = world_.NowNs();
  const uint64_t now_local_ns = LocalNs(now_ns);
  if (now_local_ns >= local_ns) return now_ns;
  const auto since_ns = static_cast<int64_t>(since_ns_);
  const int64_t ahead_ns = static_cast<int64_t>(local_ns) - offset_ns_ - since_ns;
  const int64_t elapsed_ns =
      ahead_ns / (kMillion + drift_ppm_) * kMillion +
      ahead_ns % (kMillion + drift_ppm_) * kMillion / (kMillion + drift_ppm_);
  // Rounding is off by a few at most; the clock itself decides.
  auto world_ns = std::max(now_ns, static_cast<uint64_t>(since_ns + elapsed_ns));
  while (LocalNs(world_ns) < local_ns) ++world_ns;
  while (world_ns > now_ns && LocalNs(world_ns - 1) >= local_ns) --world_ns;
  return world_ns;
}

SimProcess::SimProcess(SimExecutor& world, uint64_t seed)
    : SkewedClockHolder(world.manual_clock()), Executor(skewed_clock_, seed), world_(world) {
  world_.processes_.push_back(this);
}

SimProcess::~SimProcess() {
  auto& processes = world_.processes_;
  processes.erase(std::find(processes.begin(), processes.end(), this));
}

bool SimProcess::RunReady() {
  if (paused_ || dead_ || amid_turn_) return false;
  if (!ready_.empty()) {
    ready_.Pop().resume();
    return true;
  }
  if (PollAll()) return true;
  return EarliestWorldNs() <= world_.NowNs() && timers().FireOne(NowNs());
}

uint64_t SimProcess::EarliestWorldNs() const {
  if (paused_ || dead_ || amid_turn_) return TimerHeap::kNever;
  const uint64_t local_ns = timers().EarliestNs();
  if (local_ns == TimerHeap::kNever) return local_ns;
  if (earliest_local_ns_ != local_ns || changes_seen_ != skewed_clock_.changes()) {
    earliest_local_ns_ = local_ns;
    changes_seen_ = skewed_clock_.changes();
    earliest_world_ns_ = skewed_clock_.WorldNs(local_ns);
  }
  return earliest_world_ns_;
}

}  // namespace onetrip
