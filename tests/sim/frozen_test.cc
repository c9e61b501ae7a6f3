// SWARM C.2 for the store as a whole: GETs end within their bound though writers stand still at any
// step of a SET, DEL or INCR.
//
// A GET waits for no other agent: it reads a register in at most 2 n + 1 iterations of Safe-Guess
// beside n writers, helps to end a register that it finds sealed, and reads a record from its
// primary slot. The one exception: a register is sealed and its slot in the middle of a SNAPSHOT
// write. WaitFreedom decides both for every GET of every seed of the scenario; here, that they are
// reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/sim/runs.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

TEST(SimulationFrozen, ReadsEndThoughWritersStandStill) {
  const auto seeds = static_cast<uint64_t>(Scaled(400));
  WaitFreedomReport sum;
  uint64_t interrupted = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Report report = RunPlan(FindScenario("frozen")->Make(seed));
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.failure;
    sum.reads += report.wait_freedom.reads;
    sum.among_frozen += report.wait_freedom.among_frozen;
    sum.helped += report.wait_freedom.helped;
    sum.excused += report.wait_freedom.excused;
    sum.round_trips_max = std::max(sum.round_trips_max, report.wait_freedom.round_trips_max);
    interrupted += report.interrupted;
  }
  std::cout << seeds << " seeds: " << sum.reads << " GETs, " << sum.among_frozen
            << " beside somebody who stood still, of these " << sum.helped
            << " helped to end a register, " << sum.excused << " had to wait; at most "
            << sum.round_trips_max << " round trips\n";
  EXPECT_GT(sum.among_frozen, sum.reads / 4);
  EXPECT_GT(sum.helped, 0U);
  // Rare: the part of the seeds that a sanitizer gets may have none.
  if (kSlowdown == 1) {
    EXPECT_GT(sum.excused, 0U);
  }
  EXPECT_LT(sum.excused, sum.among_frozen / 10) << "the exception is one";
  EXPECT_GT(sum.round_trips_max, 6U);
  EXPECT_GT(interrupted, 0U);
}

// The bound, in words and in numbers: docs/SIMULATION.md.
static_assert(ReadRoundTripsMax(1, {}) == 4 + 2 * 3 * 6);
static_assert(ReadRoundTripsMax(3, {}) == 4 + 2 * 7 * 6);
static_assert(ReadRoundTripsMax(1, {.helps = 1}) == 2 * 4 + 3 * 3 * 6 + 8);
static_assert(ReadRoundTripsMax(1, {.polls = 5, .lost_cas = 2}) == 4 + 2 * 3 * 6 + 7);

}  // namespace
}  // namespace onetrip
