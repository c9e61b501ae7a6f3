#include "master/work/leave.h"

#include <string>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/region_layout.h"
#include "master/emit.h"
#include "master/holds.h"
#include "master/placement.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/shrinking.h"
#include "master/texts.h"

namespace onetrip::master {
namespace {

class LeavingStep : public WorkKind {
 public:
  [[nodiscard]] bool IsStillDue(const ClusterState& state, const Hold& hold,
                                uint64_t now_us) const override {
    return MovesAreWanted(state) && AwaitsNoCopy(state, now_us) &&
           WorkKind::IsStillDue(state, hold, now_us);
  }
};

class Leave final : public LeavingStep {
 public:
  void Commit(ClusterState& state, Effects& /*effects*/, const Hold& hold,
              uint64_t /*now_us*/) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    state.record.leaving = hold.leaving;
    state.record.index_left = false;
    state.record.records_only = true;
    state.registers_ended = false;
    BeginWalkAnew(state);
    state.membership.SetLeaving(state.record.leaving);
    state.membership.SetRecordsOnly(true);
  }
};

class MoveIndex final : public LeavingStep {
 public:
  [[nodiscard]] std::optional<RepairKind> repair_kind() const override {
    return RepairKind::kMoveSubtables;
  }
  void FillOrder(const ClusterState& state, const Hold& /*hold*/, MembershipState* proposed,
                 RepairOrder* /*order*/) const override {
    proposed->SetDirectory(OtherDirectory(state.record.directory));
  }
  void Commit(ClusterState& state, Effects& /*effects*/, const Hold& hold,
              uint64_t now_us) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    PauseCopies(state, hold, now_us);
    state.record.directory = OtherDirectory(state.record.directory);
    state.record.index_left = true;
    state.membership.SetDirectory(state.record.directory);
  }
  // There is no memory for it, perhaps; all would stand still again and again.
  void OnFailed(ClusterState& state, uint64_t now_us) const override {
    state.move_not_before_us = now_us + state.options.leave_again_ms * 1000;
  }
};

class Cut final : public LeavingStep {
 public:
  [[nodiscard]] bool IsStillDue(const ClusterState& state, const Hold& hold,
                                uint64_t now_us) const override {
    return LeavingAreEmpty(state) && LeavingStep::IsStillDue(state, hold, now_us);
  }
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    PauseCopies(state, hold, now_us);
    const size_t before = state.membership.view().regions.size();
    state.membership.CutRegions();
    const auto end = static_cast<uint32_t>(state.membership.view().regions.size());
    state.record.leaving = 0;
    state.record.index_left = false;
    effects.change.regions_end = end;
    effects.change.regions.erase(effects.change.regions.lower_bound(end),
                                 effects.change.regions.end());
    CountMissing(state);
    Log(effects, LogLevel::kInfo,
        "the capacity has shrunk by " + std::to_string(before - end) + " regions from " +
            MiB(before * kRegionBytes) + " to " + MiB(end * kRegionBytes));
  }
};

}  // namespace

std::optional<Hold> NextLeave(const ClusterState& state, uint64_t now_us) {
  if (!state.record.may_shrink && state.record.leaving == 0) return std::nullopt;
  Hold hold;
  const size_t wanted = RegionsToGiveUp(state, MoveParts(state), now_us);
  const bool more = wanted > state.record.leaving;
  if (wanted != state.record.leaving && !(more && !WhyNotWithout(state, wanted).empty())) {
    hold.work = Work::kLeave;
    hold.leaving = static_cast<uint16_t>(wanted);
    return hold;
  }
  if (state.record.leaving == 0) return std::nullopt;
  if (!state.record.index_left) {
    hold.work = Work::kMoveIndex;
    return hold;
  }
  if (RegistersAreToEnd(state) || !LeavingAreEmpty(state)) return std::nullopt;
  hold.work = Work::kCut;
  return hold;
}

const WorkKind& LeaveWork() {
  static const Leave kind;
  return kind;
}

const WorkKind& MoveIndexWork() {
  static const MoveIndex kind;
  return kind;
}

const WorkKind& CutWork() {
  static const Cut kind;
  return kind;
}

}  // namespace onetrip::master
