// Operation: one client operation on its way through the layers: its in-flight guard, its epoch
// pin, its round trips, and how long it may still wait for others.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_OPERATION_H_
#define ONETRIP_CLIENT_CORE_MEMORY_OPERATION_H_

#include <algorithm>
#include <cstdint>

#include "client_core/coro/task.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

struct Operation {
  Quiesce::InFlightGuard in_flight;
  EpochPin pin;
  uint32_t round_trips = 0;
  uint64_t deadline_ns = 0;  // set by the first wait
};

// Lends an in-flight guard to `operation`, which may leave the slots and enter them again.
class LentInFlightGuard {
 public:
  LentInFlightGuard(Quiesce::InFlightGuard& in_flight, Operation& operation)
      : in_flight_(in_flight), operation_(operation) {
    swap(in_flight_, operation_.in_flight);
  }
  LentInFlightGuard(const LentInFlightGuard&) = delete;
  LentInFlightGuard& operator=(const LentInFlightGuard&) = delete;
  ~LentInFlightGuard() { swap(in_flight_, operation_.in_flight); }

 private:
  Quiesce::InFlightGuard& in_flight_;
  Operation& operation_;
};

// Posts a round trip for `operation` and counts it.
inline Fabric::PostAwaiter Post(WorkerContext& context, Operation& operation,
                                const RoundTripPtr& round_trip) {
  ++operation.round_trips;
  return context.fabric.Post(round_trip);
}

// The same in this turn. REQUIRES: the fabric completes inline.
inline Status PostInline(WorkerContext& context, Operation& operation,
                         const RoundTripPtr& round_trip) {
  ++operation.round_trips;
  return context.fabric.PostInline(round_trip);
}

// Returns true if a step that ended so may have lost a memory node.
inline bool MayHaveLostNode(const Status& status) {
  return status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
}

// True if `operation` has retried for op_timeout_ms, counted from the first time it asks.
inline bool OutOfTime(const WorkerContext& context, Operation& operation) {
  const uint64_t now_ns = context.executor.NowNs();
  if (operation.deadline_ns == 0) {
    operation.deadline_ns = now_ns + context.options.op_timeout_ms * 1'000'000;
  }
  return now_ns >= operation.deadline_ns;
}

// Waiting for another worker's step: at most wait_polls_max immediate polls, then timers that
// double, never a core spun away. One per wait.
class Backoff {
 public:
  Backoff(WorkerContext& context, Operation& operation)
      : context_(context), operation_(operation) {}

  // Waits a little. Returns false, at once, when the operation has waited for op_timeout_ms in all,
  // or the cluster waits for it.
  Task<bool> Wait() {
    if (OutOfTime(context_, operation_) || context_.quiesce.is_impatient()) co_return false;
    if (polls_ < context_.options.wait_polls_max) {
      ++polls_;
      co_return true;
    }
    // A random half keeps workers that collided from colliding again.
    const uint64_t most_ns =
        timer_us_ == 0 ? uint64_t{context_.options.wait_timer_us} * 1000 : timer_us_ * 1000;
    timer_us_ = std::min<uint64_t>(most_ns / 500, context_.options.wait_timer_max_us);
    co_await context_.executor.SleepFor(most_ns / 2 +
                                        context_.executor.rng().Below(most_ns / 2 + 1));
    co_return true;
  }

 private:
  WorkerContext& context_;
  Operation& operation_;
  uint32_t polls_ = 0;
  uint64_t timer_us_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_OPERATION_H_
