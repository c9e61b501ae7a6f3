// The explorer finds what it is there to find: SNAPSHOT with one rule left out, each time.
#include <gtest/gtest.h>

#include "tests/explore/expect_scope.h"
#include "tests/explore/register_scope.h"

namespace onetrip {
namespace {

constexpr const char* kNotLinearizable = "no order of the operations";

RegisterScope ScopeOf(std::vector<std::string_view> programs, RegisterMutant mutant,
                      bool checks_memory = true) {
  RegisterScopeOptions options;
  options.programs = std::move(programs);
  options.mutant = mutant;
  options.checks_memory = checks_memory;
  options.uses_mutable_engine = true;
  return RegisterScope(options);
}

TEST(ExploreMutants, EngineWithoutAMutantHoldsWhereTheMutantsFail) {
  for (const auto& programs : std::vector<std::vector<std::string_view>>{
           {"W", "W"}, {"W", "I"}, {"WW", "W"}, {"W", "WR"}, {"W", "W", "W"}, {"W", "W", "R"}}) {
    ExpectHolds(ScopeOf(programs, RegisterMutant::kNone));
  }
}

TEST(ExploreMutants, BlindLoserThatAlwaysAnswersOkIsFound) {
  ExpectViolation(ScopeOf({"W", "I"}, RegisterMutant::kBlindLoserAlwaysOk), kNotLinearizable);
}

TEST(ExploreMutants, StaleWordAsExpectedValueIsFound) {
  ExpectViolation(ScopeOf({"WW", "W"}, RegisterMutant::kStaleExpected), kNotLinearizable);
}

TEST(ExploreMutants, LoserThatDoesNotWaitIsFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kLoserDoesNotWait),
                  "lost its round before the primary changed");
}

TEST(ExploreMutants, VotesOfAQuorumAreFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kVotesOfAQuorum),
                  "the primary changed before every backup had");
}

TEST(ExploreMutants, PrimaryBeforeTheBackupsIsFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kPrimaryBeforeBackups),
                  "the primary changed before every backup had");
}

TEST(ExploreMutants, BackupsLeftAsOthersTookThemAreFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kBackupsLeftUnfixed),
                  "the primary changed before every backup had");
}

TEST(ExploreMutants, VoterThatWinsEveryTieIsFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kEveryVoterWins), "two winners of one round");
}

// Two writers do not show it: it takes a round that ended while a voter of it slept.
TEST(ExploreMutants, RuleThreeWithoutALookAtThePrimaryIsFoundByThreeWriters) {
  ExpectHolds(ScopeOf({"W", "W"}, RegisterMutant::kNoLookBeforeMinimum));
  ExpectViolation(ScopeOf({"W", "W", "W"}, RegisterMutant::kNoLookBeforeMinimum),
                  "two winners of one round");
}

TEST(ExploreMutants, RoundThatNobodyWinsIsFound) {
  ExpectViolation(ScopeOf({"W", "W"}, RegisterMutant::kNobodyWinsByMinimum),
                  "an operation waits for ever");
}

// Polls are cycles of two states then, so only the search for a way out tells.
TEST(ExploreMutants, RoundThatNobodyWinsIsALivelockWithoutReductions) {
  const RegisterScope scope = ScopeOf({"W", "W"}, RegisterMutant::kNobodyWinsByMinimum);
  const ExploreResult result = Explore(scope, {.reduces = false});
  EXPECT_EQ(result.violation, "from here on no schedule completes all operations");
}

// Clients see enough to give these away too, without a look into the nodes. Not so the other two:
// there the primary refuses a second winner, and only the backups are wrong.
TEST(ExploreMutants, ClientsAloneGiveThemAway) {
  ExpectViolation(ScopeOf({"W", "WR"}, RegisterMutant::kLoserDoesNotWait, false), kNotLinearizable);
  ExpectViolation(ScopeOf({"WI", "RW", "IR"}, RegisterMutant::kPrimaryBeforeBackups, false),
                  "lost more rounds than there are writers");
  ExpectViolation(ScopeOf({"WI", "RW", "IR"}, RegisterMutant::kBackupsLeftUnfixed, false),
                  "an operation waits for ever");
  ExpectViolation(ScopeOf({"WI", "RW", "IR"}, RegisterMutant::kNoLookBeforeMinimum, false),
                  "an operation waits for ever");
}

}  // namespace
}  // namespace onetrip
