// Mechanisms and faults that are drawn together, whatever their theme.
#include <algorithm>
#include <iterator>
#include <set>

#include "tests/sim/scenario_parts.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

// Some SETs get a deadline that passes within the run, under walks for what is expired.
void LetExpire(Rng& rng, Plan* plan) {
  plan->think_ns_max = std::max<uint64_t>(plan->think_ns_max, 30'000);
  plan->data_path.expiry_rest_us = OneOf(rng, {100UL, 1000UL});
  for (std::vector<Command>& client : plan->program) {
    for (Command& command : client) {
      if (command.front() != "SET" || command.size() != 3 || rng.Below(3) != 0) continue;
      command.push_back("PX");
      command.push_back(std::to_string(1 + rng.Below(3)));
    }
  }
}

// Some commands give way to one of all keys.
void Sprinkle(Rng& rng, uint64_t percent, const Command& other, Plan* plan) {
  for (std::vector<Command>& client : plan->program) {
    for (Command& command : client) {
      if (rng.Below(100) < percent) command = other;
    }
  }
}

void SkewClocks(Rng& rng, Plan* plan) {
  const uint64_t half_ns = OneOf(rng, {1000UL, 50'000UL, 700'000UL});
  plan->clock_error_ns = 4 * half_ns;
  for (uint32_t agent = 0; agent < plan->agents; ++agent) {
    Fault fault;
    fault.kind = FaultKind::kStepClock;
    fault.at_ns = rng.Below(SpanOf(*plan));
    fault.agent = agent;
    fault.amount = static_cast<int64_t>(rng.Below(2 * half_ns)) - static_cast<int64_t>(half_ns);
    plan->faults.push_back(fault);
  }
}

void UseExtents(Rng& rng, Plan* plan) {
  plan->data_path.record_value_bytes_max = OneOf(rng, {10U, 35U, 250U});
  plan->data_path.extent_bytes = OneOf(rng, {30U, 100U, 700U});
  plan->data_path.turn_bytes = OneOf(rng, {32U, 128U, kTurnBytes});
  plan->large_value_bytes = OneOf(rng, {0UL, 100UL, 3000UL});
}

// Which database a client is on: see World::RunClient.
bool IsOnSecondDatabase(const Plan& plan, size_t client) {
  return plan.databases == 2 && (client + client / plan.agents) % 2 == 1;
}

// Flushes of all, or, where keys crowd groups of the first database's keyspace, which they would no
// longer do in another one, of the second database.
void Flush(Rng& rng, bool grows, Plan* plan) {
  const uint64_t percent = OneOf(rng, {2UL, 6UL});
  if (!grows || rng.Below(4) == 0) return Sprinkle(rng, percent, {"FLUSHALL"}, plan);
  plan->databases = 2;
  for (size_t client = 0; client < plan->program.size(); ++client) {
    if (!IsOnSecondDatabase(*plan, client)) continue;
    for (Command& command : plan->program[client]) {
      if (rng.Below(100) < 2 * percent) command = {"FLUSHDB"};
    }
  }
}

// One client sets more than the pool has room for, and deletes some of it again.
void FillPool(Rng& rng, Plan* plan) {
  constexpr size_t kBytes = 900'000;
  plan->fabric.step_ns = 0;
  plan->data_path.memory_wait_ms = 1;
  const uint64_t pool = plan->shape.node_bytes * plan->shape.nodes / plan->shape.replicas;
  const size_t count = pool / kBytes + 1;
  std::vector<Command>& client = plan->program.front();
  const auto insert = [&](const Command& command) {
    client.insert(client.begin() + static_cast<std::ptrdiff_t>(rng.Below(client.size() + 1)),
                  command);
  };
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(rng.Below(client.size() / 2 + 1));
    client.insert(client.begin() + at,
                  {"SET", kBallast + std::to_string(i), std::string(kBytes, 'b')});
  }
  for (size_t i = 0; i < 4; ++i) insert({"DEL", kBallast + std::to_string(rng.Below(count))});
}

// Loses a node if there are enough others: a node that is to drain takes no other's place, and two
// lost nodes are too many.
void LoseOne(Rng& rng, Plan* plan) {
  Fault loss;
  loss.kind = FaultKind::kLoseNode;
  loss.at_ns = rng.Below(SpanOf(*plan));
  loss.node = static_cast<uint32_t>(rng.Below(plan->shape.nodes));
  std::set<uint32_t> away{loss.node};
  for (const Fault& fault : plan->faults) {
    if (fault.kind == FaultKind::kLoseNode) return;
    if (fault.kind == FaultKind::kDrainNode) away.insert(fault.node);
  }
  if (away.size() <= plan->spares) plan->faults.push_back(loss);
}

}  // namespace

