// Executor: everything protocol code may ask of the thread it runs on.
//
// One executor per worker thread, and everything on it is single-threaded: coroutines, timers and
// pollers run on that thread only, so none of them locks. Time, randomness and the order of
// execution come from here and from nowhere else; that is why a simulation can run production code
// unmodified (see sim_executor.h; the real one is loop_executor.h).
//
// A turn is one round of the loop: ready coroutines, then pollers, then sockets, then
// timers.
#ifndef ONETRIP_CLIENT_CORE_CORO_EXECUTOR_H_
#define ONETRIP_CLIENT_CORE_CORO_EXECUTOR_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/base/rng.h"
#include "client_core/coro/task.h"
#include "client_core/coro/timer_heap.h"

namespace onetrip {

class Gate;  // sync.h

// Something to look at once per turn, such as a completion queue.
class Poller {
 public:
  virtual ~Poller() = default;
  // Returns whether it did work, or wants the next turn at once: the executor sleeps only after a
  // turn in which every poller returned false. Must not block.
  virtual bool Poll() = 0;
};

class Executor {
 public:
  // Borrows `clock`, which outlives the executor.
  Executor(const Clock& clock, uint64_t seed) : clock_(clock), rng_(seed), timers_(*this) {}
  virtual ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  [[nodiscard]] const Clock& clock() const { return clock_; }
  // Nanoseconds of the executor's steady clock.
  [[nodiscard]] uint64_t NowNs() const { return clock_.NowNs(); }
  Rng& rng() { return rng_; }

  // Resumes `handle` in a later turn, first come first served. The frame must live until then.
  void Schedule(std::coroutine_handle<> handle) { ready_.Push(handle); }

  // `co_await executor.Yield()`: goes on in a later turn, behind everything that is ready now.
  auto Yield() {
    struct Awaiter {
      Executor& executor;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> handle) const { executor.Schedule(handle); }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this};
  }

  // `co_await executor.SleepFor(ns)`: goes on `delay_ns` nanoseconds from now or a little later.
  // Destroying the sleeping frame cancels the timer.
  auto SleepFor(uint64_t delay_ns) { return SleepAwaiter(*this, NowNs() + delay_ns); }
  // The same, at an absolute time of NowNs().
  auto SleepUntil(uint64_t time_ns) { return SleepAwaiter(*this, time_ns); }

  // Calls fn(arg) from the loop once NowNs() >= time_ns; calls due at the same time keep the order
  // in which they were asked for. There is no way to take one back: `arg` must live until then or
  // until the executor is destroyed, which drops what is left.
  void At(uint64_t time_ns, void (*fn)(void*), void* arg);

  // Runs `task` in the background, starting inline, and holds `gate` until it ends. Returns false
  // and drops the task unstarted when the gate is closed.
  bool Spawn(Gate& gate, Task<void> task);

  // Destroys every background coroutine that has not ended, wherever it is suspended: what the
  // death of a process does to its work. REQUIRES: called from outside the loop, and nothing of
  // them is resumed later.
  void DropBackground();

  // Borrows `poller` until RemovePoller. Neither may be called from inside Poll().
  void AddPoller(Poller* poller);
  void RemovePoller(Poller* poller);

  // Runs one step of the loop, waiting if need be for something to happen. Returns false when
  // nothing is left that could ever happen. REQUIRES: not called from within the loop.
  virtual bool RunOnce() = 0;

  [[nodiscard]] TimerHeap& timers() { return timers_; }
  [[nodiscard]] const TimerHeap& timers() const { return timers_; }

 protected:
  // The ready coroutines, in a growing ring.
  class ReadyQueue {
   public:
    void Push(std::coroutine_handle<> handle) {
      if (tail_ - head_ == slots_.size()) Grow();
      slots_[tail_++ & (slots_.size() - 1)] = handle.address();
    }
    std::coroutine_handle<> Pop() {
      return std::coroutine_handle<>::from_address(slots_[head_++ & (slots_.size() - 1)]);
    }
    [[nodiscard]] size_t size() const { return tail_ - head_; }
    [[nodiscard]] bool empty() const { return tail_ == head_; }

   private:
    void Grow();
    std::vector<void*> slots_;  // A power of two of them.
    size_t head_ = 0;
    size_t tail_ = 0;
  };

  // One Poll() of every poller; returns whether any did work.
  bool PollAll();
  [[nodiscard]] bool has_pollers() const { return !pollers_.empty(); }
  // A timer became the earliest one; the loop may have to wake up sooner.
  virtual void OnEarliestTimerChanged() {}

  ReadyQueue ready_;

 private:
  friend class TimerHeap;
  friend struct Background;

  // A coroutine that Spawn runs in the background and that has suspended: a ring of them.
  struct BackgroundLink {
    BackgroundLink* next = this;
    BackgroundLink* previous = this;
    std::coroutine_handle<> handle;
  };

  class SleepAwaiter final : public Timer {
   public:
    SleepAwaiter(Executor& executor, uint64_t time_ns) : executor_(executor), time_ns_(time_ns) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      handle_ = handle;
      executor_.timers().Add(this, time_ns_);
    }
    void await_resume() const noexcept {}
    void Fire() override { handle_.resume(); }

   private:
    Executor& executor_;
    uint64_t time_ns_;
    std::coroutine_handle<> handle_;
  };

  const Clock& clock_;
  Rng rng_;
  TimerHeap timers_;
  std::vector<Poller*> pollers_;
  BackgroundLink background_;
};

// Runs the executor until `task` has ended and returns its result; for tests and for main.
// REQUIRES: not called from within the executor's loop, and the task can end.
template <typename T>
T BlockOn(Executor& executor, Task<T> task) {
  task.Start();
  while (!task.done()) CHECK(executor.RunOnce() || task.done());
  return task.TakeResult();
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_EXECUTOR_H_
