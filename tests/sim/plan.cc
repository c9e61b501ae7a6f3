#include "tests/sim/plan.h"

#include <charconv>
#include <sstream>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

struct FaultName {
  FaultKind kind;
  std::string_view name;
};
constexpr FaultName kFaultNames[] = {
    {FaultKind::kCrashAgent, "crash-agent"},
    {FaultKind::kPauseAgent, "pause-agent"},
    {FaultKind::kFreezeAgent, "freeze-agent"},
    {FaultKind::kPauseNode, "pause-node"},
    {FaultKind::kLoseNode, "lose-node"},
    {FaultKind::kSlowNode, "slow-node"},
    {FaultKind::kBreakChannel, "break-channel"},
    {FaultKind::kStepClock, "step-clock"},
    {FaultKind::kDriftClock, "drift-clock"},
    {FaultKind::kMasterDown, "master-down"},
    {FaultKind::kSlowLink, "slow-link"},
    {FaultKind::kLeaveAgent, "leave-agent"},
    {FaultKind::kPauseMaster, "pause-master"},
    {FaultKind::kStoreFails, "store-fails"},
    {FaultKind::kRestartNode, "restart-node"},
    {FaultKind::kBreakControl, "break-control"},
    {FaultKind::kBreakNodeControl, "break-node-control"},
    {FaultKind::kImpostor, "impostor"},
    {FaultKind::kDrainNode, "drain-node"},
    {FaultKind::kFillNode, "fill-node"},
    {FaultKind::kCutLink, "cut-link"},
};

struct EngineOfPlan {
  EngineKind kind;
  std::string_view name;
};
// Not raw: without concurrency control there is nothing to check.
constexpr EngineOfPlan kEngines[] = {
    {EngineKind::kSwarm, "swarm"}, {EngineKind::kAbd, "abd"}, {EngineKind::kSnapshot, "snapshot"}};

