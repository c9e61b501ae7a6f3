// SET, INCR, DEL and GET of one key in both of its forms, through Kv, under every schedule of these
// programs.
//
// ONETRIP_EXPLORE_MORE=N: N preemptions more wherever a bound is stated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/explore/expect_scope.h"
#include "tests/explore/form_scope.h"

namespace onetrip {
namespace {

using Programs = std::vector<std::string_view>;

constexpr Scope::Faults kNoFaults{0, 0};
constexpr Scope::Faults kWorkerCrash{1, 0};
constexpr Scope::Faults kNodeCrash{0, 1};
constexpr Scope::Faults kBoth{1, 1};

FormScope ScopeOf(const Programs& programs, StartForm start, Scope::Faults faults = kNoFaults) {
  return FormScope({.programs = programs, .start = start, .faults = faults});
}

int Bound(int preemptions) {
  const char* more = std::getenv("ONETRIP_EXPLORE_MORE");
  return preemptions + (more == nullptr ? 0 : std::atoi(more));
}

// The first `states` that the search meets without a preemption hold; there are more.
void ExpectHoldsSoFar(const FormScope& scope, uint64_t states) {
  const ExploreResult result =
      Explore(scope, {.preemptions_max = Bound(0), .states_max = std::min(states, kStatesMax)});
  EXPECT_TRUE(result.ok()) << Story(scope, result);
}

const std::vector<Programs>& Pairs() {
  static const std::vector<Programs> pairs = {{"S", "S"}, {"S", "I"}, {"I", "I"},
                                              {"D", "S"}, {"D", "I"}, {"D", "D"},
                                              {"G", "S"}, {"G", "I"}, {"G", "D"}};
  return pairs;
}

TEST(ExploreFormTwoClients, OnARecord) {
  for (const StartForm start : {StartForm::kRecord, StartForm::kThawed}) {
    for (const Programs& programs : Pairs()) {
      for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash, kBoth}) {
        ExpectHolds(ScopeOf(programs, start, faults));
      }
    }
  }
}

// Its second operation writes what the first has left without a search.
TEST(ExploreFormTwoClients, OnARecordThatOneKeepsWriting) {
  for (const Programs& programs : {Programs{"II", "I"}, Programs{"II", "D"}, Programs{"IS", "S"},
                                   Programs{"II", "G"}, Programs{"ISG", "S"}}) {
    for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash}) {
      ExpectHolds(ScopeOf(programs, StartForm::kRecord, faults));
    }
  }
}

// SET makes a register of it.
TEST(ExploreFormTwoClients, OnARecordThatWasWrittenBlindly) {
  for (const Programs& programs : Pairs()) {
    for (const Scope::Faults faults : {kNoFaults, kWorkerCrash}) {
      ExpectHolds(ScopeOf(programs, StartForm::kBlindRecord, faults));
    }
  }
}

TEST(ExploreFormTwoClients, ReadARegister) {
  for (const Scope::Faults faults : {kNoFaults, kWorkerCrash}) {
    ExpectHolds(ScopeOf({"G", "S"}, StartForm::kRegister, faults));
  }
  ExpectHoldsWithin(ScopeOf({"G", "I"}, StartForm::kRegister), Bound(1));
  ExpectHoldsWithin(ScopeOf({"G", "D"}, StartForm::kRegister), Bound(0));
}

TEST(ExploreFormTwoClients, ChangeARegister) {
  ExpectHoldsWithin(ScopeOf({"I", "I"}, StartForm::kRegister), Bound(1));
  ExpectHoldsWithin(ScopeOf({"I", "I"}, StartForm::kRegister, kWorkerCrash), Bound(0));
  ExpectHoldsWithin(ScopeOf({"S", "I"}, StartForm::kRegister), Bound(0));
  ExpectHoldsWithin(ScopeOf({"D", "I"}, StartForm::kRegister), Bound(0));
  ExpectHoldsWithin(ScopeOf({"D", "D"}, StartForm::kRegister), Bound(0));
  ExpectHoldsSoFar(ScopeOf({"S", "D"}, StartForm::kRegister), 10'000);
}

TEST(ExploreFormThreeClients, SetIncrementAndDelete) {
  ExpectHoldsWithin(ScopeOf({"S", "I", "D"}, StartForm::kRecord), Bound(2));
  ExpectHoldsWithin(ScopeOf({"S", "I", "D"}, StartForm::kThawed), Bound(1));
  ExpectHoldsSoFar(ScopeOf({"S", "I", "D"}, StartForm::kRegister), 5'000);
}

struct FormBug {
  Bug bug;
  const char* name;
  FormOptions options;
};
void PrintTo(const FormBug& bug, std::ostream* out) { *out << bug.name; }

class ExploreFormPlantedBug : public testing::TestWithParam<FormBug> {};

TEST_P(ExploreFormPlantedBug, IsFound) {
  ExpectFinds(GetParam().bug, FormScope(GetParam().options), /*preemptions_max=*/2,
              /*states_max=*/200'000);
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, ExploreFormPlantedBug,
    testing::Values(
        FormBug{Bug::kSealNotRead, "seal_not_read", {.programs = {"G", "I"}}},
        FormBug{Bug::kInterruptedNeverRedone, "interrupted_never_redone", {.programs = {"S", "I"}}},
        FormBug{
            Bug::kInterruptedAlwaysRedone, "interrupted_always_redone", {.programs = {"S", "I"}}},
        FormBug{Bug::kDeleteCreditForgotten, "delete_credit_forgotten", {.programs = {"D", "D"}}},
        FormBug{Bug::kCountingWritesBlind,
                "counting_writes_blind",
                {.programs = {"S", "I"}, .start = StartForm::kRecord}},
        FormBug{Bug::kBlindLoserAlwaysOk,
                "blind_loser_always_ok",
                {.programs = {"S", "I"}, .start = StartForm::kRecord}},
        FormBug{Bug::kCountingLoserDone,
                "counting_loser_done",
                {.programs = {"I", "I"}, .start = StartForm::kRecord}},
        FormBug{Bug::kDeleteLoserCounts,
                "delete_loser_counts",
                {.programs = {"D", "D"}, .start = StartForm::kRecord}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
