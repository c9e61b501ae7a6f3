// Plan: all that one simulated run does, as plain data.
//
// A scenario and a seed give a plan; running a plan twice gives the same trace. A shrinker deletes
// commands and faults from a plan, a replay reads one from a text.
#ifndef ONETRIP_TESTS_SIM_PLAN_H_
#define ONETRIP_TESTS_SIM_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/fabric/sim.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "master/membership.h"
#include "tests/sim/control_settings.h"
#include "tests/support/workload.h"

namespace onetrip {

enum class FaultKind : uint8_t {
  kCrashAgent,    // dies where it is; starts again as a new process after `duration_ns`, if not 0
  kLeaveAgent,    // ends in order; starts again as a new process after `duration_ns`
  kPauseAgent,    // stands still for `duration_ns`
  kFreezeAgent,   // ... until the clients of the others are done; for good if `amount` is 1
  kPauseNode,     // applies nothing for `duration_ns`
  kLoseNode,      // for good
  kSlowNode,      // `amount` times as slow for `duration_ns`
  kSlowLink,      // between `agent` and `node`, `amount` times as slow for `duration_ns`
  kBreakChannel,  // from `agent` to `node`
  kStepClock,     // steps the clock of `agent`, by `amount` ns
  kDriftClock,    // drifts the clock of `agent`, by `amount` ppm
  kMasterDown,    // dies; starts again from its store after `duration_ns`
  kPauseMaster,   // stands still for `duration_ns`
  kStoreFails,    // the master's, for `duration_ns`
  kRestartNode,   // dies, and comes back with its memory after `duration_ns`
  kBreakControl,  // the connection of `agent` to the master
  kBreakNodeControl,  // the connection of `node` to the master
  kImpostor,          // the master is down for `duration_ns`, and another one, SimMaster::Impostor
                      // `amount`, answers in its place
  kDrainNode,         // the operator asks that `node` gives its regions to others
  kFillNode,          // ... is given its share
  // Between whatever process is `agent` and `node`, for `duration_ns`; 0: until the program is over
  // and all agents that are served have been asked.
  kCutLink,
};

struct Fault {
  FaultKind kind = FaultKind::kPauseAgent;
  uint64_t at_ns = 0;  // since the clients started
  // ... or since regions began to leave; never, if none does.
  bool amid_shrink = false;
  uint64_t duration_ns = 0;
  uint32_t agent = 0;
  uint32_t node = 0;
  int64_t amount = 0;
};

// Large values that only fill the pool have keys that begin so.
inline const std::string kBallast = "ballast";

struct Plan {
  std::string scenario;
  uint64_t seed = 0;
  uint32_t agents = 3;  // each with one worker; client i is a client of agent i modulo this
  ClusterShape shape{.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20};
  SimFabricOptions fabric;
  ControlSettings control;
  // How keys are held. A text that does not say so is of before there were registers.
  uint32_t spares = 0;       // memory nodes beyond those that the map is made of
  uint32_t free_blocks = 0;  // in each region, when the run begins; 0: all but the root's
  // When regions have been added, what is free is in these alone, until some leave.
  uint32_t fills_added = 0;
  EngineKind engine = EngineKind::kSnapshot;
  // Every other agent, from the second on, is of engine snapshot whatever `engine` says.
  bool mixes_engines = false;
  DataPathOptions data_path;
  uint64_t large_value_bytes = 0;  // an agent's budget for values in extents; 0: none
  uint32_t tick_spread =
      1;  // each agent's epochs tick tick_spread times more rarely than the one's before
  // Bit i: the operations of agent i modulo 8 complete inline, as on its own host's memory.
  uint32_t inline_agents = 0;
  uint64_t think_ns_max = 4000;  // a client pauses at most so long before each command
  uint32_t databases = 1;        // that the clients are on; 2 at most
  // Every transactions_every-th command of an agent goes between MULTI and EXEC; 0: none.
  uint32_t transactions_every = 0;
  // The most changes of one key that a client sends without waiting for replies; 0: none.
  uint32_t sent_ahead = 0;
  uint64_t clock_error_ns = 0;  // how far the agents' clocks may be from the truth
  // 1: at the end, when all faults are over, an agent must be able to join and to flush.
  uint32_t last_flush = 0;
  // One more than the node that is lost for good at the end, when all faults are over and every
  // region has all its replicas again: every key must be readable then; 0: none.
  uint32_t last_loss = 0;
  uint32_t nobody_ends = 0;  // 1: no process ends, whatever the master or another one says
  // 1: at the end, when all faults are over, an agent must be able to join and to insert keys.
  uint32_t last_growth = 0;
  // 1: at the end, when all faults are over, one agent more dies, and in time nothing is lost.
  uint32_t last_death = 0;
  Program program;
  std::vector<Fault> faults;
};

// A kind of run: what a seed decides, and what is the same for all seeds.
struct Scenario {
  std::string_view name;
  std::string_view about;
  Plan (*make)(uint64_t seed);

  // make(), of agents of which some are on the memory nodes' host.
  [[nodiscard]] Plan Make(uint64_t seed) const;
};
std::span<const Scenario> Scenarios();
// Null if there is none of that name.
const Scenario* FindScenario(std::string_view name);

// The network becomes one of RDMA, with nothing that the fabric's contract does not promise: no
// MAX, late READs, atomics that only exclude each other, WRITEs from their end.
void UseRdma(Plan* plan);

// One setting, fault or command a line. Everything that a run depends on is in it.
std::string PlanToText(const Plan& plan);
// The inverse. False, with the line at fault in `error`, for anything else.
bool PlanFromText(std::string_view text, Plan* plan, std::string* error);

std::string DescribeFault(const Fault& fault);

// "swarm" or "snapshot". REQUIRES: one of the engines that a plan may have.
std::string_view EngineName(EngineKind kind);
// The engine as a plan's text tells it: one of those, or "mixed".
inline std::string_view EngineName(const Plan& plan) {
  return plan.mixes_engines ? "mixed" : EngineName(plan.engine);
}
// The engine of an agent.
inline EngineKind EngineOf(const Plan& plan, uint32_t agent) {
  return plan.mixes_engines && agent % 2 == 1 ? EngineKind::kSnapshot : plan.engine;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_PLAN_H_
