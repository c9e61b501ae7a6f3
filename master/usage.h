// How much of the cluster's memory is used: added up from what members report with their renewals,
// and told to every agent, so that all show the same.
#ifndef ONETRIP_MASTER_USAGE_H_
#define ONETRIP_MASTER_USAGE_H_

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] std::optional<PoolUsage> Usage(const ClusterState& state);
void TellUsage(
    ClusterState& state,
    Effects& effects);  // adds up anew; tells agents, and the log, if it has become another
[[nodiscard]] std::string WhyShortOfMemory(
    const ClusterState& state);  // one line; empty: there is room

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_USAGE_H_
