// The cluster's time, over restarts of the master.
#ifndef ONETRIP_MASTER_CLUSTER_TIME_H_
#define ONETRIP_MASTER_CLUSTER_TIME_H_

#include "master/state.h"

namespace onetrip::master {

// From what the master's first life knows, or the stored time: who comes back knows better.
void StartTime(ClusterState& state, uint64_t now_us, uint64_t unix_us, bool is_first);
// Cluster time, in microseconds since the Unix epoch.
[[nodiscard]] uint64_t TimeUs(const ClusterState& state, uint64_t now_us);
// A member that was away has gone on counting.
void HearTime(ClusterState& state, uint64_t now_us, const MemberHello& hello);
// The wall clock decides once no member is left that could know better.
void LetWallClockDecide(ClusterState& state, Effects& effects, uint64_t now_us);
// Stores a time ahead of what may be told soon.
void AdvanceDurableTime(ClusterState& state, Effects& effects, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_CLUSTER_TIME_H_
