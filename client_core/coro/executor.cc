#include "client_core/coro/executor.h"

#include <algorithm>

#include "client_core/coro/call_timer.h"
#include "client_core/coro/sync.h"

namespace onetrip {

// A coroutine that no other awaits and that frees itself; only Spawn makes one, under a gate.
struct Background {
  struct promise_type {
    promise_type(Executor& executor, const GateHold&, const Task<void>&) {
      link.handle = std::coroutine_handle<promise_type>::from_promise(*this);
      link.previous = &executor.background_;
      link.next = executor.background_.next;
      link.next->previous = &link;
      link.previous->next = &link;
    }
    promise_type(const promise_type&) = delete;
    promise_type& operator=(const promise_type&) = delete;
    ~promise_type() {
      link.next->previous = link.previous;
      link.previous->next = link.next;
    }
    static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
    static void operator delete(void* memory, size_t bytes) { ReleaseFrame(memory, bytes); }
    Background get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept {
      CheckFailed(__FILE__, __LINE__, "no exception leaves a Task");
    }

    Executor::BackgroundLink link;
  };
};

namespace {

// Waits for a task that has already been started and has suspended.
struct StartedAwaiter {
  Task<void>& task;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) const { task.SetContinuation(caller); }
  void await_resume() const noexcept {}
};

// The task's frame goes before the gate is left: the owner that waits for the gate may free objects
// that the frame refers to.
Background FinishUnderGate(Executor& /*executor*/, GateHold hold, Task<void> task) {
  co_await StartedAwaiter{task};
  task = Task<void>();
  hold.Release();
}

}  // namespace

Executor::~Executor() = default;

void Executor::At(uint64_t time_ns, void (*fn)(void*), void* arg) {
  timers_.Add(new CallTimer(fn, arg), time_ns);
}

bool Executor::Spawn(Gate& gate, Task<void> task) {
  GateHold hold = gate.Enter();
  if (!hold) return false;
  if (!task.Start()) {
    FinishUnderGate(*this, std::move(hold), std::move(task));
    return true;
  }
  task = Task<void>();
  return true;
}

void Executor::DropBackground() {
  while (background_.next != &background_) background_.next->handle.destroy();
}

void Executor::AddPoller(Poller* poller) { pollers_.push_back(poller); }

void Executor::RemovePoller(Poller* poller) {
  const auto found = std::find(pollers_.begin(), pollers_.end(), poller);
  CHECK(found != pollers_.end());
  pollers_.erase(found);
}

bool Executor::PollAll() {
  bool worked = false;
  for (Poller* poller : pollers_) worked |= poller->Poll();
  return worked;
}

void Executor::ReadyQueue::Grow() {
  std::vector<void*> larger(slots_.empty() ? 64 : slots_.size() * 2);
  for (size_t i = 0; i < size(); ++i) larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
  tail_ = size();
  head_ = 0;
  slots_ = std::move(larger);
}

}  // namespace onetrip
