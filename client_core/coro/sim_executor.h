// SimExecutor: the deterministic executor of tests and of the simulation, and SimProcess: one of
// several processes that live in its time.
//
// Virtual time stands still while anything is ready and then jumps to the next timer. Everything
// that happens follows from the seed and the program: ready coroutines run first come first served,
// timers in order of (time, sequence), processes in turn, and randomness comes from the seeded Rng.
#ifndef ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_
#define ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/fiber.h"

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

  // `process` stands still for `ns` amid a turn, and all others go on meanwhile, those that stand
  // still amid a turn of theirs included, as on cores of their own. What the world has to do,
  // except timers that may fire then, waits until every process is between two turns: no new turn
  // begins meanwhile, and who is amid one does not stand still for longer than a moment. Outside of
  // a turn of `process` that has a stack of its own this does nothing.
  void StandStill(SimProcess& process, uint64_t ns);

  // The longest time by which something has come late because a process was amid a turn.
  [[nodiscard]] uint64_t held_up_max_ns() const { return held_up_max_ns_; }

  // Steps taken since the beginning; part of a run's trace.
  [[nodiscard]] uint64_t steps() const { return steps_; }
  // The virtual clock; tests may move it.
  ManualClock& manual_clock() { return manual_clock_; }

 private:
  friend class SimProcess;

  // One step among what is ready now, without moving the clock.
  bool RunReady();
  // The same while a process is amid a turn.
  bool RunReadyAmidTurn();
  // One step of a process, if one has something to do now; `amid_turn`: of one that is amid a turn.
  bool RunAProcess(bool amid_turn);
  // True if a process is amid a turn, and something of the world waits until none is.
  [[nodiscard]] bool IsHeldUp() const;
  void NoteHeldUp(uint64_t late_ns);
  // When the next timer of the world or of a process is due; kNever if there is none.
  [[nodiscard]] uint64_t EarliestNs() const;
  // The same right behind a RunReady() that has found nothing.
  [[nodiscard]] uint64_t EarliestOfScan() const;

  std::vector<SimProcess*> processes_;  // in the order of their creation
  size_t next_process_ = 0;
  uint64_t steps_ = 0;
  uint32_t amid_turn_ = 0;                    // processes
  std::optional<uint64_t> held_up_since_ns_;  // something of the world
  uint64_t held_up_max_ns_ = 0;
  // When processes have something to do next, as the last RunAProcess() saw it; nothing if it
  // asked one of them.
  std::optional<uint64_t> seen_earliest_ns_;
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

  // Its turns are on a stack of their own from now on, so that it can stand still amid one.
  void UseOwnStack();

  // Executor::Spawn; what begins at once is a part of a turn, in which a paused process does not
  // stand still.
  bool Spawn(Gate& gate, Task<void> task);

  // Between the two nothing of the process runs; what becomes ready or due meanwhile waits.
  // REQUIRES: not amid a turn.
  void Pause();
  void Resume() { paused_ = false; }
  // Nothing of the process runs any more, but what is left of a turn that it is amid: that is over
  // when this returns, or it is the caller. Its frames go when DropBackground() is called.
  void Kill();
  [[nodiscard]] bool dead() const { return dead_; }

  SkewedClock& skewed_clock() { return skewed_clock_; }

 private:
  friend class SimExecutor;
  // When RunReady() may have something to do, `world_ns` being now; kNever: not before others act.
  [[nodiscard]] uint64_t MayRunNs(uint64_t world_ns) const {
    const bool has_work = !ready_.empty() || (stack_ == nullptr && has_pollers());
    const bool may_begin = has_work && !paused_ && !dead_ && !amid_turn();
    return may_begin ? world_ns : EarliestWorldNs();
  }
  bool RunReady();
  // One step of the executor; returns whether there was one.
  bool TakeTurn();
  // Begins a turn on its own stack, or goes on with it.
  void GoOn();
  // Ends the turn that it is amid, if any, without standing still.
  void FinishTurn();
  [[nodiscard]] bool amid_turn() const { return amid_turn_; }
  // When it has something to do next; kNever while it is paused.
  [[nodiscard]] uint64_t EarliestWorldNs() const {
    if (paused_ || dead_) return TimerHeap::kNever;
    return amid_turn() ? goes_on_ns_ : TimerWorldNs();
  }
  // When its next timer is due, by the world's clock.
  [[nodiscard]] uint64_t TimerWorldNs() const {
    const uint64_t local_ns = timers().EarliestNs();
    if (local_ns == TimerHeap::kNever) return local_ns;
    if (earliest_local_ns_ != local_ns || changes_seen_ != skewed_clock_.changes()) {
      SeeTimer(local_ns);
    }
    return earliest_world_ns_;
  }
  void SeeTimer(uint64_t local_ns) const;

  struct Spawned {
    Gate& gate;
    Task<void> task;
  };

  SimExecutor& world_;
  // The earliest timer's time by the process's clock and by the world's, since the last change.
  mutable uint64_t earliest_local_ns_ = 0;
  mutable uint64_t earliest_world_ns_ = 0;
  mutable uint64_t changes_seen_ = 0;
  bool paused_ = false;
  bool dead_ = false;
  bool amid_turn_ = false;          // as stack_ says
  std::unique_ptr<Fiber> stack_;    // null: it cannot stand still amid a turn
  std::optional<Spawned> spawned_;  // the next turn begins with it
  bool gate_was_open_ = true;
  bool timers_are_next_ = false;
  uint64_t goes_on_ns_ = 0;  // amid a turn: until then it stands still
  bool hurries_ = false;     // it does not stand still
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_SIM_EXECUTOR_H_
