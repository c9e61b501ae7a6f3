// Placement: which memory nodes hold which region. Pure and deterministic.
//
// Consistent hashing with bounded load: every region ranks the nodes by a hash of its own (highest
// random weight) and takes the first that have room, so that a node more moves few regions. All the
// memory that r distinct nodes per region can use is used.
#ifndef ONETRIP_MASTER_PLACEMENT_H_
#define ONETRIP_MASTER_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <set>
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

// How a memory node takes part when regions move from living nodes to others.
struct MovePart {
  uint64_t bytes = 0;   // that it offers
  bool drains = false;  // gives all that it has
  bool takes = false;   // may be given what others have to give
  bool shares = false;  // is to have its share of what there is: takes, too
};

// One replica goes from `from` to the place at `base` on `to`.
struct RegionMove {
  uint32_t region = 0;
  NodeId from;
  NodeId to;
  uint64_t base = 0;
};

// Which regions move and which are added, one after the other, until nodes that drain have none,
// and the room of nodes that share is used: first regions leave nodes that drain, for nodes that
// are least full, or have made room for that by a move to one that has it. Then as many regions are
// added as the nodes that hold some or share have room for, and only those move that keep room from
// lying on enough distinct nodes. In the end regions move from the fullest nodes to those that
// share. What is missing anywhere stays where it is.
//
// No region is added while a node that drains has one: what is left needs the room. The last region
// of a node that does not share stays, so that the node keeps its part.
class MovePlanner {
 public:
  // `nodes` by id, all that hold a region among them.
  MovePlanner(std::span<const MovePart> nodes, int replicas, std::vector<RegionPlacement> regions);

  // The next move, which counts as made afterwards; nothing: none is left, or there is no room.
  // After Grow() only: it moves nothing for what there is room for as it is.
  std::optional<RegionMove> Next();

  // Regions that there is room for as it is, `most` at most: their numbers follow those that there
  // are. They count as added afterwards, and make no move necessary that was not before.
  std::vector<RegionPlacement> Grow(size_t most);

  // How many regions Grow() gives in all, between the moves of Next().
  [[nodiscard]] uint64_t regions_to_come() const;

  // How many live replicas are on nodes that drain, after what Next() has made of it.
  [[nodiscard]] uint64_t left_on_draining() const;

 private:
  std::optional<RegionMove> Drain();
  std::optional<RegionMove> MakeWay();
  std::optional<RegionMove> MakeRoom();
  std::optional<RegionMove> Share();
  // True if the node's room is for regions that are added.
  [[nodiscard]] bool HasPart(size_t node) const {
    return nodes_[node].takes && !nodes_[node].drains && (used_[node] != 0 || nodes_[node].shares);
  }
  RegionPlacement Place(uint32_t region, std::span<const uint16_t> nodes);
  // Where the region's entry of `from` would go.
  [[nodiscard]] std::optional<NodeId> TargetFor(uint32_t region) const;
  // A region that `from` can give to `to`.
  [[nodiscard]] std::optional<uint32_t> RegionFor(NodeId from, NodeId to) const;
  RegionMove Make(uint32_t region, NodeId from, NodeId to);
  // True if `a` would be less full with one region more than `b` is.
  [[nodiscard]] bool LessFull(uint64_t a, uint64_t b) const;

  const std::vector<MovePart> nodes_;
  const int replicas_;
  std::vector<RegionPlacement> regions_;
  std::vector<uint64_t> used_;                 // by node: places, those of missing replicas counted
  std::vector<uint64_t> primaries_;            // by node
  std::vector<std::vector<uint64_t>> places_;  // by node: that are free, the lowest last
  uint32_t drained_ = 0;                       // regions below have nothing to be drained
};

// By node: the bytes that it offers in which no region can lie however regions are placed, because
// a node holds a region once and the others have no room for its other replicas; with what is less
// than a region. When there are as many `regions` as can be, all bytes that hold none: `held` are
// each node's replicas.
std::vector<uint64_t> UnusableBytes(std::span<const uint64_t> node_bytes,
                                    std::span<const uint32_t> held, size_t regions, int replicas);

// Puts the replica that `move` names where it says, in the same position. REQUIRES: there is one.
void ApplyMove(const RegionMove& move, int replicas, RegionPlacement* region);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_PLACEMENT_H_
