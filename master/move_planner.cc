// MovePlanner, of placement.h.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/layout/global_addr.h"
#include "master/placement.h"
#include "master/region_room.h"

namespace onetrip {

MovePlanner::MovePlanner(std::span<const MovePart> nodes, int replicas,
                         std::vector<RegionPlacement> regions)
    : nodes_(nodes.begin(), nodes.end()),
      replicas_(replicas),
      regions_(std::move(regions)),
      used_(nodes.size(), 0),
      primaries_(nodes.size(), 0) {
  std::vector<uint64_t> bytes;
  bytes.reserve(nodes.size());
  for (const MovePart& node : nodes) bytes.push_back(node.takes ? node.bytes : 0);
  places_ = FreePlaces(bytes, replicas, regions_);
  for (const RegionPlacement& region : regions_) {
    for (int i = 0; i < replicas; ++i) ++used_.at(region.nodes[i].value);
    ++primaries_[region.nodes[0].value];
  }
}

uint64_t MovePlanner::left_on_draining() const {
  uint64_t left = 0;
  for (const RegionPlacement& region : regions_) {
    for (int i = 0; i < replicas_ - region.missing; ++i) {
      left += nodes_[region.nodes[i].value].drains ? 1 : 0;
    }
  }
  return left;
}

bool MovePlanner::LessFull(uint64_t a, uint64_t b) const {
  return (used_[a] + 1) * (nodes_[b].bytes / kRegionBytes) <
         (used_[b] + 1) * (nodes_[a].bytes / kRegionBytes);
}

std::optional<RegionMove> MovePlanner::Next() {
  std::optional<RegionMove> move = Drain();
  if (!move.has_value()) move = MakeWay();
  if (move.has_value()) return move;
  return regions_to_come() != 0 ? MakeRoom() : Share();
}

uint64_t MovePlanner::regions_to_come() const {
  bool shares = false;
  std::vector<uint64_t> room(nodes_.size(), 0);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (HasPart(node)) {
      room[node] = used_[node] + places_[node].size();
      shares = shares || nodes_[node].shares;
    } else if (used_[node] != 0) {
      return 0;
    }
  }
  if (!shares) return 0;
  const uint64_t most = MostRegions(room, static_cast<uint64_t>(replicas_));
  return most - std::min<uint64_t>(most, regions_.size());
}

// `more` regions lack room in as many places as regions have to move: from a node with fewer free
// places than `more` to one with more than that, each makes one place usable. While places are
// lacking there are such nodes, and a region that the one has and the other has not: fewer nodes
// than replicas have `more` places or more, so every region is on two of the others; and if all
// regions were on each that has more, there would be no room for all of `more`.
std::optional<RegionMove> MovePlanner::MakeRoom() {
  const uint64_t more = regions_to_come();
  std::vector<uint16_t> givers;
  std::vector<uint16_t> takers;
  for (uint16_t node = 0; node < static_cast<uint16_t>(nodes_.size()); ++node) {
    if (!HasPart(node)) continue;
    // Without its last region a node that does not share would have no part in it any more.
    const uint64_t keeps = nodes_[node].shares ? 0 : 1;
    if (places_[node].size() < more && used_[node] > keeps) givers.push_back(node);
    if (places_[node].size() > more) takers.push_back(node);
  }
  std::stable_sort(takers.begin(), takers.end(),
                   [this](uint16_t a, uint16_t b) { return LessFull(a, b); });
  std::stable_sort(givers.begin(), givers.end(),
                   [this](uint16_t a, uint16_t b) { return LessFull(b, a); });
  for (const uint16_t from : givers) {
    for (const uint16_t to : takers) {
      const std::optional<uint32_t> region = RegionFor(NodeId{from}, NodeId{to});
      if (region.has_value()) return Make(*region, NodeId{from}, NodeId{to});
    }
  }
  return std::nullopt;
}

std::vector<RegionPlacement> MovePlanner::Grow(size_t most) {
  std::vector<RegionPlacement> grown;
  std::vector<uint16_t> order;
  for (uint64_t more = regions_to_come(); more > 0 && grown.size() < most; --more) {
    order.clear();
    for (uint16_t node = 0; node < static_cast<uint16_t>(nodes_.size()); ++node) {
      if (HasPart(node) && !places_[node].empty()) order.push_back(node);
    }
    if (order.size() < static_cast<size_t>(replicas_)) break;
    const auto region = static_cast<uint32_t>(regions_.size());
    // A node with room for all that are to come comes first, as when the map is made. So the places
    // that are lacking for those never become more.
    std::sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) {
      const bool a_has_all = places_[a].size() >= more;
      const bool b_has_all = places_[b].size() >= more;
      if (a_has_all != b_has_all) return a_has_all;
      if (LessFull(a, b) != LessFull(b, a)) return LessFull(a, b);
      return Weight(region, a) > Weight(region, b);
    });
    grown.push_back(Place(region, std::span(order).first(static_cast<size_t>(replicas_))));
  }
  return grown;
}

// The primary is on the node that has fewest for what it holds.
RegionPlacement MovePlanner::Place(uint32_t region, std::span<const uint16_t> nodes) {
  std::vector<uint16_t> order(nodes.begin(), nodes.end());
  std::sort(order.begin(), order.end(),
            [&](uint16_t a, uint16_t b) { return Weight(region, a) > Weight(region, b); });
  const auto fewest = std::min_element(order.begin(), order.end(), [this](uint16_t a, uint16_t b) {
    return primaries_[a] * (used_[b] + 1) < primaries_[b] * (used_[a] + 1);
  });
  std::rotate(order.begin(), fewest, fewest + 1);
  RegionPlacement placement{};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint16_t node = order[i];
    placement.nodes[i] = NodeId{node};
    placement.base[i] = places_[node].back();
    places_[node].pop_back();
    ++used_[node];
  }
  ++primaries_[order.front()];
  regions_.push_back(placement);
  return placement;
}

