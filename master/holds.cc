#include "master/holds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/lost_nodes.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/shrinking.h"
#include "master/texts.h"
#include "master/view_changes.h"
#include "master/work/copy.h"
#include "master/work/grow.h"
#include "master/work/leave.h"
#include "master/work/move.h"
#include "master/work/node_out.h"
#include "master/work/swap.h"

namespace onetrip::master {
namespace {

std::optional<Hold> NextRepairHold(const ClusterState& state, uint64_t now_us) {
  if (now_us < state.repair_not_before_us) return std::nullopt;
  Hold hold;
  hold.leave = DueOut(state, now_us);
  if (!hold.leave.empty()) {
    hold.work = Work::kNodeOut;
    return hold;
  }
  if (!Leaving(state, now_us).empty()) return std::nullopt;
  if (!state.record.resolve_due || !SomebodyWorks(state) || !AllServe(state)) return std::nullopt;
  hold.work = Work::kResolve;
  return hold;
}

bool StillDue(const ClusterState& state, const Hold& hold, uint64_t now_us) {
  if (hold.work == Work::kNodeOut) return DueOut(state, now_us) == hold.leave;
  // Whoever ended amid a write may have left words whose bytes the target does not have: that is
  // scrubbed first.
  const bool ended_in_between =
      std::any_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
        const Member& member = entry.second;
        const bool ended =
            member.standing == Standing::kExpelled || member.standing == Standing::kFenced;
        return ended && !member.seats.empty() && member.held < hold.epoch;
      });
  if (hold.work == Work::kCopy && ended_in_between) return false;
  const bool leaves =
      hold.work == Work::kLeave || hold.work == Work::kMoveIndex || hold.work == Work::kCut;
  if (leaves && (!MovesAreWanted(state) || !AwaitsNoCopy(state))) return false;
  if (hold.work == Work::kCut && !LeavingAreEmpty(state)) return false;
  return AllServe(state) && SomebodyWorks(state);
}

uint64_t HoldTimeoutMs(const ClusterState& state, Work work) {
  if (!IsOfRegion(work)) return state.options.hold_timeout_ms;
  uint64_t timeout_ms = state.options.copy_hold_timeout_ms;
  for (uint32_t i = 0; i < state.copies_given_up && timeout_ms < state.options.hold_timeout_ms;
       ++i) {
    timeout_ms *= 2;
  }
  return std::min(timeout_ms, state.options.hold_timeout_ms);
}

void SettleRepairHold(ClusterState& state, Effects& effects, uint64_t now_us) {
  if (state.hold->repaired) return CommitRepaired(state, effects, now_us);
  if (state.hold->failed) {
    // There is no memory for it, perhaps; all would stand still again and again.
    if (state.hold->work == Work::kMoveIndex) {
      state.move_not_before_us = now_us + state.options.leave_again_ms * 1000;
    }
    return EndHold(state, effects, now_us, "");
  }
  // What was asked for is waited for, whatever has changed meanwhile: it may be half done.
  if (state.repair.has_value() && IsUnderHold(state.repair->kind)) return;
  if (!StillDue(state, *state.hold, now_us)) return EndHold(state, effects, now_us, "");
  const std::string missing = WhoDoesNotHold(state, *state.hold);
  if (!missing.empty()) {
    if (now_us < state.hold->end_us) return;
    // What waits for a copy need not be waited for by what is more urgent.
    const bool of_region = IsOfRegion(state.hold->work);
    (of_region ? state.copy_not_before_us : state.repair_not_before_us) =
        now_us + state.options.repair_retry_ms * 1000;
    const uint64_t timeout_ms = HoldTimeoutMs(state, state.hold->work);
    if (of_region) ++state.copies_given_up;
    return EndHold(
        state, effects, now_us,
        missing + " did not stop its operations within " + std::to_string(timeout_ms) + " ms");
  }
  // Nobody is amid a slot write: from here on the lost replicas have no say.
  if (state.hold->work == Work::kNodeOut || state.hold->work == Work::kRecordsOnly ||
      state.hold->work == Work::kLeave || state.hold->work == Work::kCut ||
      (state.hold->work == Work::kMove && Planted(Bug::kMoveUncopied))) {
    return CommitRepaired(state, effects, now_us);
  }
  // One at a time.
  if (state.repair.has_value()) return;
  Member* const agent = Repairer(state);
  CHECK(agent != nullptr);
  MembershipState proposed = state.membership;
  proposed.NextEpoch();
  RepairOrder order;
  if (state.hold->work == Work::kCopy) {
    order.kind = RepairKind::kCopyRegion;
    order.region = state.hold->region;
    proposed.CopyNext(state.hold->region, state.hold->target);
  } else if (state.hold->work == Work::kMove) {
    const RegionMove& move = state.hold->move;
    order.kind = RepairKind::kMoveRegion;
    order.region = move.region;
    order.source = move.from;
    order.target = {move.to, move.base};
  } else if (state.hold->work == Work::kGrow) {
    order.kind = RepairKind::kFormatRegions;
    order.region = static_cast<uint32_t>(proposed.view().regions.size());
    proposed.AddRegions(state.hold->grown);
  } else if (state.hold->work == Work::kMoveIndex) {
    order.kind = RepairKind::kMoveSubtables;
    proposed.SetDirectory(OtherDirectory(state.record.directory));
  }
  order.view = std::make_shared<const View>(proposed.view());
  SendRepair(state, effects, *agent, now_us, std::move(order));
}

