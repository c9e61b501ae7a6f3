// Memory nodes that are lost, that come back, and whose places others take (docs/MASTER.md).
#ifndef ONETRIP_MASTER_LOST_NODES_H_
#define ONETRIP_MASTER_LOST_NODES_H_

#include "master/state.h"

namespace onetrip::master {

// The nodes that are lost and could be put out now; none if one region did not keep its majority.
[[nodiscard]] std::vector<NodeId> Leaving(const ClusterState& state, uint64_t now_us);
void EnqueueNodesIn(ClusterState& state, uint64_t now_us);
void NodeIn(ClusterState& state, Effects& effects, uint16_t node);
// Whether a node that may take regions has room for one that is missing on `lost`.
[[nodiscard]] bool HasRoomFor(const ClusterState& state, NodeId lost);
void EnqueueReplacements(ClusterState& state, uint64_t now_us);
void ReplaceNode(ClusterState& state, Effects& effects, uint16_t lost);
void OnAcceptLoss(ClusterState& state, Effects& effects, StreamId stream, uint64_t now_us,
                  uint64_t request, const AcceptLossRequest& wanted);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_LOST_NODES_H_
