#include "client_core/coro/sim_executor.h"

#include <algorithm>
#include <utility>

namespace onetrip {
namespace {

constexpr int64_t kMillion = 1'000'000;
// How long a process may stand still amid a turn that the world waits for.
constexpr uint64_t kMomentNs = 20;

}  // namespace

bool SimExecutor::RunReady() {
  if (amid_turn_ > 0) return RunReadyAmidTurn();
  if (held_up_since_ns_) NoteHeldUp(NowNs() - *std::exchange(held_up_since_ns_, std::nullopt));
  if (!ready_.empty()) {
    ready_.Pop().resume();
    return true;
  }
  return PollAll() || timers().FireOne(NowNs()) || RunAProcess(/*amid_turn=*/false);
}

bool SimExecutor::RunReadyAmidTurn() {
  if (!IsHeldUp()) {
    held_up_since_ns_.reset();
    return timers().FireOne(NowNs()) || RunAProcess(/*amid_turn=*/false);
  }
  if (!held_up_since_ns_) {
    held_up_since_ns_ = NowNs();
    for (SimProcess* process : processes_) {
      process->goes_on_ns_ = std::min(process->goes_on_ns_, NowNs() + kMomentNs);
    }
  }
  return RunAProcess(/*amid_turn=*/true);
}

bool SimExecutor::IsHeldUp() const {
  if (amid_turn_ == 0) return false;
  return !ready_.empty() ||
         (timers().EarliestNs() <= NowNs() && !timers().earliest()->may_fire_amid_turn());
}

void SimExecutor::NoteHeldUp(uint64_t late_ns) {
  held_up_max_ns_ = std::max(held_up_max_ns_, late_ns);
}

bool SimExecutor::RunAProcess(bool amid_turn) {
  const size_t count = processes_.size();
  const uint64_t now_ns = manual_clock_.NowNs();
  size_t at = count == 0 ? 0 : next_process_ % count;
  uint64_t earliest_ns = TimerHeap::kNever;
  bool has_asked = false;
  seen_earliest_ns_.reset();
  for (size_t i = 0; i < count; ++i) {
    SimProcess* process = processes_[at];
    ++next_process_;
    if (++at == count) at = 0;
    if (amid_turn && !process->amid_turn()) continue;
    const uint64_t may_run_ns = process->MayRunNs(now_ns);
    if (may_run_ns > now_ns) {
      earliest_ns = std::min(earliest_ns, may_run_ns);
      continue;
    }
    if (process->RunReady()) return true;
    has_asked = true;
  }
  if (!has_asked) seen_earliest_ns_ = earliest_ns;
  return false;
}

uint64_t SimExecutor::EarliestNs() const {
  const bool held_up = IsHeldUp();
  uint64_t earliest_ns = held_up ? TimerHeap::kNever : timers().EarliestNs();
  for (const SimProcess* process : processes_) {
    if (held_up && !process->amid_turn()) continue;
    earliest_ns = std::min(earliest_ns, process->EarliestWorldNs());
  }
  return earliest_ns;
}

uint64_t SimExecutor::EarliestOfScan() const {
  if (!seen_earliest_ns_) return EarliestNs();
  return IsHeldUp() ? *seen_earliest_ns_ : std::min(*seen_earliest_ns_, timers().EarliestNs());
}

bool SimExecutor::RunOnce() {
  if (!RunReady()) {
    const uint64_t earliest_ns = EarliestOfScan();
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

void SimExecutor::StandStill(SimProcess& process, uint64_t ns) {
  if (process.hurries_ || process.stack_ == nullptr || !process.stack_->running()) return;
  process.goes_on_ns_ = NowNs() + (IsHeldUp() ? std::min(ns, kMomentNs) : ns);
  process.stack_->Suspend();
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
  CHECK(!amid_turn());
  auto& processes = world_.processes_;
  processes.erase(std::find(processes.begin(), processes.end(), this));
}

void SimProcess::UseOwnStack() {
  if (stack_ != nullptr) return;
  stack_ = std::make_unique<Fiber>([this] {
    if (!spawned_) {
      TakeTurn();
      return;
    }
    Spawned spawned = std::move(*spawned_);
    spawned_.reset();
    gate_was_open_ = true;  // the caller looks when the task may have stood still
    if (!Executor::Spawn(spawned.gate, std::move(spawned.task))) gate_was_open_ = false;
  });
}

bool SimProcess::Spawn(Gate& gate, Task<void> task) {
  if (stack_ == nullptr || stack_->running()) return Executor::Spawn(gate, std::move(task));
  FinishTurn();
  spawned_.emplace(Spawned{gate, std::move(task)});
  hurries_ = paused_;
  GoOn();
  hurries_ = false;
  return gate_was_open_;
}

void SimProcess::Pause() {
  CHECK(!amid_turn());
  paused_ = true;
}

void SimProcess::Kill() {
  dead_ = true;
  FinishTurn();
}

void SimProcess::GoOn() {
  const bool was_amid_turn = std::exchange(amid_turn_, true);
  stack_->Resume();
  amid_turn_ = stack_->amid_turn();
  if (was_amid_turn != amid_turn_) was_amid_turn ? --world_.amid_turn_ : ++world_.amid_turn_;
}

void SimProcess::FinishTurn() {
  if (!amid_turn() || stack_->running()) return;
  hurries_ = true;
  GoOn();
  hurries_ = false;
  CHECK(!amid_turn());
}

bool SimProcess::RunReady() {
  if (stack_ == nullptr) return TakeTurn();
  if (amid_turn()) world_.NoteHeldUp(world_.NowNs() - goes_on_ns_);
  GoOn();
  return true;
}

bool SimProcess::TakeTurn() {
  const auto fire_one = [this] {
    return TimerWorldNs() <= world_.NowNs() && timers().FireOne(NowNs());
  };
  // Time may have passed in a turn: coroutines that yield again and again keep no timer waiting.
  if (std::exchange(timers_are_next_, false) && fire_one()) return true;
  if (!ready_.empty()) {
    timers_are_next_ = stack_ != nullptr;
    ready_.Pop().resume();
    return true;
  }
  return PollAll() || fire_one();
}

void SimProcess::SeeTimer(uint64_t local_ns) const {
  earliest_local_ns_ = local_ns;
  changes_seen_ = skewed_clock_.changes();
  earliest_world_ns_ = skewed_clock_.WorldNs(local_ns);
}

}  // namespace onetrip
