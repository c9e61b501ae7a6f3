// Nodes that are lost, or cut off, go out: from the next view on their replicas have no say.
#ifndef ONETRIP_MASTER_WORK_NODE_OUT_H_
#define ONETRIP_MASTER_WORK_NODE_OUT_H_

#include <cstdint>
#include <vector>

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& NodeOutWork();

// Puts `nodes` out in the next view, which the caller commits. REQUIRES: all hold.
void PutOut(ClusterState& state, Effects& effects, const std::vector<NodeId>& nodes,
            uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_NODE_OUT_H_
