// Running plans: one, many small ones in one world, and shrinking one that fails.
#ifndef ONETRIP_TESTS_SIM_RUNS_H_
#define ONETRIP_TESTS_SIM_RUNS_H_

#include <cstdint>

#include "tests/sim/plan.h"
#include "tests/sim/world.h"

namespace onetrip {

// Runs a plan from its beginning to its end.
Report RunPlan(const Plan& plan, const RunOptions& options = {});

// `rounds` small programs one after the other in one world, each on a key of its own, each checked
// by itself: starting a world costs more than a small program.
// `of_seed`: as the scenario has made it.
Report RunSmallPrograms(Plan of_seed, uint32_t rounds, const RunOptions& options = {});

// Deletes clients, commands and faults from a plan that fails for as long as it still fails, in
// whatever way, trying a few other seeds for each smaller plan. Returns `plan` itself if it does
// not fail. At most `runs_max` runs.
Plan Shrink(Plan plan, uint32_t runs_max = 3000);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_RUNS_H_
