// Quiesce: how a worker stands still while the cluster changes its view, for changes that all
// agents must make together (control.proto, HoldForView), and what the master may ask of it then.
//
// Operations look at it at their start; what has started goes on, and is counted, so that a quiesce
// can wait for it. Single-threaded, like all of a worker; other threads reach it by its mailbox.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_QUIESCE_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_QUIESCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/base/status.h"
#include "client_core/cluster/repair_order.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/task.h"

namespace onetrip {

// A worker's duties to the master; all on the worker's thread.
class WorkerDuties {
 public:
  using DoneFn = std::function<void(Status)>;
  virtual ~WorkerDuties() = default;
  // Nothing is waited for from this memory node any more, nor sent to it, before UseView says
  // otherwise.
  virtual void LeaveNode(NodeId node) = 0;
  // A new view is there: which nodes are out may have changed.
  virtual void UseView(const View& view) = 0;
  // True if there is a channel to the memory node.
  [[nodiscard]] virtual bool Reaches(NodeId node) const = 0;
  // True if every batch of operations that have ended has completed on every node.
  [[nodiscard]] virtual bool quiet() const = 0;
  // Starts; `done` is called once, or destroyed with the worker.
  virtual void Repair(RepairOrder order, DoneFn done) = 0;
};

class Quiesce {
 public:
  // The way to a worker's thread; lives longer than the worker for those who keep it.
  class Mailbox {
   public:
    // Runs `fn` on the worker's thread in a later turn, in the order of posting. When the worker is
    // gone, or goes before that, `fn` is destroyed without running. Any thread. Where the worker's
    // executor is no loop, all is on one thread: it runs at once.
    void Post(std::function<void(Quiesce&)> fn);

   private:
    friend class Quiesce;
    std::mutex mutex_;
    LoopExecutor* executor_ = nullptr;  // null: the worker is gone, or has no loop
    Quiesce* hold_ = nullptr;           // null: the worker is gone
  };

  // Guards something of the worker that is in flight: a quiesce of kAll waits for it. Once it may
  // touch slots, which EnterSlots() says, a quiesce of kSlots does, too. Copies stand for parts
  // that run beside.
  class InFlightGuard {
   public:
    InFlightGuard() = default;
    explicit InFlightGuard(Quiesce& hold) : hold_(&hold) { ++hold.running_; }
    InFlightGuard(const InFlightGuard& other) : hold_(other.hold_), in_slots_(other.in_slots_) {
      Count(1);
    }
    InFlightGuard(InFlightGuard&& other) noexcept
        : hold_(std::exchange(other.hold_, nullptr)),
          in_slots_(std::exchange(other.in_slots_, false)) {}
    InFlightGuard& operator=(InFlightGuard other) noexcept {
      swap(*this, other);
      return *this;
    }
    ~InFlightGuard() { Count(-1); }

    [[nodiscard]] bool IsOf(const Quiesce& hold) const { return hold_ == &hold; }

    // Waits while slots are held; false if they still are at `deadline_ns`. At once if it is in, or
    // no worker's.
    Task<bool> EnterSlots(uint64_t deadline_ns);
    // The same where nothing has to be waited for; false where it has.
    bool TryEnterSlots();
    // It has read nothing of a slot that it still relies on.
    void LeaveSlots() {
      if (std::exchange(in_slots_, false)) --hold_->in_slots_;
    }

   private:
    friend void swap(InFlightGuard& a, InFlightGuard& b) noexcept {
      std::swap(a.hold_, b.hold_);
      std::swap(a.in_slots_, b.in_slots_);
    }
    void Count(int by) {
      if (hold_ == nullptr) return;
      hold_->running_ += by;
      if (in_slots_) hold_->in_slots_ += by;
    }
    Quiesce* hold_ = nullptr;  // null: no worker's
    bool in_slots_ = false;
  };

