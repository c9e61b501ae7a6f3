// Rules for the replicas in every view that a master makes, over its restarts, too.
#ifndef ONETRIP_TESTS_UNIT_MASTER_VIEW_CHECKS_H_
#define ONETRIP_TESTS_UNIT_MASTER_VIEW_CHECKS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "client_core/cluster/view.h"

namespace onetrip {

// Returns true if an agent under `view` asks the node anything.
inline bool IsAsked(const View& view, int node) {
  return node < view.node_count && !view.IsOut(NodeId{static_cast<uint16_t>(node)});
}

// The place of a node whose memory is damaged.
inline void ExpectNotCountedOn(const View& view, NodeId node) {
  for (const RegionPlacement& region : view.regions) {
    for (int i = 0; i < view.replicas - region.missing; ++i) EXPECT_NE(region.nodes[i], node);
  }
}

class ReplicaModel {
 public:
  // A view that no member has seen before; `out` are the nodes that went out since `before`.
  // Returns how many replicas live again. Fails the test when a region has lost its majority, or
  // one lives that is out, or has been and was not copied.
  size_t OnView(const View& view, const View& before, const std::set<int>& out) {
    for (size_t region = 0; region < before.regions.size() && !out.empty(); ++region) {
      for (int i = 0; i < view.replicas - before.regions[region].missing; ++i) {
        const uint16_t node = before.regions[region].nodes[i].value;
        if (out.contains(node)) stale_.insert({region, node});
      }
    }
    if (!out.empty()) out_epoch_ = view.epoch.value;
    for (size_t region = 0; region < before.regions.size(); ++region) {
      const std::set<uint16_t> then = NodesOf(before, region);
      for (const uint16_t node : NodesOf(view, region)) {
        if (!then.contains(node)) replaced_ += stale_.insert({region, node}).second ? 1 : 0;
      }
    }
    std::set<std::pair<uint16_t, uint64_t>> places;
    size_t again = 0;
    for (size_t region = 0; region < view.regions.size(); ++region) {
      const RegionPlacement& placement = view.regions[region];
      EXPECT_EQ(NodesOf(view, region).size(), static_cast<size_t>(view.replicas));
      for (int i = 0; i < view.replicas; ++i) {
        EXPECT_TRUE(places.emplace(placement.nodes[i].value, placement.base[i]).second)
            << "two regions in one place";
      }
      EXPECT_GT(2 * (view.replicas - placement.missing), view.replicas) << "no majority lives";
      for (int i = 0; i < view.replicas - placement.missing; ++i) {
        const Replica replica = {region, placement.nodes[i].value};
        EXPECT_FALSE(view.IsOut(placement.nodes[i])) << "a live replica on a node that is out";
        if (!stale_.contains(replica)) continue;
        EXPECT_TRUE(copied_ == replica && copied_epoch_ == view.epoch.value)
            << "a replica counts that was not copied: region " << region << ", node "
            << replica.second;
        stale_.erase(replica);
        ++again;
      }
    }
    return again;
  }

  void OnCopied(const View& order, uint32_t region) {
    const RegionPlacement& placement = order.regions[region];
    copied_ = {region, placement.nodes[order.replicas - placement.missing].value};
    copied_epoch_ = order.epoch.value;
  }
  void OnResolved(const View& order) { resolved_epoch_ = order.epoch.value; }
  void OnScrubbed(const View& order) { scrubbed_epoch_ = order.epoch.value; }
  // Returns true if slots may be as a node has left them that is out.
  [[nodiscard]] bool MustResolve() const { return resolved_epoch_ <= out_epoch_; }
  // Returns true if a register's largest word may be on one live replica only.
  [[nodiscard]] bool MustScrub() const { return scrubbed_epoch_ < out_epoch_; }
  // Replicas that were given to another node.
  [[nodiscard]] uint64_t replaced() const { return replaced_; }

 private:
  static std::set<uint16_t> NodesOf(const View& view, size_t region) {
    std::set<uint16_t> nodes;
    for (int i = 0; i < view.replicas; ++i) nodes.insert(view.regions[region].nodes[i].value);
    return nodes;
  }
  using Replica = std::pair<size_t, uint16_t>;  // region, node

  std::set<Replica> stale_;
  Replica copied_;
  uint64_t copied_epoch_ = 0;
  uint64_t resolved_epoch_ = 1;
  uint64_t scrubbed_epoch_ = 0;
  uint64_t out_epoch_ = 0;
  uint64_t replaced_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_VIEW_CHECKS_H_
