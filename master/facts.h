// Questions about a cluster's state; they change nothing.
#ifndef ONETRIP_MASTER_FACTS_H_
#define ONETRIP_MASTER_FACTS_H_

#include "master/state.h"

namespace onetrip::master {

Member* MemberOn(ClusterState& state, StreamId stream);
std::optional<uint16_t> FindNode(const ClusterState& state, uint64_t incarnation);
// True if the agent could still act under an older view.
[[nodiscard]] bool Counts(const Member& member);
[[nodiscard]] bool SomebodyAttendingIsLate(const ClusterState& state);
[[nodiscard]] bool HasQueued(const ClusterState& state, ChangeKind kind);
[[nodiscard]] bool HasQueuedOfKeyspaces(const ClusterState& state);
[[nodiscard]] bool AllServe(const ClusterState& state);
[[nodiscard]] bool AddressesKnown(const ClusterState& state);
[[nodiscard]] bool HoldsRegion(const ClusterState& state, NodeId node);
[[nodiscard]] bool SomebodyWorks(const ClusterState& state);
// True if every node that is not out, nor among `leave`, refuses the expelled agent.
[[nodiscard]] bool IsHarmless(const ClusterState& state, const Member& member,
                              const std::vector<NodeId>& leave);
// True if no agent acts under a view older than the one of `epoch`.
[[nodiscard]] bool InForceEverywhere(const ClusterState& state, uint64_t epoch);
// True if the node refuses all workers that were expelled.
[[nodiscard]] bool HasFencedAll(const ClusterState& state, uint16_t node);
[[nodiscard]] std::vector<WorkerId> ExpelledWorkers(const ClusterState& state);
// Regions of which fewer than a majority of replicas, or of those whose loss was not accepted, is
// on nodes that serve, and neither are to be put out nor are among `without`.
[[nodiscard]] size_t RegionsWithoutMajority(const ClusterState& state,
                                            const std::vector<uint16_t>& without = {});
// Regions without a live replica on a node that serves.
[[nodiscard]] size_t RegionsWithoutAny(const ClusterState& state);
// True if regions lack a majority, and no node that could change that is about to be back.
[[nodiscard]] bool LacksMajority(const ClusterState& state, uint64_t now_us);
// True if more than half of the memory nodes have shown that the data directory is an older copy.
// Then a member that does not come is not taken for dead: it refuses this master, and works on.
[[nodiscard]] bool IsOutvoted(const ClusterState& state);
// Null: no agent has workers.
Member* Repairer(ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_FACTS_H_
