// work/grow
#ifndef ONETRIP_MASTER_WORK_GROW_H_
#define ONETRIP_MASTER_WORK_GROW_H_

#include "master/placement.h"
#include "master/state.h"

namespace onetrip::master {

// Those that there is room for as it is, whether or not their time has come.
[[nodiscard]] std::optional<Hold> NextGrowth(MovePlanner* planner);
void CommitGrowth(ClusterState& state, Effects& effects, const Hold& hold, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_GROW_H_
