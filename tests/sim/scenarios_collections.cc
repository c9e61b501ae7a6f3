// Scenario collections: lists, hashes, sets, sorted sets and streams in place of strings, under
// whatever other scenarios are about.
#include <array>

#include "tests/sim/scenario_parts.h"
#include "tests/support/collection_workload.h"

namespace onetrip {

Plan MakeCollections(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeTurnover, MakeFaults,  MakeMembers,  MakeRepairs,
                                          MakeMoves,    MakeExpiry,  MakeFlush,    MakeBroken,
                                          MakeSwap,     MakeExtents, MakeTurnover, MakeGrowth,
                                          MakeFaults,   MakeTight,   MakeExtents,  MakeJoins};
  Plan plan = kUnder[seed % std::size(kUnder)](seed);
  plan.scenario = "collections";
  UseCollections(seed, &plan.program);
  return plan;
}

}  // namespace onetrip