  // `executor` outlives it. The first for masters that live on the worker's own thread.
  explicit Quiesce(Executor& executor)
      : executor_(executor), mailbox_(std::make_shared<Mailbox>()) {
    mailbox_->hold_ = this;
  }
  explicit Quiesce(LoopExecutor& executor);
  Quiesce(const Quiesce&) = delete;
  Quiesce& operator=(const Quiesce&) = delete;
  // REQUIRES: no coroutine waits, and nothing is under way.
  ~Quiesce();

  // True if operations must wait before they start; those on known registers need not when only
  // slots are held.
  [[nodiscard]] bool held() const { return kind_.has_value(); }
  [[nodiscard]] bool holds_registers() const { return held() && kind_ != HoldKind::kSlots; }
  [[nodiscard]] bool holds_all() const { return kind_ == HoldKind::kAll; }
  // True if the master was told that nothing is at the slots: nothing may be before Release().
  [[nodiscard]] bool slots_are_still() const { return is_still_ && kind_ != HoldKind::kStart; }
  // True if waits for others should be given up: the quiesce waits for them, and has for a while.
  [[nodiscard]] bool is_impatient() const;
  // Waits while it is held; false once it still is at `deadline_ns` of the executor's clock.
  Task<bool> Wait(uint64_t deadline_ns);

  // Quiesces; `still` is called once everything has ended that `kind` waits for, perhaps at once,
  // or destroyed by Release() and with the worker. Replaces a quiesce that there is.
  void Hold(HoldKind kind = HoldKind::kStart, std::function<void()> still = nullptr);
  // Waiters go on in a later turn, in the order of waiting.
  void Release();

  // `reached` is called once when the worker has a channel to `node`; before it has duties it has
  // none. Destroyed when the worker has no duties any more, and with the worker.
  void AwaitReach(NodeId node, std::function<void()> reached);

  // The duties do what the master asks; null: nothing does any more. They outlive their being set.
  void SetDuties(WorkerDuties* duties);
  [[nodiscard]] WorkerDuties* duties() const { return duties_; }

  [[nodiscard]] Executor& executor() const { return executor_; }
  [[nodiscard]] const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

 private:
  // Waits for Release() or for a time.
  class Waiter final : public Timer {
   public:
    Waiter(Quiesce& hold, uint64_t deadline_ns) : hold_(hold), deadline_ns_(deadline_ns) {}
    ~Waiter() override { Unlink(); }
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume() const noexcept {}
    void Fire() override;

   private:
    friend class Quiesce;
    void Unlink();
    Quiesce& hold_;
    const uint64_t deadline_ns_;
    std::coroutine_handle<> handle_;
    Waiter* next_ = nullptr;
    Waiter* previous_ = nullptr;
    bool queued_ = false;
  };
  // Looks again whether all has ended.
  class StillTimer final : public Timer {
   public:
    explicit StillTimer(Quiesce& hold) : hold_(hold) {}
    void Fire() override { hold_.LookWhetherStill(); }

   private:
    Quiesce& hold_;
  };
  // Looks again who is reached.
  class ReachTimer final : public Timer {
   public:
    explicit ReachTimer(Quiesce& hold) : hold_(hold) {}
    void Fire() override { hold_.LookWhoIsReached(); }

   private:
    Quiesce& hold_;
  };
  void LookWhoIsReached();
  [[nodiscard]] bool IsStill() const;
  void LookWhetherStill();

  Executor& executor_;
  std::optional<HoldKind> kind_;
  std::function<void()> still_;
  bool is_still_ = false;  // still_ was called
  uint64_t since_ns_ = 0;
  int running_ = 0;   // in-flight guards
  int in_slots_ = 0;  // those of them that may touch slots
  WorkerDuties* duties_ = nullptr;
  StillTimer still_timer_{*this};
  std::vector<std::pair<NodeId, std::function<void()>>> awaited_;  // by AwaitReach
  ReachTimer reach_timer_{*this};
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_QUIESCE_H_
