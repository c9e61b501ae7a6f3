// Parts that scenarios have in common: settings that a seed draws from their legal values.
#ifndef ONETRIP_TESTS_SIM_SCENARIO_PARTS_H_
#define ONETRIP_TESTS_SIM_SCENARIO_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client_core/base/rng.h"
#include "tests/sim/plan.h"

namespace onetrip {

template <typename T, size_t n>
T OneOf(Rng& rng, const T (&choices)[n]) {
  return choices[rng.Below(n)];
}

// Mixes of commands for any circumstances.
inline constexpr std::string_view kAnyMixes[] = {
    "reads_and_writes", "counters", "conditions", "append", "churn", "mixed", "multi"};

// ... and those in which registers end under their writers, half of the time.
inline constexpr std::string_view kRegisterMixes[] = {"reads_and_writes",
                                                      "counters",
                                                      "conditions",
                                                      "append",
                                                      "churn",
                                                      "mixed",
                                                      "multi",
                                                      "registers",
                                                      "registers",
                                                      "registers",
                                                      "endings",
                                                      "endings",
                                                      "reads_and_writes",
                                                      "mixed"};

// Settings that any seed may take with any commands.
Plan MakeBasePlan(std::string_view scenario, uint64_t seed, Rng& rng);
// How long the longest of its clients takes, more or less.
uint64_t SpanOf(const Plan& plan);
// Clients and keys of a mix.
WorkloadOptions MakeWorkload(Rng& rng, std::string_view mix);
// Makes the commands those with deadlines, which pass while walks for expired records are under
// way.
void AddDeadlines(Rng& rng, Plan* plan, WorkloadOptions* options);
// The control plane on the scale of a run, so that leases end and waits are given up within it.
void DrawControl(Plan* plan, Rng& rng);

// Clients insert new keys between their commands, so that the index splits again and again.
void MakeGrow(Rng& rng, bool with_deadlines, Plan* plan);
// Draws a fault of a process, or of a connection between one and the master.
Fault MakeMemberFault(const Plan& plan, uint64_t span_ns, Rng& rng);
// Cuts an agent off from a node, from the moment `at_ns` on, once or now and then.
void AddCut(uint32_t agent, uint32_t node, uint64_t at_ns, Plan* plan, Rng& rng);
// Sets what a plan with cuts needs for agents to notice them and the master to decide.
void WatchReach(Plan* plan, Rng& rng);

// Regions are to leave nodes, or to come to those that have none.
void MoveRegions(Rng& rng, Plan* plan);
// Two or three nodes more, which are to be used from some moment on.
void JoinNodes(uint64_t span_ns, Rng& rng, Plan* plan);
// ... and that drain again when they have added regions.
void DrainWhatJoined(uint64_t span_ns, Rng& rng, Plan* plan);
void BreakAmidShrink(Rng& rng, Plan* plan);
// ... for sure, while clients change what lies there.
void LeaveUnderChanges(Rng& rng, Plan* plan);

// Scenarios: scenarios.cc, then scenarios_members.cc, scenarios_frozen.cc, scenarios_growth.cc,
// scenarios_joins.cc, scenarios_spread.cc and scenarios_storm.cc.
Plan MakeTight(uint64_t seed);
Plan MakeFlush(uint64_t seed);
Plan MakeMembers(uint64_t seed);
Plan MakeControl(uint64_t seed);
Plan MakeSwap(uint64_t seed);
Plan MakeAppends(uint64_t seed);
Plan MakeMinority(uint64_t seed);
Plan MakeTurnover(uint64_t seed);
// In every other plan workers look for lost memory all the time; else when memory is short.
void LookForLost(uint64_t seed, Plan* plan);
Plan MakeScarce(uint64_t seed);
Plan MakeBrim(uint64_t seed);
Plan MakeSpread(uint64_t seed);
Plan MakeRepairs(uint64_t seed);
Plan MakeMoves(uint64_t seed);
Plan MakeJoins(uint64_t seed);
Plan MakeCuts(uint64_t seed);
Plan MakeFrozen(uint64_t seed);
Plan MakeFaults(uint64_t seed);
Plan MakeExpiry(uint64_t seed);
Plan MakeBroken(uint64_t seed);
Plan MakeExtents(uint64_t seed);
Plan MakeGrowth(uint64_t seed);
Plan MakeStorm(uint64_t seed);
Plan MakeCollections(uint64_t seed);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SCENARIO_PARTS_H_
