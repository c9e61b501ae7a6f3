#include "master/repairs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/holds.h"
#include "master/lost_nodes.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/view_changes.h"
#include "master/work/copy.h"
#include "master/work/node_out.h"

namespace onetrip::master {
namespace {

constexpr uint32_t kWalksPerEpochBits = 16;

constexpr uint64_t kHealingFactor = 60;

// How often one agent is asked to go on with a walk before another is.
constexpr uint32_t kWalkTriesMax = 100;

bool IsWalk(RepairKind kind) {
  return kind == RepairKind::kScrubRegisters || kind == RepairKind::kEndRegisters;
}

const char* Text(RepairKind kind) {
  switch (kind) {
    case RepairKind::kResolveSlots:
      return "the repair of the index";
    case RepairKind::kScrubRegisters:
      return "the repair of registers";
    case RepairKind::kCopyRegion:
      return "the copy of a region";
    case RepairKind::kTakeOverBlocks:
      return "taking over the memory of workers that are gone";
    case RepairKind::kEndRegisters:
      return "the change of registers into records";
    case RepairKind::kMoveRegion:
      return "the move of a region";
    case RepairKind::kFormatRegions:
      return "the making of regions";
    case RepairKind::kMoveSubtables:
      return "the move of the index";
  }
  return "";
}

// Those count that are expelled and not fenced yet.
LivingWorkers Living(const ClusterState& state) {
  LivingWorkers living;
  for (const auto& [index, seat] : state.seats) living.ids.push_back(seat.worker);
  std::sort(living.ids.begin(), living.ids.end());
  living.next = WorkerId{state.membership.next_worker()};
  return living;
}

}  // namespace

void ScrubAnew(ClusterState& state) {
  state.record.scrub_due = true;
  BeginWalkAnew(state);
  if (state.repair.has_value()) state.repair->overtaken = true;
}

void SendRepair(ClusterState& state, Effects& effects, Member& agent, uint64_t now_us,
                RepairOrder order) {
  CHECK(!state.repair.has_value());
  Repair repair;
  repair.id = state.next_repair++;
  repair.kind = order.kind;
  order.damaged = order.kind == RepairKind::kResolveSlots && state.record.heal_due;
  if (state.walk == 0) BeginWalkAnew(state);
  order.walk = state.walk;
  repair.member = agent.id;
  repair.since_us = now_us;
  repair.message = {repair.id, std::move(order)};
  Send(effects, agent.stream, repair.message);
  state.repair = std::move(repair);
  if (!IsUnderHold(state.repair->kind)) return;
  state.record.repairer = agent.id;
  SaveCluster(state, effects);
}

void OnRepaired(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                const RepairedMessage& message) {
  if (!state.repair.has_value() || message.id != state.repair->id ||
      member.id != state.repair->member)
    return;
  const Repair repair = *std::exchange(state.repair, std::nullopt);
  if (!message.done) {
    std::string text = std::string(Text(repair.kind)) + " by agent " + std::to_string(member.id) +
                       " is not done: " + message.reason + "; it is tried again";
    if (text != state.told_not_done) Log(effects, LogLevel::kWarning, text);
    state.told_not_done = std::move(text);
    state.repair_not_before_us = now_us + state.options.repair_retry_ms * 1000;
    // A quiesce has cut a walk short: the same agent goes on where it was, or flushes that come
    // again and again would let no agent come to the end.
    const bool was_held =
        state.hold.has_value() || repair.message.order.view->epoch != state.membership.view().epoch;
    state.walk_tries = IsWalk(repair.kind) && was_held ? state.walk_tries + 1 : 0;
    const bool same_again = state.walk_tries % kWalkTriesMax != 0;
    state.failed_repairer = same_again ? member.id - 1 : member.id;
  } else {
    state.told_not_done.clear();
    state.failed_repairer = 0;
    state.walk_tries = 0;
  }
  const bool counts = message.done && !repair.overtaken;
  if (repair.kind == RepairKind::kScrubRegisters) {
    if (counts) state.record.scrub_due = false;
  } else if (repair.kind == RepairKind::kTakeOverBlocks) {
    if (counts) state.take_over_due = false;
    state.take_over_cut = !message.done;
  } else if (repair.kind == RepairKind::kEndRegisters) {
    state.registers_ended = counts;
    state.leave_again_us = now_us + state.options.leave_again_ms * 1000;
    // The next agent has blocks of its own.
    if (counts && state.record.leaving != 0) state.failed_repairer = member.id;
  } else {
    state.record.repairer = 0;
    CHECK(state.hold.has_value());
    (message.done ? state.hold->repaired : state.hold->failed) = true;
  }
  SaveCluster(state, effects);
}

void CheckRepairer(ClusterState& state, Effects& effects, uint64_t now_us) {
  if (!state.repair.has_value()) return;
  const auto found = state.members.find(state.repair->member);
  const uint64_t since_us =
      state.hold.has_value() ? std::max(state.repair->since_us, state.hold->since_us) : now_us;
  // Every key is read then, on every replica.
  const uint64_t timeout_ms =
      state.options.repair_timeout_ms * (state.repair->message.order.damaged ? kHealingFactor : 1);
  if (found != state.members.end() && found->second.standing == Standing::kUp &&
      now_us - since_us >= timeout_ms * 1000) {
    Expel(state, effects, found->second,
          "it did not end " + std::string(Text(state.repair->kind)) + " within " +
              std::to_string(timeout_ms) + " ms");
  }
  const auto still = state.members.find(state.repair->member);
  if (!IsUnderHold(state.repair->kind)) {
    // It ends with the agent's last worker; beside another it does no harm.
    const bool over = still == state.members.end() || still->second.seats.empty() ||
                      IsHarmless(state, still->second, Leaving(state, now_us));
    if (over) state.repair.reset();
    return;
  }
  std::vector<NodeId> leave;
  if (still != state.members.end() && !IsHarmless(state, still->second, {})) {
    // It may be at its repair on a node that is lost with it: without that node no agent need wait.
    leave = Leaving(state, now_us);
    if (leave.empty() || !IsHarmless(state, still->second, leave)) return;
    Hold hold = *state.hold;
    hold.work = Work::kNodeOut;
    hold.leave = leave;
    if (!WhoDoesNotHold(state, hold).empty()) return;
    state.hold = std::move(hold);
  }
  // Nothing of it comes any more: another agent does it again.
  state.repair.reset();
  state.record.repairer = 0;
  SaveCluster(state, effects);
  if (!leave.empty()) return CommitHeld(state, effects, now_us);
  state.hold->end_us = now_us + state.options.hold_timeout_ms * 1000;
}

void StartBackgroundRepair(ClusterState& state, Effects& effects, uint64_t now_us) {
  // Slots first: operations wait for those.
  if (!(state.record.scrub_due || state.take_over_due || RegistersAreToEnd(state)) ||
      state.record.resolve_due || state.repair.has_value() || state.hold.has_value() ||
      now_us < state.repair_not_before_us || !AllServe(state) ||
      !InForceEverywhere(state, state.placement_epoch)) {
    return;
  }
  Member* const agent = Repairer(state);
  if (agent == nullptr) return;
  if (state.record.scrub_due) {
    return SendRepair(state, effects, *agent, now_us,
                      {RepairKind::kScrubRegisters, state.view, 0, {}});
  }
  // In turns: records may need the memory that is taken over, and that may have to wait for long.
  const bool ends_registers =
      RegistersAreToEnd(state) &&
      !(state.take_over_due && std::exchange(state.ended_registers_last, false));
  if (ends_registers) {
    state.ended_registers_last = true;
    return SendRepair(state, effects, *agent, now_us, {RepairKind::kEndRegisters, state.view});
  }
  // Copies wait for its end: where holds keep it from one, regions would lack replicas for long.
  if (state.take_over_cut && state.copies_given_up == 0 && DueCopy(state).has_value()) return;
  SendRepair(state, effects, *agent, now_us,
             {RepairKind::kTakeOverBlocks, state.view, 0, Living(state)});
}

void OrphanBlocks(ClusterState& state) {
  state.take_over_due = true;
  if (state.repair.has_value() && state.repair->kind == RepairKind::kTakeOverBlocks) {
    state.repair->overtaken = true;
  }
}

// Agents that hold for a repair of the last life are not released while it may still be at it.
void CheckFormerRepairer(ClusterState& state, Effects& effects, uint64_t now_us) {
  if (state.former_repairer == 0) return;
  const auto found = state.members.find(state.former_repairer);
  const bool over = found == state.members.end() || IsHarmless(state, found->second, {}) ||
                    (found->second.sent != 0 && found->second.in_force >= found->second.sent);
  // All hold since the last life: nodes that were lost with it may be put out at once.
  const std::vector<NodeId> leave = over ? std::vector<NodeId>() : Leaving(state, now_us);
  if (!over && (leave.empty() || !IsHarmless(state, found->second, leave))) return;
  state.former_repairer = 0;
  state.record.repairer = 0;
  SaveCluster(state, effects);
  if (!leave.empty()) {
    PutOut(state, effects, leave, now_us);
    return Commit(state, effects, now_us);
  }
  if (!AddressesKnown(state)) return;
  for (auto& [id, member] : state.members) {
    if (member.kind == MemberKind::kAgent && member.stream != 0 && member.sent == 0) {
      SendView(state, effects, member, now_us);
    }
  }
}

void BeginWalkAnew(ClusterState& state) {
  state.walk =
      std::max(state.walk + 1, (state.membership.view().epoch.value + 1) << kWalksPerEpochBits);
}

}  // namespace onetrip::master
