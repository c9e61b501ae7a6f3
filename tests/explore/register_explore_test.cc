// SNAPSHOT as it is, under every schedule of these programs.
#include <gtest/gtest.h>

#include "tests/explore/expect_scope.h"
#include "tests/explore/register_scope.h"

namespace onetrip {
namespace {

using Programs = std::vector<std::string_view>;

constexpr Scope::Faults kNoFaults{0, 0};
constexpr Scope::Faults kWorkerCrash{1, 0};
constexpr Scope::Faults kNodeCrash{0, 1};
constexpr Scope::Faults kBoth{1, 1};

RegisterScope ScopeOf(const Programs& programs, int replicas, Scope::Faults faults) {
  RegisterScopeOptions options;
  options.programs = programs;
  options.replicas = replicas;
  options.faults = faults;
  return RegisterScope(options);
}

const std::vector<Programs>& TwoClients() {
  static const std::vector<Programs> programs = {{"W", "R"},  {"W", "W"},   {"W", "RR"},
                                                 {"WW", "R"}, {"W", "I"},   {"I", "I"},
                                                 {"WW", "W"}, {"WR", "WR"}, {"WIR", "IRW"}};
  return programs;
}

TEST(ExploreRegisterTwoClients, HoldOnThreeReplicas) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 3, kNoFaults));
}

TEST(ExploreRegisterTwoClients, HoldOnTwoReplicas) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 2, kNoFaults));
}

TEST(ExploreRegisterTwoClients, HoldOnOneReplica) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 1, kNoFaults));
}

TEST(ExploreRegisterTwoClients, HoldWhenAWorkerCrashes) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 3, kWorkerCrash));
}

TEST(ExploreRegisterTwoClients, HoldWhenANodeCrashes) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 3, kNodeCrash));
}

TEST(ExploreRegisterTwoClients, HoldWhenAWorkerAndANodeCrash) {
  for (const Programs& programs : TwoClients()) ExpectHolds(ScopeOf(programs, 3, kBoth));
}

TEST(ExploreRegisterTwoClients, HoldWithTheLogOfTheRecords) {
  for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash, kBoth}) {
    RegisterScopeOptions options;
    options.programs = {"W", "I"};
    options.faults = faults;
    options.commits_log = true;
    ExpectHolds(RegisterScope(options));
  }
}

const std::vector<Programs>& ThreeClients() {
  static const std::vector<Programs> programs = {
      {"W", "W", "R"}, {"W", "W", "W"},   {"W", "I", "R"},   {"I", "I", "R"},
      {"I", "I", "I"}, {"WR", "WR", "I"}, {"WW", "WW", "RR"}};
  return programs;
}

TEST(ExploreRegisterThreeClients, HoldOnThreeReplicas) {
  for (const Programs& programs : ThreeClients()) ExpectHolds(ScopeOf(programs, 3, kNoFaults));
}

TEST(ExploreRegisterThreeClients, HoldOnTwoReplicas) {
  for (const Programs& programs : ThreeClients()) ExpectHolds(ScopeOf(programs, 2, kNoFaults));
}

// No majority is needed to win among three backups, and none may tie.
TEST(ExploreRegisterThreeClients, HoldOnFourReplicas) {
  for (const Programs& programs : {Programs{"W", "W", "R"}, {"W", "W", "W"}, {"W", "I", "I"}}) {
    ExpectHolds(ScopeOf(programs, 4, kNoFaults));
  }
}

TEST(ExploreRegisterThreeClients, HoldWhenAWorkerCrashes) {
  for (const Programs& programs : ThreeClients()) ExpectHolds(ScopeOf(programs, 3, kWorkerCrash));
}

TEST(ExploreRegisterThreeClients, HoldWhenANodeCrashes) {
  for (const Programs& programs : ThreeClients()) ExpectHolds(ScopeOf(programs, 3, kNodeCrash));
}

TEST(ExploreRegisterThreeClients, HoldWhenAWorkerAndANodeCrash) {
  for (const Programs& programs : ThreeClients()) ExpectHolds(ScopeOf(programs, 3, kBoth));
}

TEST(ExploreRegisterThreeClients, HoldWithTwoOperationsEach) {
  ExpectHolds(ScopeOf({"WI", "RW", "IR"}, 3, kNoFaults));
  ExpectHolds(ScopeOf({"WI", "RW", "IR"}, 3, kWorkerCrash));
}

TEST(ExploreRegisterThreeClients, HoldWithTwoOperationsEachWithinSomePreemptionsAndFaults) {
  ExpectHoldsWithin(ScopeOf({"WI", "RW", "IR"}, 3, kBoth), 3);
}

TEST(ExploreRegisterThreeClients, HoldWithThreeOperationsEachWithinSomePreemptions) {
  ExpectHoldsWithin(ScopeOf({"WIR", "IRW", "RWI"}, 3, kNoFaults), 3);
}

// The results of all operations, with what memory then held: the same set of endings, whether steps
// are taken together where that is said to be exact, or each by itself.
TEST(ExploreReductions, LoseNoEnding) {
  for (const Programs& programs : {Programs{"W", "R"},
                                   {"W", "W"},
                                   {"W", "I"},
                                   {"I", "I"},
                                   {"WR", "RW"},
                                   {"WR", "WR"},
                                   {"W", "W", "RR"},
                                   {"W", "I", "I"}}) {
    for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash}) {
      const RegisterScope scope = ScopeOf(programs, 3, faults);
      const ExploreResult reduced =
          Explore(scope, {.states_max = kStatesMax, .keeps_results = true});
      const ExploreResult whole =
          Explore(scope, {.states_max = kStatesMax, .reduces = false, .keeps_results = true});
      ExpectHolds(scope, reduced);
      ExpectHolds(scope, whole);
      if (kSlowdown > 1) continue;
      EXPECT_EQ(reduced.endings, whole.endings) << scope.name();
      EXPECT_LT(reduced.states, whole.states) << scope.name();
    }
  }
}

TEST(ExploreReductions, PathOfAnotherScopeIsRefused) {
  const RegisterScope scope = ScopeOf({"W", "R"}, 3, kNoFaults);
  EXPECT_EQ(TimelineOf(scope, "nonsense"), "no path");
  EXPECT_EQ(TimelineOf(scope, "a0.0.0.0"), "no path of this scope from a0.0.0.0");
}

}  // namespace
}  // namespace onetrip
