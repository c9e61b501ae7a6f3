// A seed decides, scenario by scenario: settings from their legal ranges, commands, faults.
#include <algorithm>
#include <array>
#include <iterator>

#include "tests/sim/crowded_keys.h"
#include "tests/sim/plan.h"
#include "tests/sim/scenario_parts.h"

namespace onetrip {

namespace {

// Draws from a generator of its own: what a seed decides otherwise does not depend on the engine,
// or on what goes through transactions.
void DrawEngine(uint64_t seed, Plan* plan) {
  constexpr uint64_t kStream = 0x5afe'9e55'0000'0000;
  Rng rng(seed ^ kStream);
  plan->engine = rng.Below(4) == 0 ? EngineKind::kSnapshot : EngineKind::kSwarm;
  plan->data_path.register_lanes = OneOf(rng, {1U, 4U, 16U});
  if (rng.Below(3) == 0) {
    constexpr std::array<uint64_t, 3> kResting = {0, 3, 1000};
    DataPathOptions& options = plan->data_path;
    options.register_cache_entries = 2 + rng.Below(7);
    options.resting_registers_max = kResting[options.register_cache_entries % kResting.size()];
  }
  if (plan->engine == EngineKind::kSnapshot && rng.Below(4) == 0) plan->engine = EngineKind::kAbd;
  if (rng.Below(3) == 0) plan->transactions_every = 1 + static_cast<uint32_t>(rng.Below(3));
}

}  // namespace

constexpr int64_t kUnixStartMs = 1'700'000'000'000;

uint64_t SpanOf(const Plan& plan) {
  size_t longest = 0;
  for (const std::vector<Command>& client : plan.program) {
    longest = std::max(longest, client.size());
  }
  return longest * (plan.think_ns_max / 2 + 8 * plan.fabric.latency_max_ns);
}

Plan MakeBasePlan(std::string_view scenario, uint64_t seed, Rng& rng) {
  Plan plan;
  plan.scenario = scenario;
  plan.seed = seed;
  struct Latency {
    uint64_t min_ns, max_ns;
    uint32_t tail_permille;
  };
  constexpr Latency kLatencies[] = {
      {500, 600, 0}, {500, 5000, 0}, {800, 1200, 30}, {100, 20'000, 0}, {300, 900, 150}};
  const Latency latency = OneOf(rng, kLatencies);
  plan.fabric.latency_min_ns = latency.min_ns;
  plan.fabric.latency_max_ns = latency.max_ns;
  plan.fabric.tail_permille = latency.tail_permille;
  plan.fabric.step_ns = OneOf(rng, {0UL, 5UL, 50UL, 400UL});
  plan.data_path.wait_polls_max = OneOf(rng, {0U, 1U, 4U, 64U});
  plan.data_path.wait_timer_us = OneOf(rng, {1U, 10U, 50U});
  plan.data_path.wait_timer_max_us = OneOf(rng, {50U, 1000U});
  plan.data_path.epoch_tick_us = OneOf(rng, {20UL, 200UL, 2000UL});
  plan.data_path.retired_objects_max = OneOf(rng, {1U, 3U, 256U});
  plan.data_path.memory_wait_ms = OneOf(rng, {1UL, 20UL});
  plan.data_path.location_cache_bytes = OneOf(rng, {64UL, 4096UL, 131'072UL});
  plan.think_ns_max = OneOf(rng, {0UL, 1000UL, 4000UL, 30'000UL});
  plan.agents = 2 + static_cast<uint32_t>(rng.Below(3));
  DrawEngine(seed, &plan);
  constexpr uint64_t kStream = 0x4196'0000'0000;
  Rng rings(seed ^ kStream);
  plan.data_path.retired_ring_after = OneOf(rings, {0U, 0U, 3U, 12U, 1000U});
  constexpr uint64_t kHotStream = 0x407'0000'0000;
  Rng hot(seed ^ kHotStream);
  plan.data_path.hot_after = OneOf(hot, {0U, 0U, 0U, 2U});
  plan.data_path.split_groups_at_once = OneOf(hot, {64U, 32U, 4U, 2U});
  return plan;
}

WorkloadOptions MakeWorkload(Rng& rng, std::string_view mix) {
  WorkloadOptions options;
  options.clients = 2 + static_cast<uint32_t>(rng.Below(4));
  options.operations = 4 + static_cast<uint32_t>(rng.Below(12));
  options.hot_percent = OneOf(rng, {50U, 80U, 100U});
  ApplyMix(*FindMix(mix), &options);
  return options;
}

void AddDeadlines(Rng& rng, Plan* plan, WorkloadOptions* options) {
  // So long that they pass within the run, and walks meet them.
  plan->think_ns_max = OneOf(rng, {100'000UL, 400'000UL});
  plan->data_path.expiry_rest_us = OneOf(rng, {200UL, 1000UL});
  ApplyMix(*FindMix("expiry"), options);
  options->operations = 8 + static_cast<uint32_t>(rng.Below(16));
  options->expiry_ms_max = OneOf(rng, {1U, 3U});
  options->unix_start_ms = kUnixStartMs;
}

void DrawControl(Plan* plan, Rng& rng) {
  ControlSettings& control = plan->control;
  control.latency_min_ns = OneOf(rng, {500UL, 2000UL});
  control.latency_max_ns = OneOf(rng, {3000UL, 20'000UL, 100'000UL});
  control.notice_ns_max = OneOf(rng, {1000UL, 50'000UL, 1'000'000UL});
  control.write_ns_max = OneOf(rng, {0UL, 10'000UL, 100'000UL});
  control.fence_fails_percent = OneOf(rng, {0U, 0U, 30U});
  control.lease_ms = OneOf(rng, {1UL, 1UL, 4UL});
  control.grace_ms = OneOf(rng, {1UL, 3UL});
  control.hold_timeout_ms = OneOf(rng, {3UL, 6UL});
  control.flush_wait_ms = OneOf(rng, {1UL, 4UL});
  control.ack_timeout_ms = OneOf(rng, {2UL, 10UL});
  control.fence_retry_ms = 1;
  control.time_lead_ms = 2 * control.lease_ms;
  control.request_ms = OneOf(rng, {2UL, 8UL});
  control.copy_hold_timeout_ms = std::min(control.hold_timeout_ms, control.ack_timeout_ms / 2);
  constexpr uint64_t kStream = 0x5ee5'0000'0000;
  control.sees_ends = static_cast<uint32_t>(Rng(plan->seed ^ kStream).Below(2));
}

// Every object is reused as soon as the epochs allow it, and the epochs never rest.
Plan MakeTight(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("tight", seed, rng);
  plan.data_path.epoch_tick_us = 20;
  plan.data_path.retired_objects_max = 1;
  plan.data_path.location_cache_bytes = OneOf(rng, {64UL, 64UL, 131'072UL});
  plan.think_ns_max = OneOf(rng, {0UL, 1000UL});
  constexpr std::string_view kOverwriting[] = {"reads_and_writes", "registers", "churn", "mixed",
                                               "registers",        "endings"};
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kOverwriting));
  options.clients = 3 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 20 + static_cast<uint32_t>(rng.Below(40));
  options.hot_keys = 1 + static_cast<uint32_t>(rng.Below(3));
  options.cold_keys = static_cast<uint32_t>(rng.Below(3));
  options.value_bytes = {OneOf(rng, {40U, 300U, 1200U})};
  // Values so long that the replica with the in-place copy takes its time, while another answers
  // late: a worker that freezes a register then decides by two replicas that it has met at
  // different moments.
  constexpr uint64_t kStream = 0x7160'0000'0000;
  Rng long_values(seed ^ kStream);
  const bool are_long = long_values.Below(4) == 0;
  if (are_long) {
    options.kinds = {{CommandKind::kSet, 60},
                     {CommandKind::kGet, 20},
                     {CommandKind::kGetSet, 10},
                     {CommandKind::kSetIfPresent, 10}};
    options.number_percent = 0;
    options.value_bytes = {900};
    options.hot_keys = 1;
    options.cold_keys = 0;
  }
  plan.program = MakeProgram(rng.Next(), options);
  // One agent, or one of its links, is slow, so that the others do much while it does one thing.
  plan.tick_spread = OneOf(rng, {1U, 1U, 2U});
  plan.data_path.retired_objects_max = OneOf(rng, {1U, 1U, 256U});
  plan.fabric.latency_max_ns = std::min<uint64_t>(plan.fabric.latency_max_ns, 5000);
  if (are_long) plan.fabric.step_ns = OneOf(long_values, {5UL, 50UL, 400UL});
  Fault slow;
  slow.kind = FaultKind::kSlowLink;
  slow.agent = static_cast<uint32_t>(rng.Below(plan.agents));
  slow.amount = static_cast<int64_t>(2 + rng.Below(40));
  const bool all_links = rng.Below(2) == 0 && !are_long;
  const auto link = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
  for (slow.node = 0; slow.node < plan.shape.nodes; ++slow.node) {
    if (all_links || slow.node == link) plan.faults.push_back(slow);
  }
  return plan;
}

namespace {

// One of the small programs, a client an agent.
Plan MakeSmall(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("small", seed, rng);
  const auto shapes = SmallShapes();
  plan.program = MakeSmallProgram(shapes[rng.Below(shapes.size())]);
  plan.agents = std::min<uint32_t>(static_cast<uint32_t>(plan.program.size()), 5);
  return plan;
}

Plan MakeCalm(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("calm", seed, rng);
  plan.program = MakeProgram(rng.Next(), MakeWorkload(rng, OneOf(rng, kRegisterMixes)));
  return plan;
}

}  // namespace

// Deadlines that pass while others read, renew and replace them, by clocks that disagree.
Plan MakeExpiry(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("expiry", seed, rng);
  plan.think_ns_max = OneOf(rng, {100'000UL, 1'000'000UL, 3'000'000UL});
  WorkloadOptions options = MakeWorkload(rng, "expiry");
  options.operations = 8 + static_cast<uint32_t>(rng.Below(16));
  options.expiry_ms_max = OneOf(rng, {1U, 3U, 10U});
  options.unix_start_ms = kUnixStartMs;
  plan.program = MakeProgram(rng.Next(), options);
  // Agents that stand still for a while find in the midst of a command that time has passed.
  constexpr uint64_t kStream = 0xe8f1'0000'0000;
  Rng pauses(seed ^ kStream);
  for (uint64_t left = pauses.Below(4); left > 0; --left) {
    Fault fault;
    fault.kind = FaultKind::kPauseAgent;
    fault.at_ns = pauses.Below(10 * plan.think_ns_max);
    fault.duration_ns = 1000 + pauses.Below(1'000'000 * options.expiry_ms_max);
    fault.agent = static_cast<uint32_t>(pauses.Below(plan.agents));
    plan.faults.push_back(fault);
  }
  plan.data_path.expiry_rest_us = OneOf(pauses, {100UL, 1000UL, 100'000UL});
  return plan;
}

namespace {

// The same by clocks that disagree: set off, stepping, running fast or slow, within a bound.
Plan MakeSkewed(uint64_t seed) {
  Plan plan = MakeExpiry(seed);
  Rng rng(~seed);
  plan.scenario = "skewed";
  const uint64_t half_ns = OneOf(rng, {1000UL, 50'000UL, 700'000UL});
  plan.clock_error_ns = 4 * half_ns;
  for (uint32_t agent = 0; agent < plan.agents; ++agent) {
    for (int step = 0; step < 2; ++step) {
      Fault fault;
      fault.kind = FaultKind::kStepClock;
      fault.at_ns = step == 0 ? 0 : rng.Below(20 * plan.think_ns_max);
      fault.agent = agent;
      fault.amount = static_cast<int64_t>(rng.Below(2 * half_ns)) - static_cast<int64_t>(half_ns);
      plan.faults.push_back(fault);
    }
    Fault drift;
    drift.kind = FaultKind::kDriftClock;
    drift.agent = agent;
    // Over the length of a run, a fraction of the bound.
    drift.amount = static_cast<int64_t>(rng.Below(200)) - 100;
    plan.faults.push_back(drift);
  }
  return plan;
}

// Keys that crowd a few buckets, so that subtables split under whatever else goes on.
Plan MakeCrowded(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("crowded", seed, rng);
  plan.think_ns_max = OneOf(rng, {0UL, 1000UL});
  WorkloadOptions options =
      MakeWorkload(rng, OneOf(rng, {std::string_view("mixed"), std::string_view("churn"),
                                    std::string_view("conditions"), std::string_view("counters")}));
  options.clients = 3 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 30 + static_cast<uint32_t>(rng.Below(30));
  options.hot_keys = 2;
  options.cold_keys = 60;
  options.hot_percent = 20;
  plan.program = MakeProgram(rng.Next(), options);
  RenameKeys(CrowdedKeys(), &plan.program);
  return plan;
}

// Few keys that one slot may hold in turn, with one fingerprint.
Plan MakeTwins(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("twins", seed, rng);
  plan.think_ns_max = OneOf(rng, {0UL, 1000UL});
  // Losers sleep, so that more than one thing happens to their slot before they look.
  plan.fabric.latency_max_ns = std::min<uint64_t>(plan.fabric.latency_max_ns, 5000);
  plan.data_path.wait_polls_max = 0;
  plan.data_path.wait_timer_us = OneOf(rng, {20U, 100U});
  plan.data_path.wait_timer_max_us = 200;
  WorkloadOptions options = MakeWorkload(rng, "mixed");
  if (rng.Below(2) == 0) {
    options.kinds = {{CommandKind::kSet, 8}, {CommandKind::kGetDel, 5}, {CommandKind::kGet, 1}};
  }
  options.clients = 4 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 10 + static_cast<uint32_t>(rng.Below(20));
  options.hot_keys = 2;
  options.cold_keys = 1;
  plan.program = MakeProgram(rng.Next(), options);
  RenameKeys(TwinKeys(), &plan.program);
  return plan;
}

// Values so large that the pool is full soon: writes are refused, deletes make room.
Plan MakeFull(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("full", seed, rng);
  plan.fabric.step_ns = 0;
  plan.data_path.memory_wait_ms = 1;
  WorkloadOptions options;
  options.kinds = {{CommandKind::kSet, 6},
                   {CommandKind::kDel, 3},
                   {CommandKind::kGet, 3},
                   {CommandKind::kAppend, 1},
                   {CommandKind::kGetDel, 1}};
  options.clients = 3;
  options.operations = 25 + static_cast<uint32_t>(rng.Below(20));
  options.hot_keys = 2;
  options.cold_keys = 60;
  options.hot_percent = 20;
  options.number_percent = 0;
  options.value_bytes = {OneOf(rng, {200'000U, 400'000U, 900'000U})};
  plan.program = MakeProgram(rng.Next(), options);
  return plan;
}

Fault MakeFault(const Plan& plan, uint64_t span_ns, Rng& rng) {
  constexpr FaultKind kKinds[] = {
      FaultKind::kCrashAgent,   FaultKind::kCrashAgent, FaultKind::kPauseAgent,
      FaultKind::kPauseNode,    FaultKind::kSlowNode,   FaultKind::kBreakChannel,
      FaultKind::kBreakChannel, FaultKind::kMasterDown, FaultKind::kSlowLink};
  Fault fault;
  fault.kind = OneOf(rng, kKinds);
  fault.at_ns = rng.Below(span_ns);
  fault.duration_ns = 1000 + rng.Below(span_ns);
  fault.agent = static_cast<uint32_t>(rng.Below(plan.agents));
  fault.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
  switch (fault.kind) {
    case FaultKind::kCrashAgent:
      if (rng.Below(3) == 0) fault.duration_ns = 0;
      break;
    case FaultKind::kSlowNode:
    case FaultKind::kSlowLink:
      fault.amount = static_cast<int64_t>(2 + rng.Below(100));
      break;
    case FaultKind::kBreakChannel:
      fault.duration_ns = 0;
      break;
    default:
      break;
  }
  return fault;
}

}  // namespace

// Connections that break again and again while memory is reused at once: what failed may still be
// on its way when others go on.
Plan MakeBroken(uint64_t seed) {
  Plan plan = MakeTight(seed);
  Rng rng(~seed);
  plan.scenario = "broken";
  plan.fabric.failure_ns = OneOf(rng, {100UL, 10'000UL});
  plan.data_path.op_timeout_ms = 1;
  const uint64_t count = 1 + rng.Below(6);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = FaultKind::kBreakChannel;
    fault.at_ns = rng.Below(40 * 8 * plan.fabric.latency_max_ns);
    fault.agent = plan.faults[0].agent;
    fault.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
    plan.faults.push_back(fault);
  }
  return plan;
}

// Everything that may break, in the middle of everything that may be asked.
Plan MakeFaults(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("faults", seed, rng);
  DrawControl(&plan, rng);
  plan.data_path.op_timeout_ms = OneOf(rng, {1UL, 5UL});
  // A worker that waits for the dead waits long: without this most of a run would be ticks.
  plan.data_path.epoch_tick_us = OneOf(rng, {100UL, 2000UL});
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kRegisterMixes));
  options.operations = 6 + static_cast<uint32_t>(rng.Below(14));
  constexpr uint64_t kStream = 0xdead'0000'0000;
  Rng deadlines(seed ^ kStream);
  if (deadlines.Below(5) == 0) AddDeadlines(deadlines, &plan, &options);
  plan.program = MakeProgram(rng.Next(), options);
  // About as long as the commands take.
  const uint64_t span_ns =
      options.operations * (plan.think_ns_max / 2 + 8 * plan.fabric.latency_max_ns);
  const uint64_t count = 1 + rng.Below(4);
  for (uint64_t i = 0; i < count; ++i) plan.faults.push_back(MakeFault(plan, span_ns, rng));
  if (rng.Below(10) == 0) {
    Fault loss;
    loss.kind = FaultKind::kLoseNode;
    loss.at_ns = rng.Below(span_ns);
    loss.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
    plan.faults.push_back(loss);
  }
  return plan;
}

namespace {

// Agents of both engines on one cluster: keys change their form under commands that know only one.
Plan MakeMixed(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeCalm, MakeTight, MakeFaults};
  Plan plan = kUnder[seed % std::size(kUnder)](seed);
  plan.scenario = "mixed";
  plan.engine = EngineKind::kSwarm;
  plan.mixes_engines = true;
  return plan;
}

}  // namespace

// Values of some hundred bytes that lie in extents, under whatever else may happen.
Plan MakeExtents(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeTight,    MakeTurnover, MakeExpiry, MakeFaults,
                                          MakeTurnover, MakeFlush,    MakeTight,  MakeRepairs,
                                          MakeBroken,   MakeCalm,     MakeMoves,  MakeMembers};
  Rng rng(seed ^ 0xe87e'0000'0000);
  Plan plan = kUnder[seed % std::size(kUnder)](seed);
  plan.scenario = "extents";
  plan.data_path.record_value_bytes_max = OneOf(rng, {10U, 35U, 250U});
  plan.data_path.extent_bytes = OneOf(rng, {30U, 100U, 700U});
  plan.large_value_bytes = OneOf(rng, {0UL, 100UL, 3000UL});
  if (rng.Below(2) == 0) plan.engine = EngineKind::kSnapshot;
  plan.data_path.turn_bytes = OneOf(rng, {32U, 128U, kTurnBytes});
  return plan;
}

namespace {

constexpr Scenario kScenarios[] = {
    {"small", "programs of a few commands on one key", MakeSmall},
    {"calm", "all kinds of commands, no fault", MakeCalm},
    {"tight", "memory that is reused at once", MakeTight},
    {"expiry", "deadlines that pass", MakeExpiry},
    {"skewed", "deadlines that pass by clocks that disagree", MakeSkewed},
    {"crowded", "subtables that split under the commands", MakeCrowded},
    {"twins", "keys that share a slot and a fingerprint", MakeTwins},
    {"full", "a pool without room", MakeFull},
    {"broken", "connections that break while memory is reused", MakeBroken},
    {"faults", "agents, nodes, channels and the master fail", MakeFaults},
    {"flush", "keyspaces that are flushed under the commands", MakeFlush},
    {"control", "streams to the master that break, masters that are not the right one, wall clocks",
     MakeControl},
    {"members", "agents, nodes and masters that die and come back, under flushes", MakeMembers},
    {"swap", "databases that are swapped under the commands, and under faults", MakeSwap},
    {"appends", "appends to several keys that are flushed, judged over all keys at once",
     MakeAppends},
    {"mixed", "agents of engines swarm and snapshot on one cluster", MakeMixed},
    {"frozen", "writers that stand still at any step while others read", MakeFrozen},
    {"repairs", "a memory node dies under writes and comes back, then another is lost",
     MakeRepairs},
    {"moves", "memory nodes drain and are given their share of regions, under writes and faults",
     MakeMoves},
    {"joins", "memory nodes join a pool and add regions, under writes and faults", MakeJoins},
    {"cuts", "agents that do not reach a memory node for a while or for good", MakeCuts},
    {"minority", "two memory nodes of three are away while keys are written", MakeMinority},
    {"turnover", "memory that is reused while agents come and go", MakeTurnover},
    {"scarce", "memory that one worker has and another one needs, while agents come and go",
     MakeScarce},
    {"brim", "changes of values in a pool that is full, while agents come and go", MakeBrim},
    {"spread", "the same where regions lie on different memory nodes", MakeSpread},
    {"extents", "values in extents, under what other scenarios are about", MakeExtents},
    {"growth", "an index that grows under what other scenarios are about", MakeGrowth},
    {"storm", "mechanisms and faults drawn together", MakeStorm},
    {"collections",
     "lists, hashes, sets, sorted sets and streams, under what other scenarios are about",
     MakeCollections},
};

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

// By a generator of its own: what else a seed decides stays as it is.
Plan Scenario::Make(uint64_t seed) const {
  Plan plan = make(seed);
  Rng rng(seed * 0x9e3779b97f4a7c15ULL + 0x696e6c696e65ULL);
  if (rng.Below(4) == 0) plan.inline_agents = 1 + static_cast<uint32_t>(rng.Below(255));
  plan.fabric.traits.has_max = rng.Below(4) != 0;
  if (!plan.fabric.traits.has_max) {
    plan.fabric.traits.reads_first = rng.Below(4) == 0;
    plan.fabric.writes_backwards = rng.Below(2) == 0;
    plan.fabric.atomics_tear = rng.Below(2) == 0;
    // Inline atomics and those of a network do not exclude each other.
    if (plan.fabric.atomics_tear) plan.inline_agents = 0;
  }
  // As agents make them.
  if (plan.fabric.traits.has_max && rng.Below(4) != 0) plan.data_path.register_lanes = 1;
  if (rng.Below(3) == 0) plan.sent_ahead = 2 + static_cast<uint32_t>(rng.Below(7));
  return plan;
}

void UseRdma(Plan* plan) {
  plan->fabric.traits = {.has_max = false, .reads_first = false};
  plan->fabric.atomics_tear = true;
  plan->fabric.writes_backwards = true;
  plan->inline_agents = 0;
}

const Scenario* FindScenario(std::string_view name) {
  const auto* found = std::find_if(std::begin(kScenarios), std::end(kScenarios),
                                   [&](const Scenario& known) { return known.name == name; });
  return found == std::end(kScenarios) ? nullptr : found;
}

}  // namespace onetrip
