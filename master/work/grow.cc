#include "master/work/grow.h"

#include <optional>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/emit.h"
#include "master/holds.h"
#include "master/placement.h"
#include "master/records.h"

namespace onetrip::master {
namespace {

// In one hold: how long all stand still for their headers is bounded, and so is what a view grows
// by.
constexpr size_t kRegionsAtOnce = 256;

}  // namespace

std::optional<Hold> NextGrowth(MovePlanner* planner) {
  Hold hold;
  hold.work = Work::kGrow;
  hold.grown = planner->Grow(kRegionsAtOnce);
  if (hold.grown.empty()) return std::nullopt;
  return hold;
}

// In the next view, which the caller commits. All hold: nobody meets an address there before he
// knows where that is.
void CommitGrowth(ClusterState& state, Effects& effects, const Hold& hold, uint64_t now_us) {
  state.placement_epoch = state.membership.view().epoch.value + 1;
  PauseCopies(state, hold, now_us);
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

}  // namespace onetrip::master
