// ExploreExecutor: an executor without time. Ready coroutines run until none is ready; a timer
// fires when the explorer says so, whatever its delay.
//
// A delay only says "not yet": any schedule that real clocks can produce is also one in which the
// timers fire in some order at some moment, so to enumerate those moments is to cover all delays.
#ifndef ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_
#define ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_

#include <algorithm>

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"

namespace onetrip {

// An operation gives up after this long: longer than any sum of waits, so that no wait alone brings
// it about.
inline constexpr uint64_t kOpTimeoutMs = 1'000'000'000;

class ExploreClock final : public Clock {
 public:
  [[nodiscard]] uint64_t NowNs() const override { return now_ns_; }
  [[nodiscard]] uint64_t UnixUs() const override { return now_ns_ / 1000; }
  void Set(uint64_t now_ns) { now_ns_ = now_ns; }

 private:
  uint64_t now_ns_ = 0;
};

// A base class, so that the clock lives before and after the Executor part.
class ExploreClockHolder {
 protected:
  ExploreClock explore_clock_;
};

class ExploreExecutor final : private ExploreClockHolder, public Executor {
 public:
  // Every client draws the same numbers in every replay.
  ExploreExecutor() : Executor(explore_clock_, /*seed=*/1) {}

  bool RunOnce() override {
    if (ready_.empty()) return MayFire() && FireEarliest();
    ready_.Pop().resume();
    return true;
  }
  void RunReady() {
    while (!ready_.empty()) ready_.Pop().resume();
  }
  // True if a coroutine waits for a while. A timer as far away as the end of an operation is its
  // deadline, which no schedule of this scope brings about.
  [[nodiscard]] bool MayFire() const {
    constexpr uint64_t kFarNs = kOpTimeoutMs / 2 * 1'000'000;
    return !timers().empty() && timers().EarliestNs() < NowNs() + kFarNs;
  }
  // Waits take no time from now on: clocks show the same however often a coroutine has waited.
  void StandStill() { stands_still_ = true; }
  // Moves the clock to the earliest timer, unless it stands still, and fires it; false if there is
  // none.
  bool FireEarliest() {
    if (timers().empty()) return false;
    const uint64_t at_ns = std::max(NowNs(), timers().EarliestNs());
    if (!stands_still_) explore_clock_.Set(at_ns);
    return timers().FireOne(at_ns);
  }
  void Advance(uint64_t delta_ns) { explore_clock_.Set(NowNs() + delta_ns); }

 private:
  bool stands_still_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_
