#include "client_core/cluster/view_hold.h"

#include <utility>

namespace onetrip {

void ViewHold::Door::Post(std::function<void(ViewHold&)> fn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return;
  // The hold may die before the turn comes; it dies on that very thread.
  executor_->Post([door = hold_->door_, fn = std::move(fn)] {
    if (door->hold_ != nullptr) fn(*door->hold_);
  });
}

ViewHold::ViewHold(LoopExecutor& executor) : ViewHold(static_cast<Executor&>(executor)) {
  door_->executor_ = &executor;
  door_->hold_ = this;
}

ViewHold::~ViewHold() {
  CHECK(first_ == nullptr);
  const std::lock_guard<std::mutex> lock(door_->mutex_);
  door_->executor_ = nullptr;
  door_->hold_ = nullptr;
}

Task<bool> ViewHold::Wait(uint64_t deadline_ns) {
  while (held_) {
    if (executor_.NowNs() >= deadline_ns) co_return false;
    co_await Waiter(*this, deadline_ns);
  }
  co_return true;
}

void ViewHold::Release() {
  held_ = false;
  while (first_ != nullptr) {
    Waiter* waiter = first_;
    waiter->Unlink();
    waiter->Cancel();
    executor_.Schedule(waiter->handle_);
  }
}

void ViewHold::Waiter::await_suspend(std::coroutine_handle<> handle) {
  handle_ = handle;
  queued_ = true;
  previous_ = hold_.last_;
  (hold_.last_ != nullptr ? hold_.last_->next_ : hold_.first_) = this;
  hold_.last_ = this;
  hold_.executor_.timers().Add(this, deadline_ns_);
}

void ViewHold::Waiter::Fire() {
  Unlink();
  handle_.resume();
}

void ViewHold::Waiter::Unlink() {
  if (!std::exchange(queued_, false)) return;
  (previous_ != nullptr ? previous_->next_ : hold_.first_) = next_;
  (next_ != nullptr ? next_->previous_ : hold_.last_) = previous_;
  next_ = previous_ = nullptr;
}

}  // namespace onetrip
