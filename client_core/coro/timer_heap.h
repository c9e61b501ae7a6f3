// Timers of one executor, ordered by (time, sequence): equal times fire in the order they were
// added, which a deterministic simulation needs.
//
// Timers are intrusive: they live in whatever waits (a coroutine frame, mostly), and their
// destructor takes them out. Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_CORO_TIMER_HEAP_H_
#define ONETRIP_CLIENT_CORE_CORO_TIMER_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onetrip {

class Executor;
class TimerHeap;

class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  // Cancels the timer if it is pending.
  virtual ~Timer();

  // Called from the executor's loop; the timer is no longer pending and may be added again,
  // or destroyed.
  virtual void Fire() = 0;
  // The heap dies while the timer is pending. A timer that owns itself frees itself here.
  virtual void Dropped() {}
  // True if it may fire while a process of the simulation is amid a turn: it touches no process but
  // by making coroutines ready.
  [[nodiscard]] virtual bool may_fire_amid_turn() const { return false; }

  [[nodiscard]] bool pending() const { return heap_ != nullptr; }
  // No effect unless pending.
  void Cancel();

 private:
  friend class TimerHeap;
  TimerHeap* heap_ = nullptr;
  size_t index_ = 0;  // In the heap's array, while pending.
  uint64_t time_ns_ = 0;
  uint64_t sequence_ = 0;
};

class TimerHeap {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit TimerHeap(Executor& executor) : executor_(executor) {}
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;
  // Timers still pending are dropped, not fired.
  ~TimerHeap();

  // Borrows `timer` until it fires, is cancelled or dies. REQUIRES: not pending.
  void Add(Timer* timer, uint64_t time_ns);
  void Remove(Timer* timer);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] size_t size() const { return heap_.size(); }
  // Time of the earliest timer, kNever when there is none.
  [[nodiscard]] uint64_t EarliestNs() const {
    return heap_.empty() ? kNever : heap_.front().time_ns;
  }

  // Null if there is none.
  [[nodiscard]] const Timer* earliest() const {
    return heap_.empty() ? nullptr : heap_.front().timer;
  }

  // Fires the earliest timer if its time is at most `now_ns`; returns whether one fired.
  bool FireOne(uint64_t now_ns);
  // Fires every timer due at `now_ns`, but none that is added meanwhile; returns how many.
  size_t FireDue(uint64_t now_ns);

 private:
  struct Entry {
    uint64_t time_ns;
    uint64_t sequence;
    Timer* timer;
    bool operator<(const Entry& other) const {
      return time_ns != other.time_ns ? time_ns < other.time_ns : sequence < other.sequence;
    }
  };
  void Place(size_t index, const Entry& entry);
  void SiftUp(size_t index, Entry entry);
  void SiftDown(size_t index, Entry entry);

  Executor& executor_;
  uint64_t next_sequence_ = 0;
  std::vector<Entry> heap_;
};

inline Timer::~Timer() {
  if (heap_ != nullptr) heap_->Remove(this);
}

inline void Timer::Cancel() {
  if (heap_ != nullptr) heap_->Remove(this);
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_TIMER_HEAP_H_
