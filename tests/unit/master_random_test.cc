// Whatever happens to members and to the master, what it says must hold together.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/support/scale.h"
#include "tests/unit/master_random_cluster.h"

namespace onetrip {
namespace {

TEST(MasterRandomTest, WhateverHappensViewsComeInOrderAndNobodyIsForgotten) {
  uint64_t flushes = 0;
  uint64_t joins = 0;
  uint64_t fenced = 0;
  uint64_t outs = 0;
  uint64_t copies = 0;
  uint64_t replaced = 0;
  uint64_t damaged = 0;
  constexpr uint64_t kSeeds = kSlowdown > 1 ? 40 : 400;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomCluster cluster(seed);
    for (int step = 0; step < 1500; ++step) {
      cluster.Step();
      if (testing::Test::HasFailure()) {
        FAIL() << "seed " << seed << ", step " << step;
      }
    }
    cluster.Heal();
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", healed";
    flushes += cluster.flushes();
    joins += cluster.joins();
    fenced += cluster.fenced();
    outs += cluster.outs();
    copies += cluster.copies();
    replaced += cluster.replaced();
    damaged += cluster.damaged();
  }
  // The faults leave room for all of it to happen.
  constexpr uint64_t kLeast = kSeeds * 3 / 4;
  EXPECT_GT(flushes, kLeast);
  EXPECT_GT(joins, 5 * kLeast);
  EXPECT_GT(fenced, kLeast);
  EXPECT_GT(outs, kLeast);
  EXPECT_GT(copies, kLeast);
  EXPECT_GT(replaced, kLeast);
  EXPECT_GT(damaged, kLeast);
  RecordProperty("flushes", std::to_string(flushes));
  RecordProperty("joins", std::to_string(joins));
  RecordProperty("fenced", std::to_string(fenced));
  RecordProperty("outs", std::to_string(outs));
  RecordProperty("copies", std::to_string(copies));
  RecordProperty("replaced", std::to_string(replaced));
  RecordProperty("damaged", std::to_string(damaged));
}

#ifdef ONETRIP_PLANTED_BUGS
// In a child process, whose failures are what is wanted.
bool Finds(Bug bug) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(0);
    TEST_planted_bug = bug;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
      RandomCluster cluster(seed);
      for (int step = 0; step < 1500; ++step) cluster.Step();
      cluster.Heal();
      if (testing::Test::HasFailure()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

TEST(MasterRandomTest, FindsPlantedBugs) {
  EXPECT_FALSE(Finds(Bug::kNone));
  EXPECT_TRUE(Finds(Bug::kOutUnresolved));
  EXPECT_TRUE(Finds(Bug::kOutIsFenced));
  EXPECT_TRUE(Finds(Bug::kFencedOnOneNode));
  EXPECT_TRUE(Finds(Bug::kCommitsBeforeAllHold));
}
#endif

}  // namespace
}  // namespace onetrip
