// How much of the cluster's memory is used: added up from what members report with their renewals,
// and told to every agent, so that all show the same.
#ifndef ONETRIP_MASTER_USAGE_H_
#define ONETRIP_MASTER_USAGE_H_

#include "master/state.h"

namespace onetrip::master {

// Nothing: not all who know have told since this master's start.
[[nodiscard]] std::optional<PoolUsage> Usage(const ClusterState& state);
// Adds up anew; tells agents, and the log, if it has become another.
void TellUsage(ClusterState& state, Effects& effects);
// One line; empty: there is room.
[[nodiscard]] std::string WhyShortOfMemory(const ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_USAGE_H_
