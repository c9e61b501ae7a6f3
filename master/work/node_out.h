// work/node_out
#ifndef ONETRIP_MASTER_WORK_NODE_OUT_H_
#define ONETRIP_MASTER_WORK_NODE_OUT_H_

#include "master/state.h"

namespace onetrip::master {

// Those of them that somebody needs to be out: a worker, or the node itself to be of use again.
[[nodiscard]] std::vector<NodeId> DueOut(const ClusterState& state, uint64_t now_us);
// In the next view, which the caller commits. REQUIRES: all hold.
void PutOut(ClusterState& state, Effects& effects, const std::vector<NodeId>& nodes,
            uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_NODE_OUT_H_
