// Agents that stand still in the middle of a write, at any step, while others read on.
#include "tests/sim/scenario_parts.h"

namespace onetrip {
namespace {

constexpr uint32_t kFreezersMax = 3;

// The programs of agents that write and then of those that read; a client an agent.
Program MakeFrozenProgram(uint32_t writers, uint32_t readers, Rng& rng) {
  WorkloadOptions options;
  options.clients = writers + readers;
  options.hot_keys = 1 + static_cast<uint32_t>(rng.Below(2));
  options.cold_keys = static_cast<uint32_t>(rng.Below(2));
  options.number_percent = OneOf(rng, {50U, 90U});
  options.value_bytes = {OneOf(rng, {8U, 40U, 300U})};
  options.operations = 10 + static_cast<uint32_t>(rng.Below(15));
  // Blind writes mostly, or registers that end again and again.
  options.kinds = {{CommandKind::kSet, 40},
                   {CommandKind::kDel, OneOf(rng, {3U, 25U})},
                   {CommandKind::kIncr, OneOf(rng, {5U, 25U})},
                   {CommandKind::kGet, 3}};
  Program program = MakeProgram(rng.Next(), options);
  options.operations = 100 + static_cast<uint32_t>(rng.Below(60));
  options.kinds = {{CommandKind::kGet, 1}};
  const Program reads = MakeProgram(rng.Next(), options);
  for (uint32_t reader = writers; reader < writers + readers; ++reader) {
    program[reader] = reads[reader];
  }
  return program;
}

}  // namespace

Plan MakeFrozen(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("frozen", seed, rng);
  // The others hold no registers for readers to meet.
  if (plan.engine == EngineKind::kSnapshot) plan.engine = EngineKind::kSwarm;
  // No agent is expelled for standing still.
  plan.control.lease_ms = 20'000;
  plan.control.time_lead_ms = 2 * plan.control.lease_ms;
  // More than any round trip takes; a worker that waits for the frozen gives up after that.
  plan.data_path.op_timeout_ms = 10;
  plan.data_path.wait_timer_max_us = 1000;
  // So that there are readers when a writer is in the middle of something.
  plan.think_ns_max = OneOf(rng, {3000UL, 6000UL});

  const auto freezers = 1 + static_cast<uint32_t>(rng.Below(kFreezersMax));
  const auto live_writers = static_cast<uint32_t>(rng.Below(2));
  const auto readers = 1 + static_cast<uint32_t>(rng.Below(3));
  plan.agents = freezers + live_writers + readers;
  plan.program = MakeFrozenProgram(freezers + live_writers, readers, rng);
  // A worker's first writes take so long, for they need memory.
  constexpr uint64_t kFirstWritesNs = 250'000;
  const uint64_t span_ns =
      200'000 + plan.program[0].size() * (plan.think_ns_max / 2 + 2 * plan.fabric.latency_max_ns);
  const bool for_good = rng.Below(3) == 0;
  const bool clocks_disagree = rng.Below(2) == 0;
  for (uint32_t agent = 0; agent < freezers; ++agent) {
    Fault freeze;
    freeze.kind = FaultKind::kFreezeAgent;
    freeze.at_ns =
        rng.Below(4) == 0 ? rng.Below(kFirstWritesNs) : kFirstWritesNs + rng.Below(span_ns);
    freeze.agent = agent;
    freeze.amount = for_good ? 1 : 0;
    plan.faults.push_back(freeze);
  }
  for (uint32_t agent = 0; agent < freezers + live_writers; ++agent) {
    // Guesses that are stale: they have to be locked and written anew.
    if (clocks_disagree) {
      Fault step;
      step.kind = FaultKind::kStepClock;
      step.agent = agent;
      step.amount = static_cast<int64_t>(rng.Below(100'000)) - 50'000;
      plan.faults.push_back(step);
    }
    // A value that it writes is at one node long before it is at the others.
    if (rng.Below(3) == 0) {
      Fault slow;
      slow.kind = FaultKind::kSlowLink;
      slow.agent = agent;
      slow.amount = static_cast<int64_t>(5 + rng.Below(30));
      const auto near = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
      for (slow.node = 0; slow.node < plan.shape.nodes; ++slow.node) {
        if (slow.node != near) plan.faults.push_back(slow);
      }
    }
  }
  return plan;
}

}  // namespace onetrip
