// ExploreExecutor: an executor without time. Ready coroutines run until none is ready; a timer
// fires when the explorer says so, whatever its delay.
//
// A delay only says "not yet": any schedule that real clocks can produce is also one in which the
// timers fire in some order at some moment, so to enumerate those moments is to cover all delays.
#ifndef ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_
#define ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"

namespace onetrip {

// A base class, so that the clock lives before and after the Executor part.
class ExploreClockHolder {
 protected:
  ManualClock manual_clock_;
};

class ExploreExecutor final : private ExploreClockHolder, public Executor {
 public:
  // Every client draws the same numbers in every replay.
  ExploreExecutor() : Executor(manual_clock_, /*seed=*/1) {}

  bool RunOnce() override {
    if (ready_.empty()) return FireEarliest();
    ready_.Pop().resume();
    return true;
  }
  void RunReady() {
    while (!ready_.empty()) ready_.Pop().resume();
  }
  // Moves the clock to the earliest timer and fires it; false if there is none.
  bool FireEarliest() {
    if (timers().empty()) return false;
    manual_clock_.AdvanceTo(timers().EarliestNs());
    return timers().FireOne(NowNs());
  }
  void Advance(uint64_t delta_ns) { manual_clock_.Advance(delta_ns); }
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPLORE_EXECUTOR_H_
