// Safe-Guess over max registers over In-n-Out, under every schedule of these programs.
//
// ONETRIP_EXPLORE_MORE=N: N preemptions more wherever a bound is stated.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <ostream>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/explore/expect_scope.h"
#include "tests/explore/guess_scope.h"

namespace onetrip {
namespace {

using Programs = std::vector<std::string_view>;
using Skews = std::array<int64_t, kClientsMax>;

constexpr Scope::Faults kNoFaults{0, 0};
constexpr Scope::Faults kWorkerCrash{1, 0};
constexpr Scope::Faults kNodeCrash{0, 1};
constexpr Scope::Faults kBoth{1, 1};

GuessScope ScopeOf(const Programs& programs, Scope::Faults faults, Skews skew_us = {}) {
  return GuessScope({.programs = programs, .skew_us = skew_us, .faults = faults});
}

int Bound(int preemptions) {
  const char* more = std::getenv("ONETRIP_EXPLORE_MORE");
  return preemptions + (more == nullptr ? 0 : std::atoi(more));
}

TEST(ExploreGuessTwoClients, WriteBesideReads) {
  for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash, kBoth}) {
    ExpectHolds(ScopeOf({"W", "R"}, faults));
  }
  ExpectHolds(ScopeOf({"W", "RR"}, kNoFaults));
  ExpectHolds(ScopeOf({"W", "RR"}, kWorkerCrash));
  ExpectHoldsWithin(ScopeOf({"W", "RR"}, kNodeCrash), Bound(1));
}

// By clocks that agree, and with either one behind: its guess is stale unless it is first.
TEST(ExploreGuessTwoClients, WriteBesideWriteWithinSomePreemptions) {
  for (const Skews skew_us : {Skews{}, Skews{0, 30}, Skews{30, 0}}) {
    ExpectHoldsWithin(ScopeOf({"W", "W"}, kNoFaults, skew_us), Bound(1));
    ExpectHoldsWithin(ScopeOf({"W", "W"}, kWorkerCrash, skew_us), Bound(0));
    ExpectHoldsWithin(ScopeOf({"W", "W"}, kNodeCrash, skew_us), Bound(0));
  }
}

TEST(ExploreGuessTwoClients, WriteAndReadBesideWriteWithinSomePreemptions) {
  for (const Skews skew_us : {Skews{}, Skews{0, 30}, Skews{30, 0}}) {
    ExpectHoldsWithin(ScopeOf({"WR", "W"}, kNoFaults, skew_us), Bound(0));
  }
  ExpectHoldsWithin(ScopeOf({"WW", "R"}, kNoFaults), Bound(0));
}

// As users run it: the fabric's own MAX, and one lane.
TEST(ExploreGuessTwoClients, HoldOnOneLaneByMax) {
  const auto by_max = [](const Programs& programs, Scope::Faults faults = {}, Skews skew_us = {}) {
    return GuessScope(
        {.programs = programs, .skew_us = skew_us, .faults = faults, .traits = {}, .lanes = 1});
  };
  for (const Scope::Faults faults : {kNoFaults, kWorkerCrash, kNodeCrash}) {
    ExpectHolds(by_max({"W", "R"}, faults));
  }
  ExpectHolds(by_max({"W", "RR"}));
  for (const Skews skew_us : {Skews{}, Skews{0, 30}, Skews{30, 0}}) {
    ExpectHoldsWithin(by_max({"W", "W"}, kNoFaults, skew_us), Bound(1));
    ExpectHoldsWithin(by_max({"W", "W"}, kWorkerCrash, skew_us), Bound(0));
    ExpectHoldsWithin(by_max({"W", "W"}, kNodeCrash, skew_us), Bound(0));
    ExpectHoldsWithin(by_max({"WR", "W"}, kNoFaults, skew_us), Bound(0));
    ExpectHoldsWithin(by_max({"W", "W", "R"}, kNoFaults, skew_us), Bound(0));
  }
}

// As on a network of RDMA: a READ may bring what was posted behind it.
TEST(ExploreGuessTwoClients, HoldWhereReadsComeLate) {
  const auto late = [](const Programs& programs, uint32_t lanes, Scope::Faults faults = {},
                       Skews skew_us = {}) {
    return GuessScope({.programs = programs,
                       .skew_us = skew_us,
                       .faults = faults,
                       .traits = {.has_max = false, .reads_first = false},
                       .lanes = lanes});
  };
  for (const uint32_t lanes : {1U, 2U}) {
    ExpectHolds(late({"W", "R"}, lanes));
    ExpectHolds(late({"W", "R"}, lanes, kNodeCrash));
    for (const Skews skew_us : {Skews{}, Skews{0, 30}, Skews{30, 0}}) {
      ExpectHoldsWithin(late({"W", "W"}, lanes, kNoFaults, skew_us), Bound(0));
    }
  }
  ExpectHoldsWithin(late({"W", "W", "R"}, 2, kNoFaults), Bound(0));
}

// Copies of four words, read while they are written; and reads that ask the third replica at any
// moment.
TEST(ExploreGuessTwoClients, CopiesInPlaceAndWideningWithinSomePreemptions) {
  ExpectHoldsWithin(GuessScope({.programs = {"W", "R"}, .in_place_bytes = 8}), Bound(2));
  ExpectHoldsWithin(GuessScope({.programs = {"W", "R"}, .widens = true}), Bound(1));
}

TEST(ExploreGuessThreeClients, HoldWithinSomePreemptions) {
  ExpectHoldsWithin(ScopeOf({"W", "W", "R"}, kNoFaults), Bound(0));
  ExpectHoldsWithin(ScopeOf({"W", "W", "R"}, kNoFaults, {0, 30}), Bound(0));
}

struct GuessBug {
  Bug bug;
  std::string_view name;
  GuessOptions options;
  int preemptions;
};
void PrintTo(const GuessBug& bug, std::ostream* out) { *out << bug.name; }

class ExploreGuessPlantedBug : public testing::TestWithParam<GuessBug> {};

TEST_P(ExploreGuessPlantedBug, IsFound) {
  ExpectFinds(GetParam().bug, GuessScope(GetParam().options), GetParam().preemptions,
              /*states_max=*/500'000);
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, ExploreGuessPlantedBug,
    testing::Values(
        GuessBug{Bug::kWriteBackWithoutBytes,
                 "write_back_without_bytes",
                 {.programs = {"W", "RR"}, .faults = kNodeCrash},
                 1},
        GuessBug{Bug::kInPlaceHashWithoutWord,
                 "in_place_hash_without_word",
                 {.programs = {"WW", "R"}, .in_place_bytes = 8},
                 1},
        GuessBug{Bug::kFirstWordPlain, "first_word_plain", {.programs = {"W", "W"}, .lanes = 1}, 1},
        GuessBug{Bug::kNeverRewrite, "never_rewrite", {.programs = {"WR", "W"}}, 1}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
