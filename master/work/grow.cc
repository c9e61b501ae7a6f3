#include "master/work/grow.h"

#include <string>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/emit.h"
#include "master/holds.h"
#include "master/records.h"
#include "master/region_moves.h"

namespace onetrip::master {
namespace {

// In one hold: how long all stand still for their headers is bounded, and so is what a view grows
// by.
constexpr size_t kRegionsAtOnce = 256;

class Grow final : public WorkKind {
 public:
  [[nodiscard]] HoldKind hold_kind() const override {
    return Planted(Bug::kGrownUnderOperations) ? HoldKind::kStart : HoldKind::kAll;
  }
  [[nodiscard]] std::optional<RepairKind> repair_kind() const override {
    return RepairKind::kFormatRegions;
  }
  void FillOrder(const ClusterState& /*state*/, const Hold& hold, MembershipState* proposed,
                 RepairOrder* order) const override {
    order->region = static_cast<uint32_t>(proposed->view().regions.size());
    proposed->AddRegions(hold.grown);
  }
  // All hold: no worker meets an address there before it knows where that is.
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    PauseCopies(state, hold, now_us);
    // Asked for meanwhile: what is left there needs the room.
    if (NodesDrain(state)) return;
    for (const RegionPlacement& region : hold.grown) {
      for (int i = 0; i < state.record.replicas; ++i) {
        // It would be missing there at once, and what was written there may be lost.
        if (!state.nodes[region.nodes[i].value].serving) return;
      }
    }
    const auto first = static_cast<uint32_t>(state.membership.view().regions.size());
    state.membership.AddRegions(hold.grown);
    const auto end = static_cast<uint32_t>(state.membership.view().regions.size());
    std::vector<uint32_t> added;
    for (uint32_t region = first; region < end; ++region) added.push_back(region);
    if (Planted(Bug::kGrownNotDurable)) {
      CountMissing(state);
    } else {
      SaveRegions(state, effects, added);
    }
    Log(effects, LogLevel::kInfo,
        "the capacity has grown by " + std::to_string(end - first) + " regions to " +
            std::to_string(end) + ", " + std::to_string(end * (kRegionBytes >> 20)) + " MiB");
  }
};

}  // namespace

std::optional<Hold> NextGrowth(MovePlanner* planner) {
  Hold hold;
  hold.work = Work::kGrow;
  hold.grown = planner->Grow(kRegionsAtOnce);
  if (hold.grown.empty()) return std::nullopt;
  return hold;
}

const WorkKind& GrowWork() {
  static const Grow kind;
  return kind;
}

}  // namespace onetrip::master
