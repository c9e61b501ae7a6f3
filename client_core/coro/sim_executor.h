// SimExecutor: the deterministic executor of tests and of the simulation, and SimProcess: one of
// several processes that live in its time.
//
// Virtual time stands still while anything is ready and then jumps to the next timer. Everything
// that happens follows from the seed and the program: ready coroutines run first come first served,
// timers in order of (time, sequence), processes in turn, and randomness comes from the seeded Rng.
#ifndef ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_
#define ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_

#include <cstdint>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"

namespace onetrip {

class SimProcess;

// A base class of SimExecutor, so that the clock lives before and after the Executor part.
class SimClockHolder {
 protected:
  ManualClock manual_clock_;
};

class SimExecutor final : private SimClockHolder, public Executor {
 public:
  explicit SimExecutor(uint64_t seed) : Executor(manual_clock_, seed) {}

  // One step: resumes the first ready coroutine; else polls; else fires a due timer; else lets a
  // process do one of these; else jumps to the earliest timer of all and fires it. Returns false
  // when idle: nothing ready, no poller with work, no timer.
  bool RunOnce() override;

  // Steps until idle, at most `max_steps` times; returns whether it went idle. A program that does
  // not come to rest within its bound is a finding, not a reason to wait.
  bool RunUntilIdle(uint64_t max_steps = 100'000'000);

  // Steps while something is due at or before `time_ns`, then sets the clock to it.
  void RunUntil(uint64_t time_ns);

  // `process` stands still for `ns` amid a turn, and the others go on meanwhile: the steps of other
  // processes that are not amid one, and the world's timers that may fire then. Whatever else the
  // world has to do comes late, once every process is between two turns; the others stop for it.
  void StandStill(SimProcess& process, uint64_t ns);

  // Steps taken since the beginning; part of a run's trace.
  [[nodiscard]] uint64_t steps() const { return steps_; }
  // The virtual clock; tests may move it.
  ManualClock& manual_clock() { return manual_clock_; }

 private:
  friend class SimProcess;

  // One step among what is ready now, without moving the clock.
  bool RunReady();
  // The same among what may run while a process is amid a turn.
  bool RunReadyAmidTurn();
  // One step of a process, if one has something to do now.
  bool RunAProcess();
  // When the next timer of the world or of a process is due; kNever if there is none.
  [[nodiscard]] uint64_t EarliestNs() const;

  std::vector<SimProcess*> processes_;  // in the order of their creation
  size_t next_process_ = 0;
  uint64_t steps_ = 0;
};

// The clock of one process: the world's, set off, running fast or slow, and stepping.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(const ManualClock& world) : world_(world) {}

  [[nodiscard]] uint64_t NowNs() const override { return LocalNs(world_.NowNs()); }
  [[nodiscard]] uint64_t UnixUs() const override { return world_.UnixUs(); }

  // Ahead of the world by `delta_ns` more than until now. A steady clock may jump forward (a host
  // that slept); it never goes back, so a negative step holds it still until the world catches up.
  void Step(int64_t delta_ns);
  // From now on gains `ppm` microseconds a second.
  void SetDriftPpm(int64_t ppm);

  // The world's time at which this clock first shows `local_ns` or more.
  [[nodiscard]] uint64_t WorldNs(uint64_t local_ns) const;
  // How often the clock has been changed: what WorldNs said before holds no more after one.
  [[nodiscard]] uint64_t changes() const { return changes_; }

 private:
  [[nodiscard]] uint64_t LocalNs(uint64_t world_ns) const;

  const ManualClock& world_;
  uint64_t since_ns_ = 0;  // world time of the last change
  int64_t offset_ns_ = 0;  // local time less world time, at since_ns_
  uint64_t floor_ns_ = 0;  // never shows less
  int64_t drift_ppm_ = 0;
  uint64_t changes_ = 0;
};

// A base class of SimProcess, for the same reason as SimClockHolder.
class SkewedClockHolder {
 protected:
  explicit SkewedClockHolder(const ManualClock& world) : skewed_clock_(world) {}
  SkewedClock skewed_clock_;
};

// The executor of one process (an agent's worker, a client) in the world of a SimExecutor, which it
// does not outlive. Its steps are steps of the world; it may be paused, and it may die.
class SimProcess final : private SkewedClockHolder, public Executor {
 public:
  SimProcess(SimExecutor& world, uint64_t seed);
  ~SimProcess() override;

  // A step of the whole world, so that BlockOn works on a process.
  bool RunOnce() override { return world_.RunOnce(); }

  // Between the two nothing of the process runs; what becomes ready or due meanwhile waits.
  void Pause() { paused_ = true; }
  void Resume() { paused_ = false; }
  // Nothing of the process runs any more. Its frames go when DropBackground() is called.
  void Kill() { dead_ = true; }
  [[nodiscard]] bool dead() const { return dead_; }

  SkewedClock& skewed_clock() { return skewed_clock_; }

 private:
  friend class SimExecutor;
  bool RunReady();
  [[nodiscard]] uint64_t EarliestWorldNs() const;

  SimExecutor& world_;
  // The earliest timer's time by the process's clock and by the world's, since the last change.
  mutable uint64_t earliest_local_ns_ = 0;
  mutable uint64_t earliest_world_ns_ = 0;
  mutable uint64_t changes_seen_ = 0;
  bool paused_ = false;
  bool dead_ = false;
  bool amid_turn_ = false;  // stands still
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_