// Every number of a plan, with its name in the text.
template <typename Visit>
void VisitSettings(Plan& plan, Visit visit) {
  visit("seed", plan.seed);
  visit("agents", plan.agents);
  visit("nodes", plan.shape.nodes);
  visit("spares", plan.spares);
  visit("free_blocks", plan.free_blocks);
  visit("fills_added", plan.fills_added);
  visit("account_rest_us", plan.data_path.account_rest_us);
  visit("accounts_always", plan.data_path.accounts_always);
  visit("compaction_rest_us", plan.data_path.compaction_rest_us);
  visit("compacts_always", plan.data_path.compacts_always);
  visit("replicas", plan.shape.replicas);
  visit("node_bytes", plan.shape.node_bytes);
  visit("latency_min_ns", plan.fabric.latency_min_ns);
  visit("latency_max_ns", plan.fabric.latency_max_ns);
  visit("tail_permille", plan.fabric.tail_permille);
  visit("tail_factor", plan.fabric.tail_factor);
  visit("step_ns", plan.fabric.step_ns);
  visit("failure_ns", plan.fabric.failure_ns);
  visit("open_ns_max", plan.fabric.open_ns_max);
  visit("has_max", plan.fabric.traits.has_max);
  visit("reads_first", plan.fabric.traits.reads_first);
  visit("atomics_tear", plan.fabric.atomics_tear);
  visit("writes_backwards", plan.fabric.writes_backwards);
  visit("wait_polls_max", plan.data_path.wait_polls_max);
  visit("wait_timer_us", plan.data_path.wait_timer_us);
  visit("wait_timer_max_us", plan.data_path.wait_timer_max_us);
  visit("op_timeout_ms", plan.data_path.op_timeout_ms);
  visit("epoch_tick_us", plan.data_path.epoch_tick_us);
  visit("expiry_rest_us", plan.data_path.expiry_rest_us);
  visit("retired_objects_max", plan.data_path.retired_objects_max);
  visit("retired_ring_after", plan.data_path.retired_ring_after);
  visit("memory_wait_ms", plan.data_path.memory_wait_ms);
  visit("location_cache_bytes", plan.data_path.location_cache_bytes);
  visit("register_cache_entries", plan.data_path.register_cache_entries);
  visit("resting_registers_max", plan.data_path.resting_registers_max);
  visit("hot_after", plan.data_path.hot_after);
  visit("split_groups_at_once", plan.data_path.split_groups_at_once);
  visit("register_lanes", plan.data_path.register_lanes);
  visit("register_time_end", plan.data_path.register_time_end);
  visit("record_value_bytes_max", plan.data_path.record_value_bytes_max);
  visit("extent_bytes", plan.data_path.extent_bytes);
  visit("tree_leaf_bytes", plan.data_path.tree.leaf_bytes);
  visit("tree_inner_bytes", plan.data_path.tree.inner_bytes);
  visit("tree_root_bytes", plan.data_path.tree.root_bytes);
  visit("tree_packed_bytes", plan.data_path.tree.packed_bytes);
  visit("tree_loaded_bytes", plan.data_path.tree.loaded_bytes);
  visit("tree_pinned_bytes", plan.data_path.tree.pinned_bytes);
  visit("page_cache_bytes", plan.data_path.page_cache_bytes);
  visit("turn_bytes", plan.data_path.turn_bytes);
  visit("large_value_bytes", plan.large_value_bytes);
  visit("tick_spread", plan.tick_spread);
  visit("inline_agents", plan.inline_agents);
  visit("think_ns_max", plan.think_ns_max);
  visit("databases", plan.databases);
  visit("transactions_every", plan.transactions_every);
  visit("sent_ahead", plan.sent_ahead);
  visit("clock_error_ns", plan.clock_error_ns);
  visit("last_flush", plan.last_flush);
  visit("last_loss", plan.last_loss);
  visit("nobody_ends", plan.nobody_ends);
  visit("last_growth", plan.last_growth);
  visit("last_death", plan.last_death);
  visit("control_latency_min_ns", plan.control.latency_min_ns);
  visit("control_latency_max_ns", plan.control.latency_max_ns);
  visit("notice_ns_max", plan.control.notice_ns_max);
  visit("write_ns_max", plan.control.write_ns_max);
  visit("fence_fails_percent", plan.control.fence_fails_percent);
  visit("request_ms", plan.control.request_ms);
  visit("sees_ends", plan.control.sees_ends);
  visit("lease_ms", plan.control.lease_ms);
  visit("grace_ms", plan.control.grace_ms);
  visit("hold_timeout_ms", plan.control.hold_timeout_ms);
  visit("copy_hold_timeout_ms", plan.control.copy_hold_timeout_ms);
  visit("flush_wait_ms", plan.control.flush_wait_ms);
  visit("ack_timeout_ms", plan.control.ack_timeout_ms);
  visit("fence_retry_ms", plan.control.fence_retry_ms);
  visit("time_lead_ms", plan.control.time_lead_ms);
  visit("replace_after_ms", plan.control.replace_after_ms);
  visit("reach_settle_ms", plan.control.reach_settle_ms);
  visit("reach_back_ms", plan.control.reach_back_ms);
  visit("reach_look_us", plan.control.reach_look_us);
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseNumber(std::string_view text, bool* flag) {
  *flag = text == "1";
  return *flag || text == "0";
}

bool ParseSetting(std::string_view name, std::string_view value, Plan* plan) {
  if (name == "scenario") {
    plan->scenario = value;
    return true;
  }
  if (name == "engine" && value == "mixed") {
    plan->engine = EngineKind::kSwarm;
    plan->mixes_engines = true;
    return true;
  }
  if (name == "engine") {
    for (const EngineOfPlan& known : kEngines) {
      if (known.name != value) continue;
      plan->engine = known.kind;
      return true;
    }
    return false;
  }
  bool known = false;
  VisitSettings(*plan, [&](std::string_view setting, auto& number) {
    if (setting == name) known = ParseNumber(value, &number);
  });
  return known;
}

// "fault KIND at_ns duration_ns agent node amount", and "shrink" if it is amid one.
bool ParseFault(const std::vector<std::string>& words, Fault* fault) {
  fault->amid_shrink = words.size() == 8 && words.back() == "shrink";
  if (words.size() != (fault->amid_shrink ? 8 : 7)) return false;
  for (const FaultName& known : kFaultNames) {
    if (known.name != words[1]) continue;
    fault->kind = known.kind;
    return ParseNumber(words[2], &fault->at_ns) && ParseNumber(words[3], &fault->duration_ns) &&
           ParseNumber(words[4], &fault->agent) && ParseNumber(words[5], &fault->node) &&
           ParseNumber(words[6], &fault->amount);
  }
  return false;
}

std::string_view NameOf(FaultKind kind) {
  for (const FaultName& known : kFaultNames) {
    if (known.kind == kind) return known.name;
  }
  return "?";
}

}  // namespace

