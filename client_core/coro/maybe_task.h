// MaybeTask<T>: the return type of a function that often has its result at once and else goes on as
// a Task. The first costs no coroutine frame.
//
// Awaited exactly once, like a Task, and in the expression that calls the function: unlike a
// Task's, the work has begun by then.
#ifndef ONETRIP_CLIENT_CORE_CORO_MAYBE_TASK_H_
#define ONETRIP_CLIENT_CORE_CORO_MAYBE_TASK_H_

#include <coroutine>
#include <optional>
#include <utility>

#include "client_core/coro/task.h"

namespace onetrip {

template <typename T>
class [[nodiscard]] MaybeTask {
 public:
  MaybeTask(T value) : value_(std::move(value)) {}     // NOLINT(google-explicit-constructor)
  MaybeTask(Task<T> task) : task_(std::move(task)) {}  // NOLINT(google-explicit-constructor)

  // REQUIRES: await_ready().
  [[nodiscard]] const T& result() const { return *value_; }
  [[nodiscard]] bool await_ready() const noexcept { return value_.has_value(); }
  // Returns false when the Task ended inline.
  bool await_suspend(std::coroutine_handle<> caller) {
    if (task_.Start()) return false;
    task_.SetContinuation(caller);
    return true;
  }
  T await_resume() { return value_.has_value() ? std::move(*value_) : task_.TakeResult(); }

 private:
  std::optional<T> value_;
  Task<T> task_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_MAYBE_TASK_H_
