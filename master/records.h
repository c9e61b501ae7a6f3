// What the store is to hold of the state: copied into the change of an event.
#ifndef ONETRIP_MASTER_RECORDS_H_
#define ONETRIP_MASTER_RECORDS_H_

#include "master/state.h"

namespace onetrip::master {

void SaveCluster(ClusterState& state, Effects& effects);
void SaveRegions(ClusterState& state, Effects& effects, const std::vector<uint32_t>& regions);
void CountMissing(ClusterState& state);
void SaveMark(ClusterState& state, Effects& effects, uint16_t node, uint64_t mark);
void SaveMarks(ClusterState& state, Effects& effects);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_RECORDS_H_
