// How much room nodes have for regions, and where: the arithmetic below placement and moves. Pure.
#ifndef ONETRIP_MASTER_REGION_ROOM_H_
#define ONETRIP_MASTER_REGION_ROOM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"

namespace onetrip {

// As many as a global address can name.
constexpr uint64_t kRegionsMax = 1ULL << (kAddrBits - kRegionBits);

// How much the region would like to lie on the node: the highest random weight comes first.
[[nodiscard]] uint64_t Weight(uint64_t region, uint64_t node);

// How many regions with `replicas` each have room: `room` is in regions, by node, and a node holds
// a region at most once.
[[nodiscard]] uint64_t MostRegions(const std::vector<uint64_t>& room, uint64_t replicas);

// The position of the region's replica on `node`; `replicas`: it has none there.
[[nodiscard]] int EntryOf(NodeId node, int replicas, const RegionPlacement& region);

// The places that nothing lies in, by node, the lowest last.
[[nodiscard]] std::vector<std::vector<uint64_t>> FreePlaces(
    std::span<const uint64_t> node_bytes, int replicas,
    const std::vector<RegionPlacement>& regions);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_REGION_ROOM_H_
