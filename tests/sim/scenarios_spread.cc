// Full pools whose regions lie on different memory nodes.
#include "tests/sim/scenario_parts.h"

namespace onetrip {

// A register's buffers lie on its own nodes: where no room is near it, a SET moves its key, while
// agents come and go, the index splits, regions move or nodes come back.
Plan MakeSpread(uint64_t seed) {
  Plan plan = MakeBrim(seed);
  plan.scenario = "spread";
  Rng rng(seed ^ 0x59ea'd000'0000);
  // One node or two more than the replicas, with room for two regions each: two or three regions.
  plan.shape.nodes = plan.shape.replicas + 1 + static_cast<uint32_t>(rng.Below(2));
  plan.shape.node_bytes = 2 * kRegionBytes;
  plan.free_blocks = 3 + static_cast<uint32_t>(rng.Below(4));
  WorkloadOptions options;
  options.kinds = {
      {CommandKind::kSet, 12},     {CommandKind::kGet, 4},    {CommandKind::kDel, 1},
      {CommandKind::kSetNew, 2},   {CommandKind::kGetSet, 1}, {CommandKind::kAppend, 1},
      {CommandKind::kSetRange, 1}, {CommandKind::kMSet, 1},   {CommandKind::kExpire, 1}};
  options.clients = 3 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 30 + static_cast<uint32_t>(rng.Below(40));
  options.hot_keys = 3;
  options.cold_keys = 40 + static_cast<uint32_t>(rng.Below(40));
  options.hot_percent = 30;
  options.number_percent = 0;
  options.expiry_ms_max = 1'000'000;
  options.value_bytes = {OneOf(rng, {5000U, 20'000U, 40'000U})};
  // Some are held by registers themselves.
  if (rng.Below(2) == 0) options.value_bytes.push_back(OneOf(rng, {300U, 1200U, 60'000U}));
  plan.program = MakeProgram(rng.Next(), options);
  if (rng.Below(4) == 0) MakeGrow(rng, /*with_deadlines=*/false, &plan);
  switch (rng.Below(4)) {
    case 0:
      MoveRegions(rng, &plan);
      break;
    case 1:
    case 2:
      // The room near the old registers is full, the added room is not.
      JoinNodes(SpanOf(plan), rng, &plan);
      break;
    default:
      break;
  }
  return plan;
}

}  // namespace onetrip
