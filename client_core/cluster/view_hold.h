// ViewHold: the switch by which a worker stops starting operations while the cluster changes its
// view, for changes that all agents must make together (control.proto, HoldForView).
//
// Operations look at it once, at their start; what has started goes on. Single-threaded, like all
// of a worker; other threads reach it through its Door.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_VIEW_HOLD_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_VIEW_HOLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/task.h"

namespace onetrip {

class ViewHold {
 public:
  // The way to a worker's thread; lives longer than the worker for those who keep it.
  class Door {
   public:
    // Runs `fn` on the worker's thread in a later turn, in the order of posting. When the worker is
    // gone, or goes before that, `fn` is destroyed without running. Any thread.
    void Post(std::function<void(ViewHold&)> fn);

   private:
    friend class ViewHold;
    std::mutex mutex_;
    LoopExecutor* executor_ = nullptr;  // null: the worker is gone, or nobody may post to it
    ViewHold* hold_ = nullptr;
  };

  // `executor` outlives it. The first for masters that live on the worker's own thread.
  explicit ViewHold(Executor& executor) : executor_(executor), door_(std::make_shared<Door>()) {}
  explicit ViewHold(LoopExecutor& executor);
  ViewHold(const ViewHold&) = delete;
  ViewHold& operator=(const ViewHold&) = delete;
  // REQUIRES: nobody waits.
  ~ViewHold();

  // Whether operations must wait before they start.
  [[nodiscard]] bool held() const { return held_; }
  // Waits while it is held; false once it still is at `deadline_ns` of the executor's clock.
  Task<bool> Wait(uint64_t deadline_ns);

  void Hold() { held_ = !Planted(Bug::kNoHold); }
  // Waiters go on in a later turn, in the order of waiting.
  void Release();

  [[nodiscard]] Executor& executor() const { return executor_; }
  [[nodiscard]] const std::shared_ptr<Door>& door() const { return door_; }

 private:
  // Waits for Release() or for a time.
  class Waiter final : public Timer {
   public:
    Waiter(ViewHold& hold, uint64_t deadline_ns) : hold_(hold), deadline_ns_(deadline_ns) {}
    ~Waiter() override { Unlink(); }
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume() const noexcept {}
    void Fire() override;

   private:
    friend class ViewHold;
    void Unlink();
    ViewHold& hold_;
    const uint64_t deadline_ns_;
    std::coroutine_handle<> handle_;
    Waiter* next_ = nullptr;
    Waiter* previous_ = nullptr;
    bool queued_ = false;
  };

  Executor& executor_;
  bool held_ = false;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  std::shared_ptr<Door> door_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_VIEW_HOLD_H_
