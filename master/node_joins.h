// Memory nodes that come, serve and go; the map, which the first of them make.
#ifndef ONETRIP_MASTER_NODE_JOINS_H_
#define ONETRIP_MASTER_NODE_JOINS_H_

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] bool IsGoneForGood(const ClusterState& state, uint16_t id, uint64_t now_us);
void OnJoinNode(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                uint64_t request, const JoinNodeRequest& offer);
// Gives those that are out now their places.
void PlaceDamaged(ClusterState& state, Effects& effects);
void OnServeNode(ClusterState& state, Effects& effects, Member& member, uint64_t request,
                 const ServeNodeRequest& message);
void NodeAway(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const std::string& why, Away away);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_NODE_JOINS_H_
