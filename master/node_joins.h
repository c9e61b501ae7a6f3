// Memory nodes that come, serve and go; the map, which the first of them make.
#ifndef ONETRIP_MASTER_NODE_JOINS_H_
#define ONETRIP_MASTER_NODE_JOINS_H_

#include "master/state.h"

namespace onetrip::master {

// True if a node that holds nothing has been away for so long that it is not shown any more, and
// that the next node that is new gets its number.
[[nodiscard]] bool IsGoneForGood(const ClusterState& state, uint16_t id, uint64_t now_us);
// A memory node offers its memory: it is refused, given its number, or waits for the map or for
// being put out.
void OnJoinNode(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                uint64_t request, const JoinNodeRequest& offer);
// Gives those that are out now their places.
void PlaceDamaged(ClusterState& state, Effects& effects);
// A memory node that has joined says where it serves.
void OnServeNode(ClusterState& state, Effects& effects, Member& member, uint64_t request,
                 const ServeNodeRequest& message);
// The process is no member any more: `member` is gone afterwards.
void NodeAway(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const std::string& why, Away away);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_NODE_JOINS_H_
