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

// Nodes that joined drain again: as far as the memory in use fits, the regions that were added are
// given up.
void DrainWhatJoined(uint64_t span_ns, Rng& rng, Plan* plan) {
  const bool all = rng.Below(2) == 0;
  for (uint32_t spare = 0; spare < plan->spares; ++spare) {
    if (!all && rng.Below(2) == 0) continue;
    Fault fault;
    fault.kind = FaultKind::kDrainNode;
    fault.at_ns = rng.Below(span_ns);
    fault.duration_ns = 100'000'000;
    fault.node = plan->shape.nodes + spare;
    plan->faults.push_back(fault);
  }
}

void LeaveUnderChanges(Rng& rng, Plan* plan) {
  // All that is written once they have joined lies on them.
  plan->fills_added = 1;
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kAnyMixes));
  options.operations = 150;
  options.cold_keys = 4;
  options.hot_percent = 50;
  plan->program = MakeProgram(rng.Next(), options);
  plan->think_ns_max = OneOf(rng, {50'000UL, 200'000UL, 500'000UL});
  const auto drains = [plan](const Fault& fault) {
    return fault.kind == FaultKind::kDrainNode && fault.node >= plan->shape.nodes;
  };
  const auto loses = [](const Fault& fault) { return fault.kind == FaultKind::kLoseNode; };
  const bool has_loss = std::any_of(plan->faults.begin(), plan->faults.end(), loses);
  const uint64_t span_ns = SpanOf(*plan);
  // The last one, which is to take the place of a lost one, stays.
  plan->spares -= has_loss ? 1 : 0;
  while (std::none_of(plan->faults.begin(), plan->faults.end(), drains)) {
    DrainWhatJoined(span_ns, rng, plan);
  }
  plan->spares += has_loss ? 1 : 0;
}

// Breaks things while regions leave. For a node that is lost for good there is another.
void BreakAmidShrink(Rng& rng, Plan* plan) {
  const uint64_t span_ns = OneOf(rng, {100'000UL, 1'000'000UL, 10'000'000UL});
  const uint64_t count = 1 + rng.Below(3);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault = MakeMemberFault(*plan, span_ns, rng);
    fault.amid_shrink = true;
    plan->faults.push_back(fault);
  }
  if (rng.Below(4) != 0) return;
  const uint32_t nodes = plan->shape.nodes;
  std::erase_if(plan->faults, [nodes](const Fault& fault) {
    return fault.kind == FaultKind::kDrainNode && fault.node < nodes;
  });
  Fault loss;
  loss.kind = FaultKind::kLoseNode;
  loss.at_ns = rng.Below(span_ns);
  loss.amid_shrink = true;
  loss.node = static_cast<uint32_t>(rng.Below(nodes));
  plan->faults.push_back(loss);
  ++plan->spares;
}

// Fills the pool with what there is to be moved: values of many sizes, some in extents, or an index
// that splits.
void FillWhatJoined(Rng& rng, Plan* plan) {
  plan->fills_added = static_cast<uint32_t>(rng.Below(2));
  switch (rng.Below(6)) {
    case 0:
      plan->data_path.record_value_bytes_max = OneOf(rng, {10U, 35U, 250U});
      plan->data_path.extent_bytes = OneOf(rng, {30U, 100U, 700U});
      return;
    case 1:
    case 2:
      // Subtables come to lie in regions that leave then.
      plan->fills_added = 1;
      return MakeGrow(rng, /*with_deadlines=*/false, plan);
    case 3:
    case 4: {
      WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kRegisterMixes));
      options.operations = 20 + static_cast<uint32_t>(rng.Below(40));
      options.cold_keys = 10 + static_cast<uint32_t>(rng.Below(30));
      options.hot_percent = 20;
      options.value_bytes = {40, 1200, OneOf(rng, {5000U, 20'000U, 60'000U})};
      plan->program = MakeProgram(rng.Next(), options);
      return;
    }
    default:
      return;
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
  const uint64_t span_ns = SpanOf(plan);
  JoinNodes(span_ns, rng, &plan);
  constexpr uint64_t kDrains = 0x5481'0000'0000;
  Rng again(seed ^ kDrains);
  if (again.Below(2) == 0) {
    DrainWhatJoined(span_ns, again, &plan);
    FillWhatJoined(again, &plan);
    if (again.Below(3) != 0) BreakAmidShrink(again, &plan);
    // So long that there are clients still when all has joined.
    if (again.Below(4) != 0) plan.think_ns_max = OneOf(again, {1'000'000UL, 4'000'000UL});
  }
  if (rng.Below(2) == 0) plan.free_blocks = 6 + static_cast<uint32_t>(rng.Below(12));
  plan.data_path.memory_wait_ms = OneOf(rng, {1UL, 3UL});
  plan.last_loss = 1 + static_cast<uint32_t>(rng.Below(plan.shape.nodes + plan.spares));
  return plan;
}

}  // namespace onetrip
