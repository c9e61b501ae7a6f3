#include "master/records.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/status.h"

namespace onetrip::master {

void SaveMark(ClusterState& state, Effects& effects, uint16_t node, uint64_t mark) {
  Node& known = state.nodes[node];
  known.mark = std::max(known.mark, mark);
  if (known.mark <= known.record.mark) return;
  known.record.mark = known.mark;
  effects.change.nodes[node] = known.record;
}

void SaveMarks(ClusterState& state, Effects& effects) {
  for (uint16_t node = 0; node < state.nodes.size(); ++node)
    SaveMark(state, effects, node, state.nodes[node].mark);
}

void SaveCluster(ClusterState& state, Effects& effects) {
  const View& view = state.membership.view();
  state.record.epoch = view.epoch.value;
  state.record.keyspaces = view.keyspaces;
  state.record.worker_index_end = view.worker_index_end;
  state.record.next_worker = state.membership.next_worker();
  state.record.next_keyspace = state.membership.next_keyspace();
  effects.change.cluster = state.record;
}

void CountMissing(ClusterState& state) {
  const View& view = state.membership.view();
  state.missing_regions = 0;
  state.held.assign(view.nodes.size(), 0);
  state.lacking.assign(view.nodes.size(), 0);
  for (const RegionPlacement& region : view.regions) {
    state.missing_regions += region.missing != 0 ? 1 : 0;
    for (int i = 0; i < view.replicas; ++i) {
      ++state.held.at(region.nodes[i].value);
      if (i >= view.replicas - region.missing) ++state.lacking.at(region.nodes[i].value);
    }
  }
}

void SaveRegions(ClusterState& state, Effects& effects, const std::vector<uint32_t>& regions) {
  for (const uint32_t region : regions) {
    effects.change.regions[region] = state.membership.view().regions[region];
  }
  CountMissing(state);
}

}  // namespace onetrip::master
