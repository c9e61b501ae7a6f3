// The part of the state that the store is to hold: copied into the change of an event.
#ifndef ONETRIP_MASTER_RECORDS_H_
#define ONETRIP_MASTER_RECORDS_H_

#include "master/state.h"

namespace onetrip::master {

// The cluster's record, brought up to date with the membership.
void SaveCluster(ClusterState& state, Effects& effects);
// Places of these regions, by number; counts anew what is missing.
void SaveRegions(ClusterState& state, Effects& effects, const std::vector<uint32_t>& regions);
// Counts what lacks replicas, and what each node has. To be called when places have changed.
void CountMissing(ClusterState& state);
// The node's mark, if `mark` or one seen before is larger than the one that is stored.
void SaveMark(ClusterState& state, Effects& effects, uint16_t node, uint64_t mark);
// Likewise of all nodes, with what they have reported.
void SaveMarks(ClusterState& state, Effects& effects);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_RECORDS_H_