void MoveRegions(Rng& rng, Plan* plan) {
  plan->shape.node_bytes = std::max<uint64_t>(plan->shape.node_bytes, 32ULL << 20);
  plan->spares = std::max<uint32_t>(plan->spares, 1 + static_cast<uint32_t>(rng.Below(2)));
  // A node that is to drain takes the place of none that is lost.
  const auto is_loss = [](const Fault& fault) { return fault.kind == FaultKind::kLoseNode; };
  if (std::any_of(plan->faults.begin(), plan->faults.end(), is_loss)) {
    plan->spares = std::max<uint32_t>(plan->spares, 2);
  }
  plan->control.replace_after_ms = OneOf(rng, {1UL, 4UL});
  const uint64_t count = 1 + rng.Below(2);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = rng.Below(3) == 0 ? FaultKind::kFillNode : FaultKind::kDrainNode;
    fault.at_ns = rng.Below(SpanOf(*plan));
    fault.node = fault.kind == FaultKind::kDrainNode
                     ? static_cast<uint32_t>(rng.Below(plan->shape.nodes))
                     : plan->shape.nodes + static_cast<uint32_t>(rng.Below(plan->spares));
    plan->faults.push_back(fault);
  }
}

Plan MakeStorm(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeTurnover, MakeRepairs, MakeMembers, MakeMoves,
                                          MakeRepairs,  MakeFaults,  MakeMoves,   MakeTurnover};
  Plan plan = kUnder[seed % std::size(kUnder)](seed);
  plan.scenario = "storm";
  Rng rng(seed ^ 0x5706'0000'0000);
  const auto draw = [&rng](uint64_t percent) { return rng.Below(100) < percent; };
  LookForLost(seed, &plan);
  plan.mixes_engines = plan.engine == EngineKind::kSwarm && draw(10);
  if (draw(50)) plan.shape.node_bytes = std::max<uint64_t>(plan.shape.node_bytes, 32ULL << 20);
  const bool grows = draw(70);
  if (grows) MakeGrow(rng, draw(30), &plan);
  if (draw(40)) LetExpire(rng, &plan);
  if (draw(50)) Flush(rng, grows, &plan);
  if (draw(30)) {
    plan.databases = 2;
    Sprinkle(rng, OneOf(rng, {1UL, 4UL}), {"SWAPDB", "0", "1"}, &plan);
  }
  // Registers are worn out within the run: 1 or 0.1 ms, in ticks.
  if (draw(50)) plan.data_path.register_time_end = OneOf(rng, {2000U, 200U});
  if (draw(40)) MoveRegions(rng, &plan);
  if (draw(25)) SkewClocks(rng, &plan);
  const bool cuts = draw(25);
  if (cuts) {
    // A node that is lost for good leaves no room for a second node that an agent does not reach.
    std::erase_if(plan.faults,
                  [](const Fault& fault) { return fault.kind == FaultKind::kLoseNode; });
    WatchReach(&plan, rng);
    AddCut(static_cast<uint32_t>(rng.Below(plan.agents)),
           static_cast<uint32_t>(rng.Below(plan.shape.nodes)), rng.Below(SpanOf(plan)), &plan, rng);
  }
  const bool moves = std::any_of(plan.faults.begin(), plan.faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::kDrainNode || fault.kind == FaultKind::kFillNode;
  });
  const bool fills = draw(moves ? 15 : 40);
  if (draw(50)) UseExtents(rng, &plan);
  if (fills) {
    plan.data_path.extent_bytes = 250'000;
    plan.data_path.turn_bytes = kTurnBytes;
    FillPool(rng, &plan);
  }
  // At least one, so that outcomes may be unknown.
  const uint64_t count = 1 + rng.Below(8);
  for (uint64_t i = 0; i < count; ++i) {
    plan.faults.push_back(MakeMemberFault(plan, SpanOf(plan), rng));
    if (draw(25)) plan.faults.back().kind = FaultKind::kBreakChannel;
    if (draw(15)) plan.faults.back().kind = FaultKind::kBreakNodeControl;
  }
  if (!cuts && draw(50)) LoseOne(rng, &plan);
  if (draw(20)) {
    JoinNodes(SpanOf(plan), rng, &plan);
    if (draw(50)) {
      // Before regions leave a lost node may leave too little room.
      std::erase_if(plan.faults,
                    [](const Fault& fault) { return fault.kind == FaultKind::kLoseNode; });
      DrainWhatJoined(SpanOf(plan), rng, &plan);
      if (draw(50)) BreakAmidShrink(rng, &plan);
      plan.fills_added = static_cast<uint32_t>(rng.Below(2));
      plan.data_path.account_rest_us = std::min<uint64_t>(plan.data_path.account_rest_us, 1000);
    }
    // A node that joins is used up: for the one that is lost there is another, which takes its
    // place before the end.
    ++plan.spares;
    plan.control.replace_after_ms = std::min<uint64_t>(plan.control.replace_after_ms, 4);
  }
  return plan;
}

}  // namespace onetrip
