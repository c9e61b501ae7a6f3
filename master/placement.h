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

// Gives what is missing on `lost` to other nodes, as far as they have room: node i takes regions
// within its first node_bytes[i] bytes, and none if that is 0. Regions that lie on the same other
// nodes go to the same one if it has room for them, for the buffers of a register lie on its nodes.
// The entries stay missing. Returns the regions that have changed.
std::vector<uint32_t> ReplaceNode(NodeId lost, int replicas, std::span<const uint64_t> node_bytes,
                                  std::vector<RegionPlacement>* regions);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_PLACEMENT_H_
