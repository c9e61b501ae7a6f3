// Memory nodes that join and add memory.
#include <algorithm>

#include "tests/sim/scenario_parts.h"

namespace onetrip {

void JoinNodes(uint64_t span_ns, Rng& rng, Plan* plan) {
  // Two places each: with two nodes more than the replicas there is room for a region more when
  // some have moved, with three at once.
  plan->shape.node_bytes = std::max<uint64_t>(plan->shape.node_bytes, 32ULL << 20);
  plan->spares = std::max<uint32_t>(plan->spares, 2 + static_cast<uint32_t>(rng.Below(2)));
  const bool at_once = rng.Below(2) == 0;
  const uint64_t first_ns = rng.Below(span_ns / 2);
  for (uint32_t spare = 0; spare < plan->spares; ++spare) {
    Fault fault;
    fault.kind = FaultKind::kFillNode;
    fault.at_ns = at_once ? first_ns : rng.Below(span_ns / 2);
    fault.node = plan->shape.nodes + spare;
    plan->faults.push_back(fault);
  }
}

// Spares are to be used one after the other or at once, under writes to a pool in which little is
// free; in half of the seeds processes and connections fail meanwhile, in some a node drains, too.
// What is added is used at once. In the end a node is lost for good.
Plan MakeJoins(uint64_t seed) {
  constexpr uint64_t kStream = 0x901e'0000'0000;
  Plan plan = MakeMoves(seed);
  plan.scenario = "joins";
  Rng rng(seed ^ kStream);
  const bool drains = rng.Below(4) == 0;
  std::erase_if(plan.faults, [drains](const Fault& fault) {
    return fault.kind == FaultKind::kFillNode || (fault.kind == FaultKind::kDrainNode && !drains);
  });
  uint64_t span_ns = 0;
  for (const std::vector<Command>& client : plan.program) {
    span_ns =
        std::max(span_ns, client.size() * (plan.think_ns_max / 2 + 8 * plan.fabric.latency_max_ns));
  }
  JoinNodes(span_ns, rng, &plan);
  if (rng.Below(2) == 0) plan.free_blocks = 8 + static_cast<uint32_t>(rng.Below(12));
  plan.data_path.memory_wait_ms = OneOf(rng, {1UL, 3UL});
  plan.last_loss = 1 + static_cast<uint32_t>(rng.Below(plan.shape.nodes + plan.spares));
  return plan;
}

}  // namespace onetrip
