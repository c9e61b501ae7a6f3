// Memory nodes that are lost, that come back, and whose places others take (docs/MASTER.md).
#ifndef ONETRIP_MASTER_LOST_NODES_H_
#define ONETRIP_MASTER_LOST_NODES_H_

#include "master/state.h"

namespace onetrip::master {

// The nodes that are lost and could be put out now; none if one region did not keep its majority.
[[nodiscard]] std::vector<NodeId> Leaving(const ClusterState& state, uint64_t now_us);
// Changes of the view for nodes that are out, serve again and have fenced all whom they must.
void EnqueueNodesIn(ClusterState& state, uint64_t now_us);
// In the next view, which the caller commits.
void NodeIn(ClusterState& state, Effects& effects, uint16_t node);
// True if the node has been out for so long that others take its places, if they have room.
[[nodiscard]] bool IsToBeReplaced(const ClusterState& state, uint16_t id, uint64_t now_us);
// True if a node that may take regions has room for one that is missing on `lost`.
[[nodiscard]] bool HasRoomFor(const ClusterState& state, NodeId lost);
// True if a replica that is missing can be copied, or may be in a while, without that regions move.
[[nodiscard]] bool CopiesAreToCome(const ClusterState& state, uint64_t now_us);
// Changes of the view for nodes that have been out for so long that others take their places.
void EnqueueReplacements(ClusterState& state, uint64_t now_us);
// In the next view, which the caller commits.
void ReplaceNode(ClusterState& state, Effects& effects, uint16_t lost);
// A tool accepts that nodes are lost for good, or asks what that would mean.
void OnAcceptLoss(ClusterState& state, Effects& effects, StreamId stream, uint64_t now_us,
                  uint64_t request, const AcceptLossRequest& wanted);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_LOST_NODES_H_