std::optional<RegionMove> MovePlanner::Drain() {
  for (uint32_t region = drained_; region < regions_.size(); ++region) {
    const RegionPlacement& placement = regions_[region];
    bool drains = false;
    for (int i = 0; i < replicas_ - placement.missing; ++i) {
      const NodeId from = placement.nodes[i];
      if (!nodes_[from.value].drains) continue;
      drains = true;
      const std::optional<NodeId> to = TargetFor(region);
      if (to.has_value()) return Make(region, from, *to);
    }
    if (!drains && region == drained_) ++drained_;
  }
  return std::nullopt;
}

// Whoever has room has a replica of all that is left to be drained. So of some node that has none
// of one of them a region goes there, and leaves its place.
std::optional<RegionMove> MovePlanner::MakeWay() {
  if (left_on_draining() == 0) return std::nullopt;
  const auto takes = [this](uint16_t node) { return nodes_[node].takes && !nodes_[node].drains; };
  std::vector<RegionMove> ways;
  const auto end = static_cast<uint16_t>(nodes_.size());
  for (uint16_t to = 0; to < end; ++to) {
    if (!takes(to) || places_[to].empty()) continue;
    for (uint16_t from = 0; from < end; ++from) {
      if (!takes(from) || !places_[from].empty()) continue;
      const std::optional<uint32_t> region = RegionFor(NodeId{from}, NodeId{to});
      if (region.has_value()) ways.push_back({*region, NodeId{from}, NodeId{to}, 0});
    }
  }
  for (size_t region = drained_; region < regions_.size() && !ways.empty(); ++region) {
    const RegionPlacement& placement = regions_[region];
    const auto live_end = placement.nodes.begin() + replicas_ - placement.missing;
    const bool drains = std::any_of(placement.nodes.begin(), live_end,
                                    [this](NodeId node) { return nodes_[node.value].drains; });
    if (!drains) continue;
    for (const RegionMove& way : ways) {
      if (EntryOf(way.from, replicas_, placement) < replicas_) continue;
      return Make(way.region, way.from, way.to);
    }
  }
  return std::nullopt;
}

std::optional<NodeId> MovePlanner::TargetFor(uint32_t region) const {
  std::optional<uint16_t> best;
  for (uint16_t node = 0; node < static_cast<uint16_t>(nodes_.size()); ++node) {
    if (!nodes_[node].takes || nodes_[node].drains || places_[node].empty() ||
        EntryOf(NodeId{node}, replicas_, regions_[region]) < replicas_) {
      continue;
    }
    // Among equals the one that the region ranks first, so that they are not filled one after the
    // other.
    const bool better = !best.has_value() || LessFull(node, *best) ||
                        (!LessFull(*best, node) && Weight(region, node) > Weight(region, *best));
    if (better) best = node;
  }
  return best.has_value() ? std::optional<NodeId>(NodeId{*best}) : std::nullopt;
}

std::optional<RegionMove> MovePlanner::Share() {
  std::optional<uint16_t> to;
  std::vector<uint16_t> givers;
  for (uint16_t node = 0; node < static_cast<uint16_t>(nodes_.size()); ++node) {
    const MovePart& part = nodes_[node];
    if (part.shares && part.takes && !part.drains && !places_[node].empty() &&
        (!to.has_value() || LessFull(node, *to))) {
      to = node;
    }
    if (used_[node] != 0 && !part.drains) givers.push_back(node);
  }
  if (!to.has_value()) return std::nullopt;
  std::stable_sort(givers.begin(), givers.end(),
                   [this](uint16_t a, uint16_t b) { return LessFull(b, a); });
  for (const uint16_t from : givers) {
    // Fair when neither would be the fuller one for it.
    const uint64_t room_from = nodes_[from].bytes / kRegionBytes;
    const uint64_t room_to = nodes_[*to].bytes / kRegionBytes;
    if ((used_[*to] + 1) * room_from > (used_[from] - 1) * room_to) break;
    const std::optional<uint32_t> region = RegionFor(NodeId{from}, NodeId{*to});
    if (region.has_value()) return Make(*region, NodeId{from}, NodeId{*to});
  }
  return std::nullopt;
}

// As often one whose primary is there as the node is to be primary.
std::optional<uint32_t> MovePlanner::RegionFor(NodeId from, NodeId to) const {
  const auto replicas = static_cast<uint64_t>(replicas_);
  const bool as_primary = primaries_[to.value] * replicas <= used_[to.value];
  std::optional<uint32_t> other;
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    const int entry = EntryOf(from, replicas_, regions_[region]);
    if (entry >= replicas_ - regions_[region].missing ||
        EntryOf(to, replicas_, regions_[region]) < replicas_) {
      continue;
    }
    if ((entry == 0) == as_primary) return region;
    if (!other.has_value()) other = region;
  }
  return other;
}

RegionMove MovePlanner::Make(uint32_t region, NodeId from, NodeId to) {
  const RegionMove move{region, from, to, places_[to.value].back()};
  places_[to.value].pop_back();
  std::vector<uint64_t>& left = places_[from.value];
  const uint64_t base = regions_[region].base[EntryOf(from, replicas_, regions_[region])];
  left.insert(std::upper_bound(left.begin(), left.end(), base, std::greater<>()), base);
  if (regions_[region].nodes[0] == from) {
    --primaries_[from.value];
    ++primaries_[to.value];
  }
  --used_[from.value];
  ++used_[to.value];
  ApplyMove(move, replicas_, &regions_[region]);
  return move;
}

}  // namespace onetrip
