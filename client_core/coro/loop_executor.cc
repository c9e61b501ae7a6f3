#include "client_core/coro/loop_executor.h"

#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace onetrip {
namespace {

event_base* MakeBase() {
  event_config* config = event_config_new();
  CHECK(config != nullptr);
  // One thread uses the base; other threads reach it through the eventfd only.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

event* MakeEvent(event_base* base, int fd, event_callback_fn callback, void* arg) {
  event* result = event_new(base, fd, EV_READ | EV_PERSIST, callback, arg);
  CHECK(result != nullptr);
  CHECK(event_add(result, nullptr) == 0);
  return result;
}

}  // namespace

LoopExecutor::LoopExecutor(const Clock& clock, uint64_t seed)
    : Executor(clock, seed),
      base_(MakeBase()),
      wakeup_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      armed_ns_(TimerHeap::kNever),
      turn_ns_(clock.NowNs()) {
  CHECK(base_ != nullptr);
  CHECK(wakeup_fd_ >= 0);
  CHECK(timer_fd_ >= 0);
  wakeup_event_ = MakeEvent(base_, wakeup_fd_, &LoopExecutor::OnWakeup, this);
  timer_event_ = MakeEvent(base_, timer_fd_, &LoopExecutor::OnTimer, this);
}

LoopExecutor::~LoopExecutor() {
  event_free(timer_event_);
  event_free(wakeup_event_);
  event_base_free(base_);
  close(timer_fd_);
  close(wakeup_fd_);
}

void LoopExecutor::OnWakeup(int fd, short /*what*/, void* self) {
  uint64_t count = 0;
  // Fails only when another wake-up was read already, which is as good.
  (void)!read(fd, &count, sizeof(count));
  static_cast<LoopExecutor*>(self)->RunPosted();
}

// Only ends the sleep: the turn fires what is due. Once fired, the timerfd is disarmed.
void LoopExecutor::OnTimer(int fd, short /*what*/, void* self) {
  uint64_t count = 0;
  (void)!read(fd, &count, sizeof(count));
  static_cast<LoopExecutor*>(self)->armed_ns_ = TimerHeap::kNever;
}

// A timerfd that is armed too early is left alone: one idle turn is cheaper than two system calls.
void LoopExecutor::OnEarliestTimerChanged() {
  const uint64_t earliest_ns = timers().EarliestNs();
  if (earliest_ns >= armed_ns_) return;
  // Relative, because the executor's clock need not be the kernel's; zero would disarm.
  const uint64_t now_ns = NowNs();
  const uint64_t delay_ns = earliest_ns > now_ns ? earliest_ns - now_ns : 1;
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(delay_ns / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(delay_ns % 1'000'000'000);
  CHECK(timerfd_settime(timer_fd_, 0, &spec, nullptr) == 0);
  armed_ns_ = earliest_ns;
}

size_t LoopExecutor::RunReady() {
  // Only those ready now: what they schedule waits until sockets had their turn.
  const size_t count = ready_.size();
  for (size_t left = count; left > 0; --left) ready_.Pop().resume();
  return count;
}

void LoopExecutor::Turn(bool sleep_after_work) {
  ++turns_;
  const size_t resumed = RunReady();
  const bool polled = PollAll();
  for (const Hook& hook : before_sleep_) hook.fn(hook.arg);
  // Timers that fired may have left an earliest deadline that nothing is armed for.
  if (!timers().empty()) OnEarliestTimerChanged();
  const bool sleep = ready_.empty() && !polled && (resumed == 0 || sleep_after_work) &&
                     !stop_.load(std::memory_order_acquire);
  event_base_loop(base_, sleep ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK);
  turn_ns_ = NowNs();
  timers().FireDue(turn_ns_);
}

// A caller that runs single turns looks after each whether its event has happened, so a turn that
// resumed anything must not sleep.
bool LoopExecutor::RunOnce() {
  Turn(/*sleep_after_work=*/false);
  return true;
}

void LoopExecutor::Run() {
  while (!stop_.load(std::memory_order_acquire)) Turn(/*sleep_after_work=*/true);
  stop_.store(false, std::memory_order_release);
}

void LoopExecutor::Stop() {
  stop_.store(true, std::memory_order_release);
  WakeUp();
}

void LoopExecutor::WakeUp() {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake already.
  (void)!write(wakeup_fd_, &one, sizeof(one));
}

void LoopExecutor::Post(std::function<void()> fn) {
  bool first = false;
  {
    const std::lock_guard<std::mutex> lock(posted_mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(fn));
  }
  if (first) WakeUp();
}

void LoopExecutor::RunPosted() {
  {
    const std::lock_guard<std::mutex> lock(posted_mutex_);
    std::swap(posted_, running_);
  }
  for (std::function<void()>& fn : running_) fn();
  running_.clear();
}

}  // namespace onetrip
