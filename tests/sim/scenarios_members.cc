// Scenarios about membership: quiesces and flushes, agents, nodes and masters that come and go.
#include <algorithm>

#include "tests/sim/scenario_parts.h"
#include "tests/support/append_history.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

void AddFlushes(uint32_t percent, WorkloadOptions* options) {
  uint32_t weights = 0;
  for (const KindWeight& kind : options->kinds) weights += kind.weight;
  options->kinds.push_back({CommandKind::kFlush, std::max(1U, weights * percent / 100)});
}

// How long the commands take, about.
uint64_t SpanNs(const Plan& plan, const WorkloadOptions& options) {
  return options.operations * (plan.think_ns_max / 2 + 8 * plan.fabric.latency_max_ns);
}

// Some nodes more, which take the place of those that are away for long, or for good. The first
// fault is of a node that is away.
void AddSpares(Plan* plan, Rng& rng) {
  plan->spares = 1 + static_cast<uint32_t>(rng.Below(2));
  plan->control.replace_after_ms = OneOf(rng, {0UL, 1UL, 4UL});
  Fault& away = plan->faults.front();
  if (rng.Below(2) == 0) {
    away.kind = FaultKind::kLoseNode;
    away.duration_ns = 0;
  }
  const uint32_t nodes = plan->shape.nodes + plan->spares;
  for (Fault& fault : plan->faults) {
    if (&fault != &away) fault.node = static_cast<uint32_t>(rng.Below(nodes));
  }
  do {
    plan->last_loss = 1 + static_cast<uint32_t>(rng.Below(nodes));
  } while (away.kind == FaultKind::kLoseNode && plan->last_loss == away.node + 1);
}

}  // namespace

