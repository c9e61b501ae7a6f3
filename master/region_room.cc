#include "master/region_room.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "client_core/layout/global_addr.h"

namespace onetrip {
namespace {

// The finaliser of MurmurHash3: every bit of the input moves every bit of the output.
uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

// True if the nodes can hold `regions` more regions: a node holds a region at most once.
bool Fits(const std::vector<uint64_t>& room, uint64_t regions, uint64_t replicas) {
  uint64_t places = 0;
  for (const uint64_t one : room) places += std::min(one, regions);
  return places >= regions * replicas;
}

}  // namespace

uint64_t Weight(uint64_t region, uint64_t node) { return Mix(Mix(region + 1) + (node + 1)); }

uint64_t MostRegions(const std::vector<uint64_t>& room, uint64_t replicas) {
  uint64_t low = 0;
  uint64_t high =
      std::min(kRegionsMax, std::accumulate(room.begin(), room.end(), uint64_t{0}) / replicas);
  while (low < high) {
    const uint64_t middle = high - (high - low) / 2;
    if (Fits(room, middle, replicas)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

int EntryOf(NodeId node, int replicas, const RegionPlacement& region) {
  return static_cast<int>(std::find(region.nodes.begin(), region.nodes.begin() + replicas, node) -
                          region.nodes.begin());
}

std::vector<std::vector<uint64_t>> FreePlaces(std::span<const uint64_t> node_bytes, int replicas,
                                              const std::vector<RegionPlacement>& regions) {
  std::vector<std::set<uint64_t>> taken(node_bytes.size());
  for (const RegionPlacement& region : regions) {
    for (int i = 0; i < replicas; ++i) {
      if (region.nodes[i].value < taken.size()) {
        taken[region.nodes[i].value].insert(region.base[i]);
      }
    }
  }
  std::vector<std::vector<uint64_t>> places(node_bytes.size());
  for (size_t node = 0; node < node_bytes.size(); ++node) {
    for (uint64_t place = node_bytes[node] / kRegionBytes; place-- > 0;) {
      const uint64_t base = place * kRegionBytes;
      if (!taken[node].contains(base)) places[node].push_back(base);
    }
  }
  return places;
}

}  // namespace onetrip
