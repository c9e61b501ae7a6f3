#include "master/placement.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/layout/global_addr.h"
#include "master/region_room.h"

namespace onetrip {
namespace {

// Makes the node that is primary least often, among a region's nodes, its primary, as long as that
// evens anything out.
void SpreadPrimaries(int replicas, size_t nodes, std::vector<RegionPlacement>* placements) {
  constexpr int kPassesMax = 64;
  std::vector<uint64_t> primaries(nodes, 0);
  for (const RegionPlacement& placement : *placements) ++primaries[placement.nodes[0].value];
  bool moved = true;
  for (int pass = 0; pass < kPassesMax && moved; ++pass) {
    moved = false;
    for (RegionPlacement& placement : *placements) {
      int least = 0;
      for (int i = 1; i < replicas; ++i) {
        const uint64_t count = primaries[placement.nodes[i].value];
        if (count < primaries[placement.nodes[least].value]) least = i;
      }
      const uint16_t from = placement.nodes[0].value;
      const uint16_t to = placement.nodes[least].value;
      if (primaries[from] <= primaries[to] + 1) continue;
      --primaries[from];
      ++primaries[to];
      std::swap(placement.nodes[0], placement.nodes[least]);
      std::swap(placement.base[0], placement.base[least]);
      moved = true;
    }
  }
}

}  // namespace

std::vector<RegionPlacement> PlaceRegions(std::span<const uint64_t> node_bytes, int replicas) {
  CHECK(replicas >= 1 && replicas <= kMaxReplicas);
  const size_t nodes = node_bytes.size();
  const auto wanted = static_cast<size_t>(replicas);
  std::vector<uint64_t> room;
  room.reserve(nodes);
  for (const uint64_t bytes : node_bytes) {
    room.push_back(std::min(bytes / kRegionBytes, kRegionsMax));
  }
  const uint64_t regions = nodes < wanted ? 0 : MostRegions(room, wanted);

  std::vector<RegionPlacement> placements;
  placements.reserve(regions);
  std::vector<uint64_t> next_base(nodes, 0);
  std::vector<uint64_t> weights(nodes);
  std::vector<uint16_t> order(nodes);
  for (uint64_t region = 0; region < regions; ++region) {
    std::iota(order.begin(), order.end(), uint16_t{0});
    for (size_t node = 0; node < nodes; ++node) weights[node] = Weight(region, node);
    // A node with room for all regions that are left comes first: passed over, its room would be
    // lost, and the last regions would not find enough nodes.
    const uint64_t left = regions - region;
    std::sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
      if ((room[a] == 0) != (room[b] == 0)) return room[b] == 0;
      if ((room[a] >= left) != (room[b] >= left)) return room[a] >= left;
      return weights[a] > weights[b];
    });
    // By weight again, so that the primary is no matter of room.
    std::sort(order.begin(), order.begin() + replicas,
              [&](uint16_t a, uint16_t b) { return weights[a] > weights[b]; });
    RegionPlacement placement{};
    for (size_t replica = 0; replica < wanted; ++replica) {
      const uint16_t node = order[replica];
      CHECK(room[node] > 0);
      --room[node];
      placement.nodes[replica] = NodeId{node};
      placement.base[replica] = next_base[node];
      next_base[node] += kRegionBytes;
    }
    placements.push_back(placement);
  }
  SpreadPrimaries(replicas, nodes, &placements);
  return placements;
}

namespace {

// Moves the entry at `from` to `to`; those between keep their order.
void Move(int from, int to, RegionPlacement* region) {
  for (; from < to; ++from) {
    std::swap(region->nodes[from], region->nodes[from + 1]);
    std::swap(region->base[from], region->base[from + 1]);
  }
  for (; from > to; --from) {
    std::swap(region->nodes[from], region->nodes[from - 1]);
    std::swap(region->base[from], region->base[from - 1]);
  }
}

}  // namespace

