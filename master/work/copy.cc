#include "master/work/copy.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "master/facts.h"
#include "master/reach.h"

namespace onetrip::master {

std::optional<Hold> NextCopy(const ClusterState& state, uint64_t now_us) {
  const bool too_early = now_us < state.copy_not_before_us || now_us < state.repair_not_before_us;
  return too_early || state.repair.has_value() ? std::nullopt : DueCopy(state);
}

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

}  // namespace onetrip::master
