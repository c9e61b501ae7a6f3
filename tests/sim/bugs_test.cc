// The simulation must find every planted bug: in a build that has them (preset tests).
#include "tests/sim/bugs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/sim/runs.h"

namespace onetrip {
namespace {

// Ordinary runs take up to 12 million.
constexpr RunOptions kRunOptions = {.steps_max = 20'000'000};

// Tries seed after seed until a run fails; false if none does. Prints the seed that did. In a
// child process, since a bug may end in a CHECK as well as in a report.
bool Finds(const PlantedBug& bug) {
  const pid_t child = fork();
  if (child == 0) {
    PlantBug(bug.name);
    const Scenario* scenario = FindScenario(bug.scenario);
    for (uint64_t seed = bug.first_seed; seed < bug.first_seed + bug.seeds; ++seed) {
      const Report report = bug.scenario == "small"
                                ? RunSmallPrograms(scenario->Make(seed), 200, kRunOptions)
                                : RunPlan(bug.MakePlan(*scenario, seed), kRunOptions);
      if (report.ok()) continue;
      fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed),
              report.failure.c_str());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

class PlantedBugTest : public testing::TestWithParam<PlantedBug> {};

TEST_P(PlantedBugTest, IsFound) {
  if (!PlantBug("none")) GTEST_SKIP() << "a build without planted bugs; take the preset tests";
  EXPECT_TRUE(Finds(GetParam())) << GetParam().name << " in " << GetParam().scenario;
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedBugTest,
                         testing::ValuesIn(PlantedBugs().begin(), PlantedBugs().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A plan with a bug in it shrinks to one that is smaller and still fails.
TEST(Shrinking, LeavesAPlanThatStillFails) {
  if (!PlantBug("delete-loser-counts")) GTEST_SKIP() << "a build without planted bugs";
  const Scenario* scenario = FindScenario("calm");
  Plan failing;
  for (uint64_t seed = 1; failing.program.empty() && seed < 2000; ++seed) {
    Plan plan = scenario->Make(seed);
    if (!RunPlan(plan).ok()) failing = plan;
  }
  ASSERT_FALSE(failing.program.empty());
  const auto size = [](const Plan& plan) {
    size_t commands = 0;
    for (const auto& client : plan.program) commands += client.size();
    return commands;
  };
  const Plan smaller = Shrink(failing, 1000);
  EXPECT_LT(size(smaller), size(failing));
  EXPECT_LE(size(smaller), 8U);
  EXPECT_FALSE(RunPlan(smaller).ok());
  PlantBug("none");
}

TEST(Shrinking, ReturnsAPlanThatDoesNotFail) {
  const Plan plan = FindScenario("calm")->make(1);
  EXPECT_EQ(PlanToText(Shrink(plan)), PlanToText(plan));
}

}  // namespace
}  // namespace onetrip
