// LoopExecutor: the executor of a worker thread, over one libevent loop.
//
// A turn costs one epoll_wait and what the sockets themselves ask for. Timers of the executor fire
// through one timerfd that is armed only when an earlier deadline appears, so a turn without a
// nearer deadline pays no timer system call (libevent's own precise timers cost a timerfd_settime
// in every turn, and its plain ones round 50 us up to milliseconds).
//
// Everything is used on the loop's thread only, except Post() and Stop().
#ifndef ONETRIP_CLIENT_CORE_CORO_LOOP_EXECUTOR_H_
#define ONETRIP_CLIENT_CORE_CORO_LOOP_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"

struct event;
struct event_base;

namespace onetrip {

class LoopExecutor final : public Executor {
 public:
  // CHECKs that the process can open the four descriptors a loop needs.
  LoopExecutor(const Clock& clock, uint64_t seed);
  // REQUIRES: not running. Coroutines that never ended are not destroyed.
  ~LoopExecutor() override;

  // Turns until Stop(). Blocks in the kernel whenever there is nothing to do.
  void Run();
  // Makes Run() return after the turn it is in; remembered if it is not running. Any thread, and
  // signal handlers.
  void Stop();
  // Runs `fn` on the loop's thread in a later turn, in the order of posting. Any thread. What was
  // posted and has not run when the executor dies is dropped.
  void Post(std::function<void()> fn);

  // One turn, waiting for an event if there was nothing else to do. Always true.
  bool RunOnce() override;

  // Calls fn(arg) in every turn, after coroutines and pollers and before the loop may sleep until a
  // socket or a timer is due: the place to flush what has been produced since the last call. Hooks
  // stay for the executor's life.
  void AddBeforeSleep(void (*fn)(void*), void* arg) { before_sleep_.push_back({fn, arg}); }

  // Nanoseconds of the steady clock as read in this turn; for what need not be exact.
  [[nodiscard]] uint64_t TurnNs() const { return turn_ns_; }
  [[nodiscard]] uint64_t turns() const { return turns_; }
  // Descriptors are watched through FdWatcher (socket.h).
  [[nodiscard]] event_base* base() { return base_; }

 private:
  struct Hook {
    void (*fn)(void*);
    void* arg;
  };

  static void OnWakeup(int fd, short what, void* self);
  static void OnTimer(int fd, short what, void* self);
  void OnEarliestTimerChanged() override;
  void Turn(bool sleep_after_work);
  size_t RunReady();  // Returns how many were resumed.
  void RunPosted();
  void WakeUp();

  event_base* base_;
  int wakeup_fd_;  // eventfd: written by Post and Stop.
  int timer_fd_;
  event* wakeup_event_;
  event* timer_event_;
  uint64_t armed_ns_;  // Deadline the timerfd is set to; TimerHeap::kNever when it is not.
  uint64_t turn_ns_;
  uint64_t turns_ = 0;
  std::vector<Hook> before_sleep_;
  std::atomic<bool> stop_{false};

  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;  // Guarded by posted_mutex_.
  std::vector<std::function<void()>> running_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_LOOP_EXECUTOR_H_
