// Waiting for each other on one executor: Event, Gate, WhenAll, Quorum.
//
// All of them are single-threaded: all code that touches one runs on the executor it was made with.
// A wake-up does not run the waiter: it goes on in a later turn (Executor::Schedule), so that a
// wake-up never re-enters the code that caused it. WhenAll is the exception: the last child to end
// resumes the parent, as a single awaited Task would.
#ifndef ONETRIP_CLIENT_CORE_CORO_SYNC_H_
#define ONETRIP_CLIENT_CORE_CORO_SYNC_H_

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/frame_pool.h"
#include "client_core/coro/task.h"

namespace onetrip {

// A flag to wait for. Set() wakes all waiters; it stays set until Reset().
class Event {
 public:
  explicit Event(Executor& executor) : executor_(executor) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // REQUIRES: no coroutine waits.
  ~Event() { CHECK(first_ == nullptr); }

  void Set() {
    set_ = true;
    Waiter* waiter = std::exchange(first_, nullptr);
    last_ = nullptr;
    while (waiter != nullptr) {
      Waiter* next = waiter->next_;
      waiter->queued_ = false;
      executor_.Schedule(waiter->handle_);
      waiter = next;
    }
  }
  void Reset() { set_ = false; }
  [[nodiscard]] bool IsSet() const { return set_; }

  // Destroying a frame that waits takes it off the list.
  class Waiter {
   public:
    explicit Waiter(Event& event) : event_(event) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() {
      if (queued_) event_.Unlink(this);
    }
    bool await_ready() const noexcept { return event_.set_; }
    void await_suspend(std::coroutine_handle<> handle) {
      handle_ = handle;
      event_.Append(this);
    }
    void await_resume() const noexcept {}

   private:
    friend class Event;
    Event& event_;
    std::coroutine_handle<> handle_;
    Waiter* next_ = nullptr;
    Waiter* previous_ = nullptr;
    bool queued_ = false;
  };

  // `co_await event.Wait()`: goes on at once if set, else in the turn after Set(), in the order of
  // waiting. A Reset() meanwhile does not hold back those already woken.
  Waiter Wait() { return Waiter(*this); }

 private:
  void Append(Waiter* waiter) {
    waiter->queued_ = true;
    waiter->next_ = nullptr;
    waiter->previous_ = last_;
    (last_ != nullptr ? last_->next_ : first_) = waiter;
    last_ = waiter;
  }
  void Unlink(Waiter* waiter) {
    (waiter->previous_ != nullptr ? waiter->previous_->next_ : first_) = waiter->next_;
    (waiter->next_ != nullptr ? waiter->next_->previous_ : last_) = waiter->previous_;
  }

  Executor& executor_;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  bool set_ = false;
};

class GateHold;

// Counts the coroutines inside, so that an owner can wait for background work before it frees the
// objects that the work uses.
class Gate {
 public:
  explicit Gate(Executor& executor) : empty_(executor) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  // REQUIRES: no coroutine is inside.
  ~Gate() { CHECK(inside_ == 0); }

  // An empty (false) hold when the gate is closed.
  [[nodiscard]] GateHold Enter();
  // `co_await gate.Close()`: refuses newcomers from the call on, and waits until all have left.
  // May be called again, by several.
  [[nodiscard]] Event::Waiter Close() {
    closed_ = true;
    if (inside_ == 0) empty_.Set();
    return empty_.Wait();
  }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] size_t inside() const { return inside_; }

 private:
  friend class GateHold;
  void Leave() {
    CHECK(inside_ > 0);
    if (--inside_ == 0 && closed_) empty_.Set();
  }

  Event empty_;
  size_t inside_ = 0;
  bool closed_ = false;
};

// Keeps its owner inside a gate; an empty one is inside none.
class GateHold {
 public:
  GateHold() = default;
  GateHold(GateHold&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
  GateHold& operator=(GateHold&& other) noexcept {
    if (this != &other) {
      Release();
      gate_ = std::exchange(other.gate_, nullptr);
    }
    return *this;
  }
  ~GateHold() { Release(); }

  explicit operator bool() const { return gate_ != nullptr; }
  // Leaves early. No effect on an empty hold.
  void Release() {
    if (gate_ != nullptr) std::exchange(gate_, nullptr)->Leave();
  }

 private:
  friend class Gate;
  explicit GateHold(Gate* gate) : gate_(gate) {}
  Gate* gate_ = nullptr;
};

inline GateHold Gate::Enter() {
  if (closed_) return GateHold();
  ++inside_;
  return GateHold(this);
}

// Starts `task`; if it suspends, makes it resume `parent` when `pending` falls to zero.
template <typename T>
void StartJoined(Task<T>& task, std::coroutine_handle<> parent, uint32_t* pending) {
  if (task.Start()) return;
  ++*pending;
  task.SetContinuation(parent, pending);
}

// `co_await WhenAll(span)`: starts all in order, goes on when the last has ended; inline if none
// suspended. The caller keeps the tasks until then.
class WhenAllSpan {
 public:
  explicit WhenAllSpan(std::span<Task<void>> tasks) : tasks_(tasks) {}
  bool await_ready() const noexcept { return tasks_.empty(); }
  bool await_suspend(std::coroutine_handle<> parent) {
    // One extra count for the loop itself: the parent must not go on before all were started.
    for (Task<void>& task : tasks_) StartJoined(task, parent, &pending_);
    return --pending_ != 0;
  }
  void await_resume() const noexcept {}

