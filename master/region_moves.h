// Regions that move from living nodes to others: a node drains, or is given its share
// (docs/MASTER.md). One at a time, under a hold of everything: what a view says is there is there.
#ifndef ONETRIP_MASTER_REGION_MOVES_H_
#define ONETRIP_MASTER_REGION_MOVES_H_

#include "master/placement.h"
#include "master/state.h"

namespace onetrip::master {

void OnMoveRegions(ClusterState& state, Effects& effects, StreamId stream, uint64_t request,
                   const MoveRegionsRequest& wanted);
[[nodiscard]] bool MovesAreWanted(const ClusterState& state);
// Whether the node may be given regions of others; for that it comes into the view.
[[nodiscard]] bool TakesRegions(const ClusterState& state, uint16_t node);
[[nodiscard]] std::vector<MovePart> MoveParts(const ClusterState& state);
[[nodiscard]] MovePlanner PlanMoves(const ClusterState& state);
// Whether nothing else is to be done before.
[[nodiscard]] bool MayMove(const ClusterState& state, uint64_t now_us);
[[nodiscard]] bool RegistersAreToEnd(const ClusterState& state);
void EnqueueMoveChanges(ClusterState& state, uint64_t now_us);
void NameNodes(ClusterState& state, Effects& effects, uint16_t last);
void IdleOut(ClusterState& state, Effects& effects, uint16_t node);
void MovesOver(ClusterState& state, Effects& effects);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_REGION_MOVES_H_
