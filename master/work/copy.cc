#include "master/work/copy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "master/emit.h"
#include "master/facts.h"
#include "master/holds.h"
#include "master/reach.h"
#include "master/records.h"

namespace onetrip::master {
namespace {

class Copy final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const override {
    const bool too_early = now_us < state.copy_not_before_us || now_us < state.repair_not_before_us;
    return too_early || state.repair.has_value() ? std::nullopt : DueCopy(state);
  }
  [[nodiscard]] bool IsStillDue(const ClusterState& state, const Hold& hold,
                                uint64_t now_us) const override {
    // An agent that ended amid a write may have left words whose bytes the target does not have:
    // that is scrubbed first.
    const bool ended_in_between =
        std::any_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
          const Member& member = entry.second;
          const bool ended =
              member.standing == Standing::kExpelled || member.standing == Standing::kFenced;
          return ended && !member.seats.empty() && member.held < hold.epoch;
        });
    return !ended_in_between && WorkKind::IsStillDue(state, hold, now_us);
  }
  [[nodiscard]] std::optional<RepairKind> repair_kind() const override {
    return RepairKind::kCopyRegion;
  }
  void FillOrder(const ClusterState& /*state*/, const Hold& hold, MembershipState* proposed,
                 RepairOrder* order) const override {
    order->region = hold.region;
    proposed->CopyNext(hold.region, hold.target);
  }
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    state.membership.CopyDone(hold.region, hold.target);
    SaveRegions(state, effects, {hold.region});
    PauseCopies(state, hold, now_us);
    if (state.missing_regions == 0) {
      Log(effects, LogLevel::kInfo, "every region has all its replicas again");
    }
  }
};

}  // namespace

std::optional<Hold> DueCopy(const ClusterState& state) {
  if (state.missing_regions == 0 || state.record.scrub_due || state.record.resolve_due ||
      !SomebodyWorks(state) || !AllServe(state) ||
      !InForceEverywhere(state, state.placement_epoch)) {
    return std::nullopt;
  }
  const View& view = state.membership.view();
  std::vector<bool> may_copy;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    may_copy.push_back(!state.nodes[id].record.out && WhoDoesNotReach(state, NodeId{id}).empty());
  }
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    const RegionPlacement& placement = view.regions[region];
    for (int i = view.replicas - placement.missing; i < view.replicas; ++i) {
      if (!may_copy[placement.nodes[i].value]) continue;
      Hold hold;
      hold.work = Work::kCopy;
      hold.region = region;
      hold.target = placement.nodes[i];
      return hold;
    }
  }
  return std::nullopt;
}

const WorkKind& CopyWork() {
  static const Copy kind;
  return kind;
}

}  // namespace onetrip::master
