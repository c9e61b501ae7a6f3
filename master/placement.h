// Placement: which memory nodes hold which region (PROTOCOLS 2). Pure and deterministic.
//
// Consistent hashing with bounded load: every region ranks the nodes by a hash of its own (highest
// random weight) and takes the first that have room, so that a node more moves few regions. All the
// memory that r distinct nodes per region can use is used.
#ifndef ONETRIP_MASTER_PLACEMENT_H_
#define ONETRIP_MASTER_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "client_core/cluster/view.h"

namespace onetrip {

// The regions of a cluster whose node i offers node_bytes[i]: each on `replicas` distinct nodes,
// its bases whole regions within the nodes' bytes and never two in one place; primaries are spread.
// Empty: no region fits. REQUIRES: 1 <= replicas <= kMaxReplicas.
std::vector<RegionPlacement> PlaceRegions(std::span<const uint64_t> node_bytes, int replicas);

// How many of a region's `replicas` must live.
constexpr int Majority(int replicas) { return replicas / 2 + 1; }

// `region` without `node`: its entry becomes the last of the missing ones, the order of the others
// stays. Whether anything changed. REQUIRES: another replica lives, or `node` holds none.
bool LoseReplica(NodeId node, int replicas, RegionPlacement* region);

// Makes the entry of `node` the first of the missing ones. REQUIRES: it is one of them.
void PutFirstOfMissing(NodeId node, int replicas, RegionPlacement* region);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_PLACEMENT_H_
