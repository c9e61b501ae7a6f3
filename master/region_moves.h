// Regions that move from living nodes to others: a node drains, or is given its share
// (docs/MASTER.md). One at a time, while all are quiesced: what a view says is there is there.
#ifndef ONETRIP_MASTER_REGION_MOVES_H_
#define ONETRIP_MASTER_REGION_MOVES_H_

#include "master/placement.h"
#include "master/state.h"

namespace onetrip::master {

// A tool says what is to become of a node's regions.
void OnMoveRegions(ClusterState& state, Effects& effects, StreamId stream, uint64_t now_us,
                   uint64_t request, const MoveRegionsRequest& wanted);
// True if a node drains that has regions.
[[nodiscard]] bool NodesDrain(const ClusterState& state);
// True if NodesDrain(), or a node is to be given its share.
[[nodiscard]] bool MovesAreWanted(const ClusterState& state);
// True if the node may be given regions of others; for that it comes into the view.
[[nodiscard]] bool TakesRegions(const ClusterState& state, uint16_t node);
// How each node takes part, by id.
[[nodiscard]] std::vector<MovePart> MoveParts(const ClusterState& state);
[[nodiscard]] MovePlanner PlanMoves(const ClusterState& state);
// True if no other work is to be done before.
[[nodiscard]] bool MayMove(const ClusterState& state, uint64_t now_us);
// True if registers have to become records before regions move.
[[nodiscard]] bool RegistersAreToEnd(const ClusterState& state);
// Changes of the view before and after moves.
void EnqueueMoveChanges(ClusterState& state, uint64_t now_us);
// Changes of the next view, which the caller commits: it names all nodes up to `last`; the node
// goes out, since it has nothing; moves are over.
void NameNodes(ClusterState& state, Effects& effects, uint16_t last);
void IdleOut(ClusterState& state, Effects& effects, uint16_t node);
void MovesOver(ClusterState& state, Effects& effects);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_REGION_MOVES_H_
