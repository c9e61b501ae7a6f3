// Scenario collections: lists, hashes, sets, sorted sets and streams in place of strings, under
// whatever other scenarios are about.
#include <array>

#include "client_core/base/rng.h"
#include "tests/sim/scenario_parts.h"
#include "tests/support/collection_workload.h"

namespace onetrip {

Plan MakeCollections(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeTurnover, MakeFaults,  MakeMembers,  MakeRepairs,
                                          MakeMoves,    MakeExpiry,  MakeFlush,    MakeBroken,
                                          MakeSwap,     MakeExtents, MakeTurnover, MakeGrowth,
                                          MakeFaults,   MakeTight,   MakeExtents,  MakeJoins};
  const auto under = kUnder[seed % std::size(kUnder)];
  Plan plan = under(seed);
  plan.scenario = "collections";
  // Regions leave under changes that give up their pin.
  const bool leaves = under == MakeJoins && seed / std::size(kUnder) % 2 == 0;
  Rng leaving(seed ^ 0x6c65617665);
  if (leaves) LeaveUnderChanges(leaving, &plan);
  UseCollections(seed, &plan.program);
  // Trees of a few elements: most collections are one, with inner pages, and become packed again.
  Rng rng(seed ^ 0x7265657473);
  plan.data_path.tree = {.leaf_bytes = OneOf(rng, {24U, 40U, 80U}),
                         .inner_bytes = OneOf(rng, {60U, 80U, 150U}),
                         .root_bytes = OneOf(rng, {60U, 90U, 200U}),
                         .packed_bytes = OneOf(rng, {30U, 60U, 120U, 8192U}),
                         .loaded_bytes = OneOf(rng, {100U, 400U, 1U << 20}),
                         .pinned_bytes = OneOf(rng, {60U, 300U, 1U << 18})};
  plan.data_path.page_cache_bytes = OneOf(rng, {uint64_t{0}, uint64_t{3000}, uint64_t{16} << 20});
  if (leaves) {
    plan.data_path.tree.packed_bytes = 30;
    plan.data_path.tree.pinned_bytes = 0;
    plan.data_path.page_cache_bytes = 0;
  }
  return plan;
}

}  // namespace onetrip