void StartHold(ClusterState& state, Effects& effects, uint64_t now_us, Hold hold) {
  hold.epoch = state.membership.view().epoch.value + 1;
  hold.since_us = now_us;
  hold.end_us = now_us + HoldTimeoutMs(state, hold.work) * 1000;
  state.hold = std::move(hold);
  for (auto& [id, member] : state.members) {
    if (member.kind == MemberKind::kAgent && member.stream != 0 && member.sent != 0) {
      Send(effects, member.stream, HoldMessage(state));
    }
  }
}

}  // namespace

void PauseCopies(ClusterState& state, const Hold& hold, uint64_t now_us) {
  state.copy_not_before_us =
      now_us + std::max(state.options.copy_pause_ms * 1000,
                        state.options.copy_pause_factor * (now_us - hold.since_us));
}

void CommitRepaired(ClusterState& state, Effects& effects, uint64_t now_us) {
  const Hold hold = *std::exchange(state.hold, std::nullopt);
  if (IsOfRegion(hold.work)) state.copies_given_up = 0;
  if (hold.work == Work::kCopy) {
    state.membership.CopyDone(hold.region, hold.target);
    SaveRegions(state, effects, {hold.region});
    PauseCopies(state, hold, now_us);
    if (state.missing_regions == 0) {
      Log(effects, LogLevel::kInfo, "every region has all its replicas again");
    }
  } else if (hold.work == Work::kResolve) {
    state.record.resolve_due = false;
    state.record.heal_due = false;
    state.registers_ended = false;  // one may be back that only a backup named
    BeginWalkAnew(state);
    Log(effects, LogLevel::kInfo,
        "slots are resolved; agents held theirs for " +
            std::to_string((now_us - hold.since_us + 500) / 1000) + " ms");
  } else if (hold.work == Work::kMove || hold.work == Work::kRecordsOnly) {
    CommitMove(state, effects, hold, now_us);
  } else if (hold.work == Work::kGrow) {
    CommitGrowth(state, effects, hold, now_us);
  } else if (hold.work == Work::kLeave || hold.work == Work::kMoveIndex ||
             hold.work == Work::kCut) {
    CommitLeave(state, effects, hold, now_us);
  } else {
    PutOut(state, effects, hold.leave, now_us);
  }
  Commit(state, effects, now_us);
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

void TryStartHold(ClusterState& state, Effects& effects, uint64_t now_us) {
  std::optional<Hold> next = NextRepairHold(state, now_us);
  if (!next.has_value() && MaySwap(state, now_us)) next = Hold{.work = Work::kSwap};
  if (!next.has_value() && HasQueued(state, ChangeKind::kFlush)) next = Hold();
  if (!next.has_value()) next = NextCopy(state, now_us);
  if (!next.has_value()) next = NextMove(state, now_us);
  // Held agents answer nobody: nothing that could take long may happen before the commit.
  if (next.has_value() && WhoIsAway(state, next->leave).empty())
    StartHold(state, effects, now_us, std::move(*next));
}

HoldForViewMessage HoldMessage(const ClusterState& state) {
  HoldForViewMessage message{Epoch{state.hold->epoch}, HoldKind::kStart, state.hold->leave};
  if (state.hold->work == Work::kNodeOut || state.hold->work == Work::kResolve) {
    message.kind = HoldKind::kSlots;
  } else if ((state.hold->work == Work::kMove && Planted(Bug::kMoveUnderWrites)) ||
             (state.hold->work == Work::kGrow && Planted(Bug::kGrownUnderOperations)) ||
             (state.hold->work == Work::kSwap && Planted(Bug::kSwapUnderOperations))) {
    message.kind = HoldKind::kStart;
  } else if (state.hold->work != Work::kFlush) {
    message.kind = HoldKind::kAll;
  }
  return message;
}

void SettleHold(ClusterState& state, Effects& effects, uint64_t now_us) {
  const Work work = state.hold->work;
  if (work != Work::kFlush && work != Work::kSwap) return SettleRepairHold(state, effects, now_us);
  // Another hold comes first now.
  if (work == Work::kSwap && !MaySwap(state, now_us)) return EndHold(state, effects, now_us, "");
  const std::string missing = WhoDoesNotHold(state, *state.hold);
  if (missing.empty()) {
    state.hold.reset();
    Commit(state, effects, now_us, work);
    return;
  }
  if (now_us < state.hold->end_us) return;
  Log(effects, LogLevel::kWarning,
      std::string(work == Work::kSwap ? "a swap of databases" : "a flush") +
          " was given up: " + missing + " did not stop its operations within " +
          std::to_string(state.options.hold_timeout_ms) + " ms");
  FailChangesOfKeyspaces(state, effects, now_us, missing + " did not stop its operations in time");
  EndHold(state, effects, now_us, "");
}

}  // namespace onetrip::master
