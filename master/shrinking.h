// Regions that are given up, for nodes that drain and whose regions the others lack room for
// (docs/MASTER.md, "Less memory"): those with the highest numbers leave. Agents allocate there no
// more, the index and the keys move out, and when every block there is free a view lacks them.
#ifndef ONETRIP_MASTER_SHRINKING_H_
#define ONETRIP_MASTER_SHRINKING_H_

#include "master/placement.h"
#include "master/state.h"

namespace onetrip::master {

// How many at the end, so that nodes that drain can give the others away, and those of nodes that
// are lost for good find room; all: that is no use.
[[nodiscard]] size_t RegionsToGiveUp(const ClusterState& state, std::vector<MovePart> parts,
                                     uint64_t now_us);
// Why what is in use does not fit into the regions that would be left; empty: it does.
[[nodiscard]] std::string WhyNotWithout(const ClusterState& state, size_t given_up);
// True if nothing that moves need wait until replicas that are missing are copied.
[[nodiscard]] bool AwaitsNoCopy(const ClusterState& state, uint64_t now_us);
// True if every block of the regions that leave is free.
[[nodiscard]] bool LeavingAreEmpty(const ClusterState& state);
// Objects that were written there behind the last walk have to be met by another one.
void WalkAgainForLeaving(ClusterState& state, uint64_t now_us);
// No region is given up any more; the next view says so.
void EndLeaving(ClusterState& state, Effects& effects);
// For people, to be put behind what moves; empty: nothing shrinks.
[[nodiscard]] std::string Shrinking(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_SHRINKING_H_