bool LoseReplica(NodeId node, int replicas, RegionPlacement* region) {
  const int entry = EntryOf(node, replicas, *region);
  if (entry >= replicas - region->missing) return false;
  CHECK(region->missing + 1 < replicas);
  Move(entry, replicas - 1, region);
  ++region->missing;
  return true;
}

void PutFirstOfMissing(NodeId node, int replicas, RegionPlacement* region) {
  const int entry = EntryOf(node, replicas, *region);
  const int first = replicas - region->missing;
  CHECK(entry >= first && entry < replicas);
  Move(entry, first, region);
}

namespace {

using NodeSet = std::set<uint16_t>;

NodeSet NodesOf(const RegionPlacement& region, int replicas) {
  NodeSet nodes;
  for (int i = 0; i < replicas; ++i) nodes.insert(region.nodes[i].value);
  return nodes;
}

}  // namespace

std::vector<uint32_t> ReplaceNode(NodeId lost, int replicas, std::span<const uint64_t> node_bytes,
                                  std::vector<RegionPlacement>* regions) {
  std::vector<std::vector<uint64_t>> places = FreePlaces(node_bytes, replicas, *regions);
  std::map<NodeSet, size_t> alike;                // how many regions lie on these nodes
  std::map<NodeSet, std::vector<uint32_t>> left;  // by the other nodes of each
  for (uint32_t region = 0; region < regions->size(); ++region) {
    const RegionPlacement& placement = (*regions)[region];
    NodeSet nodes = NodesOf(placement, replicas);
    ++alike[nodes];
    const int entry = EntryOf(lost, replicas, placement);
    if (entry == replicas || entry < replicas - placement.missing) continue;
    nodes.erase(lost.value);
    left[nodes].push_back(region);
  }
  std::vector<uint32_t> changed;
  for (const auto& [others, wanted] : left) {
    for (size_t done = 0; done < wanted.size();) {
      // The best: where most of the like are; of several the one with most room.
      std::optional<uint16_t> best;
      std::array<size_t, 2> best_rank{};
      const auto node_end = static_cast<uint16_t>(places.size());
      for (uint16_t node = 0; node < node_end; ++node) {
        if (others.contains(node) || node == lost.value || places[node].empty()) continue;
        NodeSet together = others;
        together.insert(node);
        const auto like = alike.find(together);
        const std::array<size_t, 2> rank{like == alike.end() ? 0 : like->second,
                                         places[node].size()};
        if (!best.has_value() || rank > best_rank) {
          best = node;
          best_rank = rank;
        }
      }
      if (!best.has_value()) break;
      NodeSet together = others;
      together.insert(*best);
      for (; done < wanted.size() && !places[*best].empty(); ++done) {
        RegionPlacement& placement = (*regions)[wanted[done]];
        const int entry = EntryOf(lost, replicas, placement);
        placement.nodes[entry] = NodeId{*best};
        placement.base[entry] = places[*best].back();
        places[*best].pop_back();
        ++alike[together];
        changed.push_back(wanted[done]);
      }
    }
  }
  return changed;
}

std::vector<uint64_t> UnusableBytes(std::span<const uint64_t> node_bytes,
                                    std::span<const uint32_t> held, size_t regions, int replicas) {
  std::vector<uint64_t> room;
  room.reserve(node_bytes.size());
  for (const uint64_t bytes : node_bytes) room.push_back(bytes / kRegionBytes);
  const uint64_t most = MostRegions(room, static_cast<uint64_t>(replicas));
  std::vector<uint64_t> unusable;
  unusable.reserve(node_bytes.size());
  for (size_t node = 0; node < node_bytes.size(); ++node) {
    const uint64_t usable = regions >= most ? held[node] : std::min(room[node], most);
    unusable.push_back(node_bytes[node] - usable * kRegionBytes);
  }
  return unusable;
}

void ApplyMove(const RegionMove& move, int replicas, RegionPlacement* region) {
  const int entry = EntryOf(move.from, replicas, *region);
  CHECK(entry < replicas && EntryOf(move.to, replicas, *region) == replicas);
  region->nodes[entry] = move.to;
  region->base[entry] = move.base;
}

}  // namespace onetrip