 private:
  std::span<Task<void>> tasks_;
  uint32_t pending_ = 1;
};

inline WhenAllSpan WhenAll(std::span<Task<void>> tasks) { return WhenAllSpan(tasks); }

// The same for tasks given away; their frames go when the awaiting expression ends.
class WhenAllVector {
 public:
  explicit WhenAllVector(std::vector<Task<void>> tasks) : tasks_(std::move(tasks)), all_(tasks_) {}
  WhenAllVector(const WhenAllVector&) = delete;
  WhenAllVector& operator=(const WhenAllVector&) = delete;
  bool await_ready() const noexcept { return all_.await_ready(); }
  bool await_suspend(std::coroutine_handle<> parent) { return all_.await_suspend(parent); }
  void await_resume() const noexcept {}

 private:
  std::vector<Task<void>> tasks_;
  WhenAllSpan all_;
};

inline WhenAllVector WhenAll(std::vector<Task<void>> tasks) {
  return WhenAllVector(std::move(tasks));
}

// `co_await WhenAll(A(), B(), ...)` gives a tuple of the results (std::monostate for void), without
// an allocation of its own.
template <typename... T>
class WhenAllTuple {
 public:
  explicit WhenAllTuple(Task<T>... tasks) : tasks_(std::move(tasks)...) {}
  WhenAllTuple(const WhenAllTuple&) = delete;
  WhenAllTuple& operator=(const WhenAllTuple&) = delete;
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> parent) {
    std::apply([&](auto&... task) { (StartJoined(task, parent, &pending_), ...); }, tasks_);
    return --pending_ != 0;
  }
  auto await_resume() {
    return std::apply([](auto&... task) { return std::make_tuple(Take(task)...); }, tasks_);
  }

 private:
  template <typename U>
  static auto Take(Task<U>& task) {
    if constexpr (std::is_void_v<U>) {
      return std::monostate{};
    } else {
      return task.TakeResult();
    }
  }

  std::tuple<Task<T>...> tasks_;
  uint32_t pending_ = 1;
};

template <typename... T>
WhenAllTuple<T...> WhenAll(Task<T>... tasks) {
  return WhenAllTuple<T...>(std::move(tasks)...);
}

// Quorum: n participants report, one waiter goes on as soon as q have succeeded or no longer can.
//
// The payload (operation buffers, replies) lives in a pooled state that the waiter and every
// participant share by an intrusive count, so stragglers go on using it and reporting to it long
// after the waiter's frame is gone.
template <typename Payload = std::monostate>
class Quorum {
  struct State {
    explicit State(Executor& e, uint32_t n) : executor(e), expected(n) {}
    Executor& executor;
    uint32_t references = 1;
    uint32_t expected;  // Participants in all, joined or not.
    uint32_t joined = 0;
    uint32_t ok = 0;
    uint32_t failed = 0;
    uint32_t needed = 0;
    std::coroutine_handle<> waiter;
    Payload payload{};

    [[nodiscard]] bool Decided() const { return ok >= needed || failed + needed > expected; }
    void Unref() {
      if (--references != 0) return;
      this->~State();
      ReleaseFrame(this, sizeof(State));
    }
    void Report(bool success) {
      ++(success ? ok : failed);
      if (waiter && Decided()) executor.Schedule(std::exchange(waiter, nullptr));
    }
  };
  static_assert(alignof(State) <= alignof(std::max_align_t), "frames are aligned as malloc does");

 public:
  // One participant's share of the state. It reports once; one that is dropped without a word
  // reports failure.
  class Participant {
   public:
    Participant(Participant&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), reported_(other.reported_) {}
    Participant& operator=(Participant&&) = delete;
    ~Participant() {
      if (state_ == nullptr) return;
      if (!reported_) state_->Report(false);
      state_->Unref();
    }
    [[nodiscard]] Payload& payload() const { return state_->payload; }
    // REQUIRES: first report.
    void Report(bool success) {
      CHECK(!reported_);
      reported_ = true;
      state_->Report(success);
    }

   private:
    friend class Quorum;
    explicit Participant(State* state) : state_(state) {
      ++state->references;
      ++state->joined;
    }
    State* state_;
    bool reported_ = false;
  };

  // `participants` is how many will Join().
  Quorum(Executor& executor, uint32_t participants)
      : state_(new (AllocateFrame(sizeof(State))) State(executor, participants)) {}
  Quorum(const Quorum&) = delete;
  Quorum& operator=(const Quorum&) = delete;
  ~Quorum() { state_->Unref(); }

  [[nodiscard]] Payload& payload() { return state_->payload; }
  [[nodiscard]] uint32_t ok_count() const { return state_->ok; }
  [[nodiscard]] uint32_t failed_count() const { return state_->failed; }

  // REQUIRES: called at most `participants` times.
  [[nodiscard]] Participant Join() {
    CHECK(state_->joined < state_->expected);
    return Participant(state_);
  }

  // `co_await quorum.Wait(q)`: true once q participants succeeded, false once that has become
  // impossible; at once if already decided. One waiter at a time.
  auto Wait(uint32_t q) {
    struct Awaiter {
      State* state;
      Awaiter(State* s, uint32_t needed) : state(s) { s->needed = needed; }
      Awaiter(const Awaiter&) = delete;
      Awaiter& operator=(const Awaiter&) = delete;
      ~Awaiter() { state->waiter = nullptr; }
      bool await_ready() const noexcept { return state->Decided(); }
      void await_suspend(std::coroutine_handle<> handle) const {
        CHECK(!state->waiter);
        state->waiter = handle;
      }
      bool await_resume() const noexcept { return state->ok >= state->needed; }
    };
    return Awaiter(state_, q);
  }

 private:
  State* state_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_SYNC_H_
