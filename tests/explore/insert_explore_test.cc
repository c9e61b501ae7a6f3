// Inserting, finding and removing one key through the production index, under every schedule.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "tests/explore/expect_scope.h"
#include "tests/explore/insert_scope.h"

namespace onetrip {
namespace {

using Programs = std::vector<std::string_view>;

InsertScope ScopeOf(const Programs& programs, int replicas, size_t renewals_max,
                    Scope::Faults faults = {}, InsertMutant mutant = InsertMutant::kNone) {
  InsertOptions options;
  options.programs = programs;
  options.replicas = replicas;
  options.renewals_max = renewals_max;
  options.faults = faults;
  options.mutant = mutant;
  return InsertScope(options);
}

TEST(ExploreInsert, TwoClientsHoldOnTwoReplicasWithARenewal) {
  for (const Programs& programs :
       {Programs{"I", "I"}, {"I", "IG"}, {"XI", "I"}, {"XIG", "I"}, {"XI", "ID"}}) {
    ExpectHolds(ScopeOf(programs, 2, 1));
  }
}

TEST(ExploreInsert, TwoClientsHoldOnThreeReplicas) {
  for (const Programs& programs : {Programs{"I", "GG"},
                                   {"I", "I"},
                                   {"I", "IG"},
                                   {"XI", "I"},
                                   {"XIG", "I"},
                                   {"XI", "ID"},
                                   {"ID", "GG"},
                                   {"I", "DG"},
                                   {"IDI", "GG"}}) {
    ExpectHolds(ScopeOf(programs, 3, 0));
  }
}

TEST(ExploreInsert, TwoClientsHoldOnThreeReplicasWithARenewal) {
  ExpectHolds(ScopeOf({"I", "I"}, 3, 1));
}

TEST(ExploreInsert, TwoClientsHoldWhenAWorkerOrANodeCrashes) {
  for (const Scope::Faults faults : {Scope::Faults{1, 0}, {0, 1}}) {
    ExpectHolds(ScopeOf({"XI", "I"}, 2, 0, faults));
    ExpectHolds(ScopeOf({"XI", "I"}, 3, 0, faults));
    ExpectHolds(ScopeOf({"XI", "ID"}, 2, 0, faults));
  }
}

TEST(ExploreInsert, ThreeClientsHold) {
  ExpectHolds(ScopeOf({"X", "I", "I"}, 3, 0));
  ExpectHolds(ScopeOf({"I", "I", "XG"}, 3, 0));
  ExpectHolds(ScopeOf({"I", "GG", "GG"}, 3, 0));
  ExpectHolds(ScopeOf({"I", "D", "GG"}, 3, 0));
}

struct ClaimBug {
  Bug bug;
  std::string_view name;
  Programs programs;
};
void PrintTo(const ClaimBug& bug, std::ostream* out) { *out << bug.name; }

class ExploreInsertPlantedBug : public testing::TestWithParam<ClaimBug> {};

TEST_P(ExploreInsertPlantedBug, IsFound) {
  ExpectFinds(GetParam().bug, ScopeOf(GetParam().programs, 3, 0), /*preemptions_max=*/2,
              /*states_max=*/200'000);
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, ExploreInsertPlantedBug,
    testing::Values(ClaimBug{Bug::kDecidedPassedBy, "decided_passed_by", {"I", "G"}},
                    ClaimBug{Bug::kOneBackupDecides, "one_backup_decides", {"I", "D"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ExploreInsert, ThreeClientsHoldWithARenewalWithinSomePreemptions) {
  ExpectHoldsWithin(ScopeOf({"I", "I", "XG"}, 3, 1), 3);
  ExpectHoldsWithin(ScopeOf({"XI", "I", "I"}, 2, 1), 3);
  ExpectHoldsWithin(ScopeOf({"XID", "DI", "G"}, 2, 1), 3);
}

// Without the neighbour that leaves, two inserters meet in one slot, and SNAPSHOT alone decides.
TEST(ExploreInsert, InsertWithoutTheSecondSearchIsFound) {
  const auto mutant = InsertMutant::kNoSecondSearch;
  ExpectHolds(ScopeOf({"I", "I"}, 3, 0, {}, mutant));
  ExpectViolation(ScopeOf({"XI", "I"}, 3, 0, {}, mutant), "the key has two entries");
}

}  // namespace
}  // namespace onetrip
