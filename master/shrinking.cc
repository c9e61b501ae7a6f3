#include "master/shrinking.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/region_layout.h"
#include "master/emit.h"
#include "master/lost_nodes.h"
#include "master/placement.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/texts.h"
#include "master/usage.h"

namespace onetrip::master {
namespace {

// This share of what is left may be in use: keys come and go meanwhile, and blocks of a class are
// never all full.
constexpr uint64_t kPercentMax = 90;

// Blocks that are still granted in regions that leave; nothing: not all who know have told.
std::optional<uint64_t> LeavingBlocks(const ClusterState& state) {
  uint64_t blocks = 0;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    if (node.record.out) continue;
    if (!node.report.is_told || node.report.node.view_epoch < state.placement_epoch)
      return std::nullopt;
    blocks += node.report.node.leaving_blocks;
  }
  return blocks;
}

}  // namespace

size_t RegionsToGiveUp(const ClusterState& state, std::vector<MovePart> parts, uint64_t now_us) {
  std::vector<RegionPlacement> regions = state.membership.view().regions;
  // Replicas of a lost node need room as much as those that a node gives away.
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (IsToBeReplaced(state, id, now_us)) parts[id].drains = true;
  }
  for (RegionPlacement& region : regions) region.missing = 0;
  const auto fits = [&](size_t given_up) {
    MovePlanner planner(parts, state.record.replicas, {regions.begin(), regions.end() - given_up});
    while (planner.Next().has_value()) continue;
    return planner.left_on_draining() == 0;
  };
  if (fits(0)) return 0;
  // As many as now, mostly.
  size_t low = 0;  // does not fit
  size_t high = regions.size();
  if (state.record.leaving != 0 && fits(state.record.leaving)) high = state.record.leaving;
  while (low + 1 < high) {
    const size_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

std::string WhyNotWithout(const ClusterState& state, size_t given_up) {
  const size_t regions = state.membership.view().regions.size();
  if (given_up >= regions || given_up > UINT16_MAX) return "none would be left without them";
  std::optional<PoolUsage> usage = Usage(state);
  if (!usage.has_value()) {
    return "how much memory is in use is not known yet, try again in a moment";
  }
  usage->SetBlocks(regions * kBlocksPerRegion - kRootBlocks);  // with what is in use there
  const uint64_t blocks = (regions - given_up) * kBlocksPerRegion - kRootBlocks;
  const uint64_t bytes = blocks * kBlockBytes;
  const uint64_t left = bytes - std::min(bytes, usage->reserve_bytes);
  if (usage->used_bytes() <= left / 100 * kPercentMax) return "";
  return MiB(usage->used_bytes()) + " are in use, which do not fit into " +
         std::to_string(kPercentMax) + " % of the " + MiB(left) +
         " that would be left: delete keys";
}

// Where all nodes are full, a copy that was lost may find its place when regions have moved or
// left.
bool AwaitsNoCopy(const ClusterState& state, uint64_t now_us) {
  return state.record.leaving != 0 || !CopiesAreToCome(state, now_us);
}

bool LeavingAreEmpty(const ClusterState& state) {
  return LeavingBlocks(state) == uint64_t{0} || Planted(Bug::kCutWhileUsed);
}

void WalkAgainForLeaving(ClusterState& state, uint64_t now_us) {
  if (state.record.leaving == 0 || !state.record.index_left || !state.registers_ended ||
      state.hold.has_value() || now_us < state.leave_again_us ||
      LeavingBlocks(state).value_or(0) == 0) {
    return;
  }
  state.registers_ended = false;
  BeginWalkAnew(state);
}

void EndLeaving(ClusterState& state, Effects& effects) {
  if (state.record.leaving != 0) {
    Log(effects, LogLevel::kInfo, "no region is given up any more");
    state.placement_epoch = state.membership.view().epoch.value + 1;
  }
  state.record.leaving = 0;
  state.record.index_left = false;
  state.membership.SetLeaving(0);
  if (!MovesAreWanted(state)) state.record.may_shrink = false;
}

std::string Shrinking(const ClusterState& state, uint64_t now_us) {
  const size_t regions = state.membership.view().regions.size();
  if (state.record.leaving != 0) {
    std::string text = "; the capacity shrinks from " + MiB(regions * kRegionBytes) + " to " +
                       MiB((regions - state.record.leaving) * kRegionBytes);
    if (const std::optional<uint64_t> blocks = LeavingBlocks(state); blocks.has_value()) {
      text += ", what is in " + std::to_string(*blocks) + " blocks moves first";
    }
    return state.told_not_done.empty() ? text : text + "; " + state.told_not_done;
  }
  if (!state.record.may_shrink) return "";
  const size_t wanted = RegionsToGiveUp(state, MoveParts(state), now_us);
  if (wanted == 0) return "";
  const std::string why = WhyNotWithout(state, wanted);
  return why.empty() ? "" : "; " + why;
}

}  // namespace onetrip::master