Fault MakeMemberFault(const Plan& plan, uint64_t span_ns, Rng& rng) {
  constexpr FaultKind kKinds[] = {
      FaultKind::kCrashAgent,   FaultKind::kLeaveAgent,   FaultKind::kPauseAgent,
      FaultKind::kPauseAgent,   FaultKind::kMasterDown,   FaultKind::kMasterDown,
      FaultKind::kPauseMaster,  FaultKind::kStoreFails,   FaultKind::kRestartNode,
      FaultKind::kPauseNode,    FaultKind::kBreakControl, FaultKind::kBreakNodeControl,
      FaultKind::kBreakChannel, FaultKind::kSlowLink};
  Fault fault;
  fault.kind = OneOf(rng, kKinds);
  fault.at_ns = rng.Below(span_ns);
  fault.duration_ns = 1000 + rng.Below(OneOf(rng, {100'000UL, 2'000'000UL}));
  fault.agent = static_cast<uint32_t>(rng.Below(plan.agents));
  fault.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
  if (fault.kind == FaultKind::kSlowLink) fault.amount = static_cast<int64_t>(2 + rng.Below(50));
  const bool at_once = fault.kind == FaultKind::kBreakControl ||
                       fault.kind == FaultKind::kBreakNodeControl ||
                       fault.kind == FaultKind::kBreakChannel;
  if (at_once) fault.duration_ns = 0;
  return fault;
}

// Flushes in the middle of everything that may be asked, and nothing that breaks.
Plan MakeFlush(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("flush", seed, rng);
  DrawControl(&plan, rng);
  // No member is given up, however long the others take.
  plan.control.lease_ms = 1000;
  plan.control.hold_timeout_ms = 1000;
  plan.control.flush_wait_ms = 1000;
  plan.control.ack_timeout_ms = 1000;
  plan.control.time_lead_ms = 2000;
  plan.control.request_ms = 5000;
  plan.data_path.epoch_tick_us = OneOf(rng, {200UL, 2000UL});
  plan.fabric.step_ns = OneOf(rng, {0UL, 0UL, 0UL, 50UL});
  // One agent is slow, so that a sweep may get ahead of what it began before the flush; counters
  // tell what was swept between two increments.
  constexpr uint64_t kStream = 0x510e'0000'0000;
  Rng slowness(seed ^ kStream);
  const bool is_slow = slowness.Below(2) == 0;
  std::string_view mix = OneOf(rng, kAnyMixes);
  if (is_slow && slowness.Below(2) == 0) mix = "counters";
  WorkloadOptions options = MakeWorkload(rng, mix);
  AddFlushes(OneOf(rng, {5U, 15U, 40U}), &options);
  plan.program = MakeProgram(rng.Next(), options);
  if (is_slow) {
    Fault slow;
    slow.kind = FaultKind::kSlowLink;
    slow.agent = static_cast<uint32_t>(slowness.Below(plan.agents));
    slow.amount = static_cast<int64_t>(2 + slowness.Below(60));
    for (slow.node = 0; slow.node < plan.shape.nodes; ++slow.node) plan.faults.push_back(slow);
  }
  plan.last_flush = static_cast<uint32_t>(rng.Below(2));
  return plan;
}

// Agents and nodes come and go, the master dies and comes back, and keyspaces are flushed under it
// all.
Plan MakeMembers(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("members", seed, rng);
  DrawControl(&plan, rng);
  plan.data_path.op_timeout_ms = OneOf(rng, {1UL, 5UL});
  plan.data_path.epoch_tick_us = OneOf(rng, {200UL, 2000UL});
  plan.fabric.step_ns = OneOf(rng, {0UL, 0UL, 0UL, 50UL});
  plan.think_ns_max = OneOf(rng, {4000UL, 30'000UL, 100'000UL});
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kAnyMixes));
  options.operations = 8 + static_cast<uint32_t>(rng.Below(16));
  AddFlushes(OneOf(rng, {5U, 15U, 30U}), &options);
  plan.program = MakeProgram(rng.Next(), options);
  const uint64_t count = 1 + rng.Below(5);
  for (uint64_t i = 0; i < count; ++i) {
    plan.faults.push_back(MakeMemberFault(plan, SpanNs(plan, options), rng));
  }
  plan.last_flush = 1;
  return plan;
}

// Nothing dies but the master: connections to it break, others answer in its place, and its host's
// wall clock is wrong when it is started again. Every agent and memory node must outlive all of it.
Plan MakeControl(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("control", seed, rng);
  DrawControl(&plan, rng);
  // A member is back, or has noticed, within the time that it has for that.
  plan.control.latency_max_ns = OneOf(rng, {3000UL, 20'000UL});
  plan.control.notice_ns_max = OneOf(rng, {1000UL, 50'000UL});
  plan.control.write_ns_max = OneOf(rng, {0UL, 10'000UL});
  plan.control.lease_ms = OneOf(rng, {4UL, 10UL});
  plan.control.grace_ms = 3;
  plan.control.ack_timeout_ms = 10;
  plan.control.time_lead_ms = 2 * plan.control.lease_ms;
  plan.control.request_ms = 20;
  plan.nobody_ends = 1;
  plan.think_ns_max = OneOf(rng, {4000UL, 30'000UL, 100'000UL});
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kAnyMixes));
  options.operations = 8 + static_cast<uint32_t>(rng.Below(16));
  AddFlushes(OneOf(rng, {5U, 15U, 30U}), &options);
  plan.program = MakeProgram(rng.Next(), options);
  const uint64_t span_ns = SpanNs(plan, options);
  // One after the other what becomes of the master, and anything of the connections beside it.
  uint64_t at_ns = rng.Below(span_ns / 2);
  const uint64_t masters = rng.Below(4);
  for (uint64_t i = 0; i < masters; ++i) {
    Fault fault;
    fault.kind = rng.Below(3) == 0 ? FaultKind::kMasterDown : FaultKind::kImpostor;
    fault.amount = fault.kind == FaultKind::kImpostor ? static_cast<int64_t>(rng.Below(3)) : 0;
    fault.at_ns = at_ns;
    fault.duration_ns = 1000 + rng.Below(OneOf(rng, {100'000UL, 2'000'000UL}));
    plan.faults.push_back(fault);
    at_ns += fault.duration_ns + rng.Below(OneOf(rng, {50'000UL, 1'000'000UL}));
  }
  const uint64_t resets = rng.Below(5) + (masters == 0 ? 1 : 0);
  for (uint64_t i = 0; i < resets; ++i) {
    Fault fault;
    fault.kind = rng.Below(2) == 0 ? FaultKind::kBreakControl : FaultKind::kBreakNodeControl;
    fault.at_ns = rng.Below(span_ns);
    fault.agent = static_cast<uint32_t>(rng.Below(plan.agents));
    fault.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
    plan.faults.push_back(fault);
  }
  plan.last_flush = 1;
  return plan;
}

// Databases that are swapped in the middle of everything; in half of the seeds nothing breaks.
Plan MakeSwap(uint64_t seed) {
  constexpr uint64_t kStream = 0x5a9b'0000'0000;
  Rng rng(seed ^ kStream);
  Plan plan = rng.Below(2) == 0 ? MakeFlush(seed) : MakeMembers(seed);
  plan.scenario = "swap";
  plan.databases = 2;
  const uint64_t percent = OneOf(rng, {5UL, 15UL, 30UL});
  for (std::vector<Command>& client : plan.program) {
    for (Command& command : client) {
      if (rng.Below(100) < (IsOfAllKeys(command) ? 70 : percent)) command = {"SWAPDB", "0", "1"};
    }
  }
  return plan;
}

// Lists to which tokens are appended, read and flushed: what CheckAppends() judges over all keys.
Plan MakeAppends(uint64_t seed) {
  Rng rng(seed ^ 0xa99e'0000'0000);
  Plan plan = rng.Below(2) == 0 ? MakeFlush(seed) : MakeMembers(seed);
  plan.scenario = "appends";
  const uint64_t lists = 2 + rng.Below(3);
  const uint64_t flush_percent = OneOf(rng, {2UL, 5UL, 15UL});
  uint64_t next_token = 0;
  for (std::vector<Command>& client : plan.program) {
    for (Command& command : client) {
      const std::string key = std::string(kListPrefix) + std::to_string(rng.Below(lists));
      if (rng.Below(100) < flush_percent) {
        command = {"FLUSHALL"};
      } else if (rng.Below(2) == 0) {
        command = {"GET", key};
      } else {
        command = {"APPEND", key, "t" + std::to_string(next_token++) + ";"};
      }
    }
  }
  return plan;
}

// Two nodes of three are away at once, and come back: a write that begins meanwhile waits for them.
Plan MakeMinority(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("minority", seed, rng);
  DrawControl(&plan, rng);
  plan.engine = EngineKind::kSwarm;
  plan.data_path.op_timeout_ms = OneOf(rng, {1UL, 5UL});
  plan.fabric.step_ns = OneOf(rng, {0UL, 0UL, 0UL, 5UL});
  plan.think_ns_max = OneOf(rng, {1000UL, 4000UL, 30'000UL});
  WorkloadOptions options = MakeWorkload(rng, "reads_and_writes");
  options.operations = 20 + static_cast<uint32_t>(rng.Below(40));
  // Half of the time every write after a key's first is one of a register, which has room for it.
  if (rng.Below(2) == 0) {
    options.kinds = {{CommandKind::kGet, 50}, {CommandKind::kSet, 50}};
    options.value_bytes = {40};
    options.number_percent = 0;
    plan.transactions_every = 0;
    plan.data_path.register_cache_entries = DataPathOptions().register_cache_entries;
    plan.data_path.resting_registers_max = DataPathOptions().resting_registers_max;
  }
  plan.program = MakeProgram(rng.Next(), options);
  const uint64_t span_ns = SpanNs(plan, options);
  const uint64_t count = 1 + rng.Below(3);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = FaultKind::kRestartNode;
    fault.at_ns = rng.Below(span_ns);
    fault.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
    for (int node = 0; node < 2; ++node) {
      fault.duration_ns = 1000 + rng.Below(OneOf(rng, {100'000UL, 2'000'000UL}));
      plan.faults.push_back(fault);
      fault.node = (fault.node + 1) % plan.shape.nodes;
      fault.at_ns += rng.Below(20'000);
    }
  }
  return plan;
}

void LookForLost(uint64_t seed, Plan* plan) {
  Rng rng(seed ^ 0x1057'0000'0000);
  plan->data_path.account_rest_us = OneOf(rng, {20UL, 500UL});
  plan->data_path.accounts_always = static_cast<uint32_t>(rng.Below(2));
  plan->data_path.compacts_always = static_cast<uint32_t>(rng.Below(2));
  plan->data_path.compaction_rest_us = OneOf(rng, {20UL, 500UL});
}

// Memory that is reused at once while agents die, are expelled and join anew: which worker reads
// what is decided by which worker is taken for alive.
Plan MakeTurnover(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeTight(seed);
  plan.scenario = "turnover";
  DrawControl(&plan, rng);
  constexpr uint64_t kStream = 0xdead'0000'0000;
  Rng deadlines(seed ^ kStream);
  if (deadlines.Below(5) == 0) {
    WorkloadOptions options = MakeWorkload(deadlines, "expiry");
    AddDeadlines(deadlines, &plan, &options);
    options.hot_keys = 1 + static_cast<uint32_t>(deadlines.Below(3));
    plan.program = MakeProgram(deadlines.Next(), options);
  }
  // Some hear of a new worker long after it has begun to work.
  plan.control.latency_max_ns = OneOf(rng, {20'000UL, 100'000UL, 800'000UL});
  plan.control.lease_ms = OneOf(rng, {4UL, 10UL});
  plan.control.request_ms = 20;
  plan.control.time_lead_ms = 2 * plan.control.lease_ms;
  plan.data_path.op_timeout_ms = 1;
  plan.data_path.epoch_tick_us = OneOf(rng, {20UL, 100UL});
  plan.tick_spread = 1;
  const uint64_t span_ns = 20 * (plan.think_ns_max / 2 + 8 * plan.fabric.latency_max_ns);
  const uint64_t count = 1 + rng.Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault = MakeMemberFault(plan, span_ns, rng);
    // A node that was away knows less of the owners of blocks than the others, and there are no
    // repairs yet: writes that need a block may fail for good, which is no news here.
    if (rng.Below(2) == 0 || fault.kind == FaultKind::kRestartNode) {
      fault.kind =
          OneOf(rng, {FaultKind::kCrashAgent, FaultKind::kPauseAgent, FaultKind::kLeaveAgent});
      fault.duration_ns = 1000 + rng.Below(20'000);
    }
    plan.faults.push_back(fault);
  }
  plan.last_flush = rng.Below(4) == 0 ? 1 : 0;
  LookForLost(seed, &plan);
  plan.last_death = static_cast<uint32_t>(deadlines.Below(2));
  return plan;
}

// Values of one or two sizes fill what there is; commands leave them as large as they are, or not.
Plan MakeBrim(uint64_t seed) {
  Plan plan = MakeScarce(seed);
  plan.scenario = "brim";
  Rng rng(seed ^ 0xb419'0000);
  plan.free_blocks = 6 + static_cast<uint32_t>(rng.Below(6));
  WorkloadOptions options;
  options.kinds = {
      {CommandKind::kSet, 8},      {CommandKind::kSetNew, 4}, {CommandKind::kExpire, 4},
      {CommandKind::kPersist, 2},  {CommandKind::kGetEx, 2},  {CommandKind::kGetDel, 1},
      {CommandKind::kSetRange, 2}, {CommandKind::kMSet, 3},   {CommandKind::kGet, 4},
      {CommandKind::kMGet, 1},     {CommandKind::kDel, 1},    {CommandKind::kAppend, 1}};
  options.clients = 3 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 20 + static_cast<uint32_t>(rng.Below(40));
  options.hot_keys = 3;
  options.cold_keys = 20 + static_cast<uint32_t>(rng.Below(40));
  options.hot_percent = 30;
  options.number_percent = 0;
  options.expiry_ms_max = 1'000'000;
  options.value_bytes = {OneOf(rng, {5000U, 20'000U, 40'000U, 60'000U})};
  if (rng.Below(2) == 0) options.value_bytes.push_back(OneOf(rng, {300U, 1200U, 60'000U}));
  plan.program = MakeProgram(rng.Next(), options);
  return plan;
}

// So few blocks that workers have to give each other what they have: values of many sizes, which
// are deleted again.
Plan MakeScarce(uint64_t seed) {
  Plan plan = MakeTurnover(seed);
  plan.scenario = "scarce";
  Rng rng(seed ^ 0x5ca2'ce00'0000);
  plan.data_path.memory_wait_ms = OneOf(rng, {1UL, 3UL});
  plan.shape.node_bytes = kRegionBytes;
  // The memory node keeps four; each agent has one for its ring of retired registers.
  plan.free_blocks = 6 + static_cast<uint32_t>(rng.Below(14));
  plan.large_value_bytes = 0;
  plan.last_flush = 0;
  WorkloadOptions options;
  options.kinds = {{CommandKind::kSet, 8},    {CommandKind::kDel, 6},    {CommandKind::kGet, 3},
                   {CommandKind::kGetDel, 1}, {CommandKind::kAppend, 1}, {CommandKind::kGetSet, 1}};
  options.clients = 3 + static_cast<uint32_t>(rng.Below(3));
  options.operations = 30 + static_cast<uint32_t>(rng.Below(60));
  options.hot_keys = 2;
  options.cold_keys = 10 + static_cast<uint32_t>(rng.Below(30));
  options.hot_percent = 20;
  options.number_percent = 0;
  // Few of the large ones fit into a block; of one size alone a worker has several blocks.
  const uint32_t large = OneOf(rng, {20'000U, 40'000U, 60'000U});
  switch (rng.Below(3)) {
    case 0:
      options.value_bytes = {40, 300, 1200, 5000};
      break;
    case 1:
      options.value_bytes = {large, 60'000, 300};
      break;
    default:
      options.value_bytes = {large};
      options.cold_keys += 30;
      break;
  }
  plan.program = MakeProgram(rng.Next(), options);
  if (rng.Below(4) == 0) {
    plan.faults.clear();
    return plan;
  }
  // A worker that has got a block ends soon, and others look what is in it.
  const uint64_t span_ns = 40 * plan.fabric.latency_max_ns * 8;
  for (uint64_t i = 2 + rng.Below(6); i > 0; --i) {
    Fault fault;
    fault.kind = OneOf(rng, {FaultKind::kCrashAgent, FaultKind::kLeaveAgent});
    fault.at_ns = rng.Below(OneOf(rng, {1UL, 20UL}) * span_ns);
    fault.duration_ns = 1000 + rng.Below(20'000);
    fault.agent = static_cast<uint32_t>(rng.Below(plan.agents));
    plan.faults.push_back(fault);
  }
  return plan;
}

// A memory node dies under writes and comes back, more than once perhaps, while agents die, too;
// when every region has all its replicas again another node is lost for good.
Plan MakeRepairs(uint64_t seed) {
  Rng rng(seed);
  Plan plan = MakeBasePlan("repairs", seed, rng);
  DrawControl(&plan, rng);
  plan.control.latency_max_ns = OneOf(rng, {3000UL, 20'000UL});
  plan.control.lease_ms = 4;
  plan.control.time_lead_ms = 8;
  plan.data_path.op_timeout_ms = OneOf(rng, {5UL, 20UL});
  plan.data_path.epoch_tick_us = OneOf(rng, {20UL, 200UL});
  plan.data_path.retired_objects_max = OneOf(rng, {1UL, 256UL});
  plan.fabric.step_ns = OneOf(rng, {0UL, 0UL, 0UL, 0UL, 5UL});
  plan.think_ns_max = OneOf(rng, {1000UL, 4000UL, 30'000UL});
  WorkloadOptions options = MakeWorkload(rng, OneOf(rng, kRegisterMixes));
  options.operations = 20 + static_cast<uint32_t>(rng.Below(60));
  plan.program = MakeProgram(rng.Next(), options);
  const uint64_t span_ns = SpanNs(plan, options);
  Fault away;
  away.kind = rng.Below(4) == 0 ? FaultKind::kBreakNodeControl : FaultKind::kRestartNode;
  away.at_ns = rng.Below(span_ns / 2);
  away.duration_ns = away.kind == FaultKind::kRestartNode
                         ? 1000 + rng.Below(OneOf(rng, {span_ns, 4 * span_ns}))
                         : 0;
  away.node = static_cast<uint32_t>(rng.Below(plan.shape.nodes));
  plan.faults.push_back(away);
  const uint64_t count = rng.Below(3);
  for (uint64_t i = 0; i < count; ++i) {
    plan.faults.push_back(MakeMemberFault(plan, span_ns, rng));
  }
  plan.last_loss = 1 + static_cast<uint32_t>(rng.Below(plan.shape.nodes));
  constexpr uint64_t kStream = 0x59a2'0000'0000;
  Rng spares(seed ^ kStream);
  if (spares.Below(2) == 0) AddSpares(&plan, spares);
  return plan;
}

// Regions move between nodes that live: some are to drain, others are given their share, and may be
// told otherwise before that is done. In half of the seeds processes and connections fail
// meanwhile. In the end drained nodes are switched off, then another node is lost for good.
Plan MakeMoves(uint64_t seed) {
  constexpr uint64_t kStream = 0x6d0e'0000'0000;
  Plan plan = MakeRepairs(seed);
  plan.scenario = "moves";
  Rng rng(seed ^ kStream);
  plan.shape.node_bytes = 32ULL << 20;
  plan.spares = 1 + static_cast<uint32_t>(rng.Below(2));
  plan.control.replace_after_ms = OneOf(rng, {1UL, 4UL});
  constexpr uint64_t kAccounts = 0xacc0'0000'0000;
  Rng accounts(seed ^ kAccounts);
  plan.data_path.account_rest_us = OneOf(accounts, {200UL, 1000UL});
  plan.mixes_engines = plan.engine == EngineKind::kSwarm && rng.Below(8) == 0;
  constexpr uint64_t kChannels = 0x0be7'0000'0000;
  Rng channels(seed ^ kChannels);
  plan.fabric.open_ns_max = OneOf(channels, {0UL, 20'000UL, 500'000UL, 5'000'000UL});
  const uint32_t nodes = plan.shape.nodes + plan.spares;
  const uint64_t span_ns = SpanOf(plan);
  if (rng.Below(2) == 0) plan.faults.clear();
  for (Fault& fault : plan.faults) {
    fault.node = static_cast<uint32_t>(rng.Below(nodes));
    // A node that is lost for good is not needed for what is to be shown.
    if (fault.kind == FaultKind::kLoseNode) fault.kind = FaultKind::kBreakNodeControl;
  }
  const uint64_t count = 1 + rng.Below(3);
  for (uint64_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = rng.Below(3) == 0 ? FaultKind::kFillNode : FaultKind::kDrainNode;
    fault.at_ns = rng.Below(span_ns / 2);
    // One that has regions, to begin with, or one that has none.
    fault.node = fault.kind == FaultKind::kDrainNode
                     ? static_cast<uint32_t>(rng.Below(plan.shape.nodes))
                     : plan.shape.nodes + static_cast<uint32_t>(rng.Below(plan.spares));
    if (i > 0 && rng.Below(4) == 0) fault.node = static_cast<uint32_t>(rng.Below(nodes));
    plan.faults.push_back(fault);
  }
  plan.last_loss = 1 + static_cast<uint32_t>(rng.Below(nodes));
  return plan;
}

void AddCut(uint32_t agent, uint32_t node, uint64_t at_ns, Plan* plan, Rng& rng) {
  Fault cut;
  cut.kind = FaultKind::kCutLink;
  cut.agent = agent;
  cut.node = node;
  cut.at_ns = at_ns;
  const uint64_t times = rng.Below(3) == 0 ? 1 + rng.Below(6) : 0;
  for (uint64_t i = 0; i < times; ++i) {
    cut.duration_ns = 1000 + rng.Below(OneOf(rng, {200'000UL, 5'000'000UL, 30'000'000UL}));
    plan->faults.push_back(cut);
    cut.at_ns += cut.duration_ns + rng.Below(OneOf(rng, {200'000UL, 5'000'000UL}));
  }
  cut.duration_ns = 0;
  if (times == 0 || rng.Below(2) == 0) plan->faults.push_back(cut);
}

void WatchReach(Plan* plan, Rng& rng) {
  plan->control.lease_ms = 4;
  plan->control.time_lead_ms = 8;
  plan->control.latency_max_ns = std::min<uint64_t>(plan->control.latency_max_ns, 20'000);
  // A worker that waits for another's round in a slot gives way to a quiesce after 20 ms.
  plan->control.hold_timeout_ms = std::max<uint64_t>(plan->control.hold_timeout_ms, 50);
  plan->control.reach_look_us = OneOf(rng, {300UL, 1000UL});
  plan->control.reach_settle_ms = OneOf(rng, {1UL, 4UL});
  plan->control.reach_back_ms = OneOf(rng, {1UL, 8UL});
  plan->fabric.open_ns_max = std::min<uint64_t>(plan->fabric.open_ns_max, 500'000);
}

// Agents that do not reach a memory node, for a while, now and then, or for good: one of them,
// most, or one that does not reach several nodes; in half of the seeds among other faults. An agent
// that is a member in the end must be served, by a map without the node; or it is none.
Plan MakeCuts(uint64_t seed) {
  constexpr uint64_t kStream = 0xc075'0000'0000;
  Rng rng(seed ^ kStream);
  const uint64_t base = rng.Below(4);
  Plan plan = base == 0 ? MakeMembers(seed) : base == 1 ? MakeMoves(seed) : MakeRepairs(seed);
  plan.scenario = "cuts";
  if (rng.Below(2) == 0) plan.faults.clear();
  // A node that is lost for good leaves no room for what is to be shown.
  std::erase_if(plan.faults, [](const Fault& fault) { return fault.kind == FaultKind::kLoseNode; });
  WatchReach(&plan, rng);
  const uint64_t at_ns = rng.Below(400'000);
  const auto nodes = static_cast<uint64_t>(plan.shape.nodes);
  const auto agent = static_cast<uint32_t>(rng.Below(plan.agents));
  const auto node = static_cast<uint32_t>(rng.Below(nodes));
  switch (rng.Below(4)) {
    case 0:
      AddCut(agent, node, at_ns, &plan, rng);
      break;
    case 1: {
      const uint64_t count = plan.agents / 2 + rng.Below(plan.agents - plan.agents / 2 + 1);
      for (uint32_t i = 0; i < count; ++i) {
        AddCut((agent + i) % plan.agents, node, at_ns + rng.Below(100'000), &plan, rng);
      }
      break;
    }
    case 2:
      AddCut(agent, node, at_ns, &plan, rng);
      AddCut(agent, (node + 1) % static_cast<uint32_t>(nodes), at_ns, &plan, rng);
      break;
    default:
      AddCut(agent, node, at_ns, &plan, rng);
      AddCut((agent + 1) % plan.agents, static_cast<uint32_t>(rng.Below(nodes)), rng.Below(400'000),
             &plan, rng);
  }
  return plan;
}

}  // namespace onetrip
