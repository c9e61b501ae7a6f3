#include "master/holds.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/repairs.h"
#include "master/texts.h"
#include "master/view_changes.h"
#include "master/work/work_kind.h"
#include "master/work/work_table.h"

namespace onetrip::master {
namespace {

void StartHold(ClusterState& state, Effects& effects, uint64_t now_us, Hold hold) {
  hold.epoch = state.membership.view().epoch.value + 1;
  hold.since_us = now_us;
  hold.end_us = now_us + HoldTimeoutMs(state, KindOf(hold.work)) * 1000;
  state.hold = std::move(hold);
  for (auto& [id, member] : state.members) {
    if (member.kind == MemberKind::kAgent && member.stream != 0 && member.sent != 0) {
      Send(effects, member.stream, HoldMessage(state));
    }
  }
}

void AskForWork(ClusterState& state, Effects& effects, const WorkKind& kind, uint64_t now_us) {
  Member* const agent = Repairer(state);
  CHECK(agent != nullptr);
  MembershipState proposed = state.membership;
  proposed.NextEpoch();
  RepairOrder order;
  order.kind = *kind.repair_kind();
  kind.FillOrder(state, *state.hold, &proposed, &order);
  order.view = std::make_shared<const View>(proposed.view());
  SendRepair(state, effects, *agent, now_us, std::move(order));
}

}  // namespace

uint64_t HoldTimeoutMs(const ClusterState& state, const WorkKind& kind) {
  if (!kind.is_of_region()) return state.options.hold_timeout_ms;
  uint64_t timeout_ms = state.options.copy_hold_timeout_ms;
  for (uint32_t i = 0; i < state.copies_given_up && timeout_ms < state.options.hold_timeout_ms;
       ++i) {
    timeout_ms *= 2;
  }
  return std::min(timeout_ms, state.options.hold_timeout_ms);
}

void PauseCopies(ClusterState& state, const Hold& hold, uint64_t now_us) {
  state.copy_not_before_us =
      now_us + std::max(state.options.copy_pause_ms * 1000,
                        state.options.copy_pause_factor * (now_us - hold.since_us));
}

void EndHold(ClusterState& state, Effects& effects, uint64_t now_us, const std::string& why) {
  if (!why.empty()) Log(effects, LogLevel::kWarning, "a repair is put off: " + why);
  // The others are held until there is a view.
  state.hold.reset();
  EnqueueOwn(state, Change());
  Commit(state, effects, now_us);
}

std::string WhoIsAway(const ClusterState& state, const std::vector<NodeId>& leave) {
  if (!AddressesKnown(state)) return "not all memory nodes have served yet";
  for (const auto& [id, member] : state.members) {
    if (!Counts(member)) continue;
    if (member.standing == Standing::kAway && !Planted(Bug::kHoldForgetsAway)) {
      return AgentText(member) + " has not come back yet";
    }
    if (member.standing == Standing::kExpelled && !IsHarmless(state, member, leave) &&
        !Planted(Bug::kHoldForgetsExpelled)) {
      return AgentText(member) + " is expelled and not fenced on every memory node";
    }
  }
  return "";
}

std::string WhoDoesNotHold(const ClusterState& state, const Hold& hold) {
  bool some_hold = false;
  std::string who;
  for (const auto& [id, member] : state.members) {
    if (!Counts(member)) continue;
    if (member.standing == Standing::kAway && Planted(Bug::kHoldForgetsAway)) continue;
    if (member.standing == Standing::kExpelled && Planted(Bug::kHoldForgetsExpelled)) continue;
    const bool holds = member.held >= hold.epoch ||
                       (hold.work == Work::kNodeOut && IsHarmless(state, member, hold.leave));
    some_hold |= holds;
    if (!holds && who.empty()) who = AgentText(member);
  }
  if (some_hold && Planted(Bug::kCommitsBeforeAllHold)) return "";
  return who;
}

HoldForViewMessage HoldMessage(const ClusterState& state) {
  return {Epoch{state.hold->epoch}, KindOf(state.hold->work).hold_kind(), state.hold->leave};
}

void TryStartHold(ClusterState& state, Effects& effects, uint64_t now_us) {
  std::optional<Hold> next = FirstDue(state, now_us);
  // Quiesced agents answer no client: nothing that could take long may happen before the commit.
  if (next.has_value() && WhoIsAway(state, next->leave).empty()) {
    StartHold(state, effects, now_us, std::move(*next));
  }
}

void SettleHold(ClusterState& state, Effects& effects, uint64_t now_us) {
  const WorkKind& kind = KindOf(state.hold->work);
  if (state.hold->repaired) return CommitHeld(state, effects, now_us);
  if (state.hold->failed) {
    kind.OnFailed(state, now_us);
    return EndHold(state, effects, now_us, "");
  }
  // The repair that was asked for is waited for, whatever has changed meanwhile: it may be half
  // done.
  if (state.repair.has_value() && IsUnderHold(state.repair->kind)) return;
  if (!kind.IsStillDue(state, *state.hold, now_us)) return EndHold(state, effects, now_us, "");
  const std::string missing = WhoDoesNotHold(state, *state.hold);
  if (!missing.empty()) {
    if (now_us >= state.hold->end_us) kind.OnTimeout(state, effects, missing, now_us);
    return;
  }
  // No agent is amid a slot write: from here on the lost replicas have no say.
  if (!kind.repair_kind().has_value()) return CommitHeld(state, effects, now_us);
  // One repair at a time.
  if (!state.repair.has_value()) AskForWork(state, effects, kind, now_us);
}

void CommitHeld(ClusterState& state, Effects& effects, uint64_t now_us) {
  const Hold hold = *std::exchange(state.hold, std::nullopt);
  const WorkKind& kind = KindOf(hold.work);
  if (kind.is_of_region()) state.copies_given_up = 0;
  kind.Commit(state, effects, hold, now_us);
  Commit(state, effects, now_us, hold.work);
}

void GiveUpChangesOfKeyspaces(ClusterState& state, Effects& effects, const std::string& what,
                              const std::string& missing, uint64_t now_us) {
  Log(effects, LogLevel::kWarning,
      what + " was given up: " + missing + " did not stop its operations within " +
          std::to_string(state.options.hold_timeout_ms) + " ms");
  FailChangesOfKeyspaces(state, effects, now_us, missing + " did not stop its operations in time");
  EndHold(state, effects, now_us, "");
}

}  // namespace onetrip::master
