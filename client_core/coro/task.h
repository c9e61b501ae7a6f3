// Task<T>: a lazy, move-only coroutine that is awaited exactly once.
//
// Nothing runs before `co_await`. The child is then started on the caller's stack, inside the
// awaiter's `bool await_suspend`: a child that finishes without suspending never suspends its
// parent either, and the stack does not grow with the number of such awaits, whatever the
// optimisation level (symmetric transfer into the child would, where the compiler emits no tail
// call). Only a child that really suspended resumes its parent when it ends.
//
// Frames come from the frame pool. No exception crosses a Task: one that escapes a body is a
// programmer error and aborts. A Task and everything it awaits live on one thread.
#ifndef ONETRIP_CLIENT_CORE_CORO_TASK_H_
#define ONETRIP_CLIENT_CORE_CORO_TASK_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/coro/frame_pool.h"

namespace onetrip {

template <typename T>
class Task;

// The part that the promises of all Tasks share: frame allocation and which coroutine goes on next.
class TaskPromiseBase {
 public:
  static void* operator new(size_t bytes) { return AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { ReleaseFrame(memory, bytes); }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      TaskPromiseBase& promise = self.promise();
      // Finished inline: the caller's await_suspend is below us on the stack and sees done().
      if (!promise.continuation_) return std::noop_coroutine();
      if (promise.join_count_ != nullptr && --*promise.join_count_ != 0) {
        return std::noop_coroutine();
      }
      return promise.continuation_;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept {
    CheckFailed(__FILE__, __LINE__, "no exception leaves a Task");
  }

  // Resumes `continuation` when the coroutine ends. With a join count, only the coroutine that
  // takes it to zero does. REQUIRES: started and not done.
  void SetContinuation(std::coroutine_handle<> continuation, uint32_t* join_count) {
    continuation_ = continuation;
    join_count_ = join_count;
  }

 private:
  std::coroutine_handle<> continuation_;
  uint32_t* join_count_ = nullptr;
};

template <typename T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object() noexcept;

  template <typename U = T>
  requires std::is_convertible_v<U&&, T>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  // Moves the result out. REQUIRES: done, and called once.
  T Take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

template <typename T = void>
class [[nodiscard]] Task {
  static_assert(!std::is_reference_v<T>, "a Task returns values; return a pointer instead");

 public:
  using promise_type = TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  // REQUIRES: the coroutine never started, has ended, or is suspended where nothing will resume it.
  ~Task() { Destroy(); }

  [[nodiscard]] bool valid() const { return static_cast<bool>(handle_); }
  [[nodiscard]] bool done() const { return handle_.done(); }

  // For awaitables and executors that run Tasks themselves; other code awaits.
  // Runs the coroutine up to its end or first suspension; returns done(). REQUIRES: not started.
  bool Start() {
    handle_.resume();
    return handle_.done();
  }
  void SetContinuation(std::coroutine_handle<> continuation, uint32_t* join_count = nullptr) {
    handle_.promise().SetContinuation(continuation, join_count);
  }
  // REQUIRES: done(); once.
  T TakeResult() { return handle_.promise().Take(); }

  class Awaiter {
   public:
    explicit Awaiter(Handle handle) noexcept : handle_(handle) {}
    bool await_ready() const noexcept { return false; }
    // Returns false when the child ended inline: the caller goes on at once.
    bool await_suspend(std::coroutine_handle<> caller) const noexcept {
      handle_.resume();
      if (handle_.done()) return false;
      handle_.promise().SetContinuation(caller, nullptr);
      return true;
    }
    T await_resume() const { return handle_.promise().Take(); }

   private:
    Handle handle_;
  };

  // Awaiting consumes: `co_await Foo()` or `co_await std::move(task)`.
  Awaiter operator co_await() && noexcept { return Awaiter(handle_); }

 private:
  void Destroy() {
    if (handle_) handle_.destroy();
  }

  Handle handle_;
};

template <typename T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_TASK_H_
