// QuorumCall: one step of a register protocol, asked of r replicas; the waiter goes on as soon as a
// quorum has answered.
//
// Each replica is asked by a coroutine of its own that holds a Share. Shares and the waiter share
// one pooled state by an intrusive count, so that stragglers report, and keep what they use (the
// operation's epoch pin included), long after the waiter's frame is gone. Replicas may be asked
// later than others ("widening"). A call keeps the nodes that it began with: a replica that the
// view has taken out since fails, none is asked twice. Single-threaded, like all of a worker.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_QUORUM_CALL_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_QUORUM_CALL_H_

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstdint>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/frame_pool.h"
#include "client_core/fabric/round_trip.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/types.h"
#include "client_core/memory/reclaim.h"
#include "client_core/replication/replica_seen.h"

namespace onetrip {

// An operation's epoch pin, counted: released when the operation and all its stragglers are done
// (PROTOCOLS, "Memory"). An empty one pins nothing.
class SharedPin {
 public:
  SharedPin() = default;
  explicit SharedPin(EpochPin pin)
      : state_(new (AllocateFrame(sizeof(State))) State{1, std::move(pin)}) {}
  SharedPin(const SharedPin& other) : state_(other.state_) {
    if (state_ != nullptr) ++state_->references;
  }
  SharedPin(SharedPin&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  SharedPin& operator=(SharedPin other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~SharedPin() {
    if (state_ == nullptr || --state_->references != 0) return;
    state_->~State();
    ReleaseFrame(state_, sizeof(State));
  }

 private:
  struct State {
    uint32_t references;
    EpochPin pin;
  };
  State* state_ = nullptr;
};

// One replica's answer, beside what the rules look at (ReplicaSeen).
struct ReplicaReply {
  uint32_t round_trips = 0;  // one after the other
  uint64_t final_word = 0;   // read by ReadFinal
  LockWord lock;             // try_lock: what the replica holds after it
  // Header, lanes and, if asked for, the in-place area; or the bulk of a buffer. Null: not read,
  // or not yet.
  const std::byte* image = nullptr;
  // The buffer of the write `buffer_of`, if it was read beside the lanes; else null.
  const std::byte* buffer = nullptr;
  MetaWord buffer_of;
  RoundTripPtr round_trip;  // keeps both images
};

// The nodes that hold a register's live replicas, in the view's order.
struct ReplicaNodes {
  std::array<NodeId, kMaxReplicas> node;
  int count = 0;
  Epoch epoch;  // the view's

  // REQUIRES: view.Contains(addr).
  static ReplicaNodes Of(const View& view, GlobalAddr addr) {
    return {view.regions[addr.region()].nodes, view.LiveReplicas(addr), view.epoch};
  }
  [[nodiscard]] bool Include(NodeId one) const {
    return std::find(node.begin(), node.begin() + count, one) != node.begin() + count;
  }
};

class QuorumCall {
  class Waiter;

 public:
  // As `needed` of a wait: for `count` answers, sealed ones included.
  static constexpr int Answers(int count) { return kMaxReplicas + count; }

 private:
  struct State {
    State(Executor& executor_in, const ReplicaNodes& nodes_in, SharedPin pin_in)
        : executor(executor_in), nodes(nodes_in), pin(std::move(pin_in)) {}
    void Unref() {
      if (--references != 0) return;
      this->~State();
      ReleaseFrame(this, sizeof(State));
    }
    [[nodiscard]] bool Decided(int needed) const {
      if (needed > kMaxReplicas) {
        return counted + sealed >= needed - kMaxReplicas || pending == 0;
      }
      return counted >= needed || sealed > 0 || counted + pending < needed;
    }
    void Report(int replica, ReplicaSeen::State state);

    Executor& executor;
    const ReplicaNodes nodes;
    uint32_t references = 1;
    int pending = 0;
    int counted = 0;
    int sealed = 0;
    Waiter* waiter = nullptr;
    SharedPin pin;
    std::array<ReplicaSeen, kMaxReplicas> seen;
    std::array<ReplicaReply, kMaxReplicas> replies;
  };

 public:
  // The right and duty to report on one replica. One that is dropped reports failure.
  class Share {
   public:
    Share(Share&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), replica_(other.replica_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (state_ == nullptr) return;
      if (seen().state == ReplicaSeen::State::kPending) Report(ReplicaSeen::State::kFailed);
      state_->Unref();
    }
    [[nodiscard]] int replica() const { return replica_; }
    [[nodiscard]] NodeId node() const { return state_->nodes.node[replica_]; }
    [[nodiscard]] int replicas() const { return state_->nodes.count; }
    [[nodiscard]] ReplicaSeen& seen() const { return state_->seen[replica_]; }
    [[nodiscard]] ReplicaReply& reply() const { return state_->replies[replica_]; }
    // Once.
    void Report(ReplicaSeen::State state) { state_->Report(replica_, state); }
    // Reports all that the replica's step has come to.
    void Report(const ReplicaSeen& seen) {
      state_->seen[replica_] = seen;
      state_->seen[replica_].state = ReplicaSeen::State::kPending;
      state_->Report(replica_, seen.state);
    }

   private:
    friend class QuorumCall;
    Share(State* state, int replica) : state_(state), replica_(replica) { ++state->references; }
    State* state_;
    int replica_;
  };

  QuorumCall(Executor& executor, const ReplicaNodes& nodes, const SharedPin& pin)
      : state_(new (AllocateFrame(sizeof(State))) State(executor, nodes, pin)) {}
  QuorumCall(const QuorumCall&) = delete;
  QuorumCall& operator=(const QuorumCall&) = delete;
  ~QuorumCall() { state_->Unref(); }

  // REQUIRES: not asked yet.
  [[nodiscard]] Share Ask(int replica) {
    CHECK(!asked(replica));
    state_->seen[replica].state = ReplicaSeen::State::kPending;
    ++state_->pending;
    return {state_, replica};
  }
  // It was asked beside an earlier step of the operation, and takes no round trip of its own.
  void SetBeside() { beside_ = true; }
  [[nodiscard]] bool is_beside() const { return beside_; }
  // The replica is not to be asked.
  void Exclude(int replica) {
    CHECK(!asked(replica));
    state_->seen[replica].state = ReplicaSeen::State::kFailed;
  }

  // How many may be asked: those that were live when the call began.
  [[nodiscard]] int replicas() const { return state_->nodes.count; }
  [[nodiscard]] const ReplicaNodes& nodes() const { return state_->nodes; }
  [[nodiscard]] NodeId node(int replica) const { return state_->nodes.node[replica]; }
  // All replicas that may be asked.
  [[nodiscard]] Seen seen() const {
    return Seen(state_->seen).first(static_cast<size_t>(replicas()));
  }
  [[nodiscard]] const ReplicaSeen& seen(int replica) const { return state_->seen[replica]; }
  [[nodiscard]] const ReplicaReply& reply(int replica) const { return state_->replies[replica]; }
  [[nodiscard]] bool asked(int replica) const {
    return seen(replica).state != ReplicaSeen::State::kNotAsked;
  }
  [[nodiscard]] bool counts(int replica) const { return seen(replica).counts(); }
  [[nodiscard]] int counted() const { return state_->counted; }
  [[nodiscard]] int sealed() const { return state_->sealed; }
  [[nodiscard]] bool any_asked() const {
    return std::any_of(state_->seen.begin(), state_->seen.end(), [](const ReplicaSeen& one) {
      return one.state != ReplicaSeen::State::kNotAsked;
    });
  }
  [[nodiscard]] bool all_asked() const {
    for (int replica = 0; replica < replicas(); ++replica) {
      if (!asked(replica)) return false;
    }
    return true;
  }
  // `needed` replicas count, or a seal was met, or those asked cannot bring it to `needed`.
  [[nodiscard]] bool Decided(int needed) const { return state_->Decided(needed); }

  // `co_await call.Wait(needed, until_ns)`: goes on once Decided(needed), or at `until_ns` of the
  // executor's clock. One waiter at a time.
  Waiter Wait(int needed, uint64_t until_ns);

 private:
  State* state_;
  bool beside_ = false;
};

// A timer, so that it can be taken out when the call is decided first.
class QuorumCall::Waiter final : public Timer {
 public:
  Waiter(State* state, int needed, uint64_t until_ns)
      : state_(state), needed_(needed), until_ns_(until_ns) {}
  ~Waiter() override {
    if (state_->waiter == this) state_->waiter = nullptr;
  }
  [[nodiscard]] bool await_ready() const noexcept { return state_->Decided(needed_); }
  void await_suspend(std::coroutine_handle<> handle) {
    CHECK(state_->waiter == nullptr);
    handle_ = handle;
    state_->waiter = this;
    state_->executor.timers().Add(this, until_ns_);
  }
  void await_resume() const noexcept {}
  void Fire() override {
    state_->waiter = nullptr;
    handle_.resume();
  }

 private:
  friend struct State;
  State* state_;  // the QuorumCall that is waited for keeps it
  int needed_;
  uint64_t until_ns_;
  std::coroutine_handle<> handle_;
};

inline QuorumCall::Waiter QuorumCall::Wait(int needed, uint64_t until_ns) {
  return {state_, needed, until_ns};
}

inline void QuorumCall::State::Report(int replica, ReplicaSeen::State state) {
  CHECK(seen[replica].state == ReplicaSeen::State::kPending);
  seen[replica].state = state;
  --pending;
  counted += state == ReplicaSeen::State::kCounted ? 1 : 0;
  sealed += state == ReplicaSeen::State::kSealed ? 1 : 0;
  if (waiter == nullptr || !Decided(waiter->needed_)) return;
  waiter->Cancel();
  executor.Schedule(std::exchange(waiter, nullptr)->handle_);
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_QUORUM_CALL_H_