std::string PlanToText(const Plan& plan) {
  std::ostringstream text;
  text << "scenario " << plan.scenario << "\nengine " << EngineName(plan) << "\n";
  Plan copy = plan;
  VisitSettings(copy,
                [&](std::string_view name, auto number) { text << name << " " << number << "\n"; });
  for (const Fault& fault : plan.faults) {
    text << "fault " << NameOf(fault.kind) << " " << fault.at_ns << " " << fault.duration_ns << " "
         << fault.agent << " " << fault.node << " " << fault.amount
         << (fault.amid_shrink ? " shrink\n" : "\n");
  }
  text << "program\n" << ProgramToText(plan.program);
  return text.str();
}

bool PlanFromText(std::string_view text, Plan* plan, std::string* error) {
  *plan = Plan();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    if (line == "program") return ProgramFromText(text, &plan->program, error);
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    Fault fault;
    if (words[0] == "fault" && ParseFault(words, &fault)) {
      plan->faults.push_back(fault);
    } else if (words.size() != 2 || !ParseSetting(words[0], words[1], plan)) {
      *error = "not a setting or a fault: " + line;
      return false;
    }
  }
  *error = "there is no line \"program\"";
  return false;
}

std::string_view EngineName(EngineKind kind) {
  for (const EngineOfPlan& known : kEngines) {
    if (known.kind == kind) return known.name;
  }
  CHECK(false);
}

std::string DescribeFault(const Fault& fault) {
  std::string text(NameOf(fault.kind));
  switch (fault.kind) {
    case FaultKind::kCrashAgent:
    case FaultKind::kPauseAgent:
    case FaultKind::kFreezeAgent:
    case FaultKind::kBreakControl:
    case FaultKind::kLeaveAgent:
      text += " " + std::to_string(fault.agent);
      break;
    case FaultKind::kPauseNode:
    case FaultKind::kLoseNode:
    case FaultKind::kRestartNode:
    case FaultKind::kBreakNodeControl:
    case FaultKind::kDrainNode:
    case FaultKind::kFillNode:
      text += " " + std::to_string(fault.node);
      break;
    case FaultKind::kSlowNode:
      text += " " + std::to_string(fault.node) + ", " + std::to_string(fault.amount) + " times";
      break;
    case FaultKind::kSlowLink:
      text += " of agent " + std::to_string(fault.agent) + " to node " +
              std::to_string(fault.node) + ", " + std::to_string(fault.amount) + " times";
      break;
    case FaultKind::kBreakChannel:
    case FaultKind::kCutLink:
      text += " of agent " + std::to_string(fault.agent) + " to node " + std::to_string(fault.node);
      break;
    case FaultKind::kStepClock:
      text += " of agent " + std::to_string(fault.agent) + " by " + std::to_string(fault.amount) +
              " ns";
      break;
    case FaultKind::kDriftClock:
      text += " of agent " + std::to_string(fault.agent) + " by " + std::to_string(fault.amount) +
              " ppm";
      break;
    case FaultKind::kImpostor:
      text += " " + std::to_string(fault.amount);
      break;
    case FaultKind::kMasterDown:
    case FaultKind::kPauseMaster:
    case FaultKind::kStoreFails:
      break;
  }
  if (fault.duration_ns > 0) text += ", for " + std::to_string(fault.duration_ns) + " ns";
  return text;
}

}  // namespace onetrip
