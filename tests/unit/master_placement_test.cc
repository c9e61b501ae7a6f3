// Where the regions of a cluster of processes lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/layout/global_addr.h"
#include "master/placement.h"

namespace onetrip {
namespace {

// Replicas on distinct nodes, whole regions within the nodes' bytes, none over another.
void ExpectSound(const std::vector<RegionPlacement>& regions, const std::vector<uint64_t>& bytes,
                 int replicas) {
  std::set<std::pair<uint16_t, uint64_t>> places;
  for (const RegionPlacement& region : regions) {
    std::set<uint16_t> on;
    for (int i = 0; i < replicas; ++i) {
      const uint16_t node = region.nodes[i].value;
      ASSERT_LT(node, bytes.size());
      EXPECT_TRUE(on.insert(node).second);
      EXPECT_EQ(region.base[i] % kRegionBytes, 0U);
      EXPECT_LE(region.base[i] + kRegionBytes, bytes[node]);
      EXPECT_TRUE(places.emplace(node, region.base[i]).second);
    }
  }
}

TEST(MasterPlacementTest, EqualNodesAreFilledAndSharePrimaries) {
  for (uint64_t nodes = 1; nodes <= 9; ++nodes) {
    for (int replicas = 1; replicas <= kMaxReplicas && static_cast<uint64_t>(replicas) <= nodes;
         ++replicas) {
      for (const uint64_t each : {1, 2, 3, 10, 64}) {
        SCOPED_TRACE(testing::Message()
                     << nodes << " nodes, " << replicas << " replicas, " << each);
        const std::vector<uint64_t> bytes(nodes, each * kRegionBytes + 777);
        const std::vector<RegionPlacement> regions = PlaceRegions(bytes, replicas);
        ExpectSound(regions, bytes, replicas);
        EXPECT_EQ(regions.size(), each * nodes / static_cast<uint64_t>(replicas));
        std::vector<uint64_t> primaries(nodes, 0);
        for (const RegionPlacement& region : regions) ++primaries[region.nodes[0].value];
        const auto [least, most] = std::minmax_element(primaries.begin(), primaries.end());
        EXPECT_LE(*most - *least, 2U);
      }
    }
  }
}

TEST(MasterPlacementTest, UnequalNodesAreUsedAsFarAsDistinctReplicasCan) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const uint64_t nodes = 1 + rng.Below(8);
    const int replicas = 1 + static_cast<int>(rng.Below(std::min<uint64_t>(nodes, kMaxReplicas)));
    std::vector<uint64_t> bytes;
    for (uint64_t i = 0; i < nodes; ++i)
      bytes.push_back(rng.Below(40) * kRegionBytes + rng.Below(9));
    const std::vector<RegionPlacement> regions = PlaceRegions(bytes, replicas);
    ExpectSound(regions, bytes, replicas);
    // One region more would not fit, whoever placed it.
    uint64_t places = 0;
    for (const uint64_t one : bytes) places += std::min(one / kRegionBytes, regions.size() + 1);
    EXPECT_LT(places, (regions.size() + 1) * static_cast<uint64_t>(replicas));
  }
}

TEST(MasterPlacementTest, TooFewNodesOrTooSmallOnesHoldNothing) {
  EXPECT_TRUE(PlaceRegions(std::vector<uint64_t>{}, 1).empty());
  EXPECT_TRUE(PlaceRegions(std::vector<uint64_t>(2, 1ULL << 30), 3).empty());
  EXPECT_TRUE(PlaceRegions(std::vector<uint64_t>(3, kRegionBytes - 1), 3).empty());
  EXPECT_TRUE(PlaceRegions(std::vector<uint64_t>{1ULL << 40, 1ULL << 40, 5}, 3).empty());
}

TEST(MasterPlacementTest, PlacementIsAFunctionOfItsArguments) {
  const std::vector<uint64_t> bytes(5, 32 * kRegionBytes);
  const std::vector<RegionPlacement> first = PlaceRegions(bytes, 3);
  const std::vector<RegionPlacement> second = PlaceRegions(bytes, 3);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(first[i].nodes[r], second[i].nodes[r]);
      EXPECT_EQ(first[i].base[r], second[i].base[r]);
    }
  }
}

// The point of consistent hashing: with a sixth node, a replica moves only if it moves there or is
// displaced by the bound. A placement by number would move nearly all.
TEST(MasterPlacementTest, ANodeMoreMovesTheSmallerPartOfTheReplicas) {
  const std::vector<RegionPlacement> five =
      PlaceRegions(std::vector<uint64_t>(5, 96 * kRegionBytes), 3);
  const std::vector<RegionPlacement> six =
      PlaceRegions(std::vector<uint64_t>(6, 96 * kRegionBytes), 3);
  uint64_t kept = 0;
  for (size_t i = 0; i < five.size(); ++i) {
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) kept += five[i].nodes[a] == six[i].nodes[b] ? 1 : 0;
    }
  }
  EXPECT_GT(kept * 3, five.size() * 3 * 2) << kept << " of " << five.size() * 3;
}

TEST(MasterPlacementTest, ALostReplicaGoesToTheEndAndComesBackFromThere) {
  const auto nodes = [](const RegionPlacement& region) {
    return std::vector<int>{region.nodes[0].value, region.nodes[1].value, region.nodes[2].value,
                            region.nodes[3].value, region.nodes[4].value};
  };
  RegionPlacement region{};
  for (uint16_t i = 0; i < 5; ++i) {
    region.nodes[i] = NodeId{i};
    region.base[i] = i * kRegionBytes;
  }
  EXPECT_FALSE(LoseReplica(NodeId{7}, 5, &region));
  EXPECT_TRUE(LoseReplica(NodeId{0}, 5, &region));
  EXPECT_EQ(nodes(region), (std::vector<int>{1, 2, 3, 4, 0}));
  EXPECT_FALSE(LoseReplica(NodeId{0}, 5, &region)) << "it is missing already";
  EXPECT_TRUE(LoseReplica(NodeId{3}, 5, &region));
  EXPECT_EQ(nodes(region), (std::vector<int>{1, 2, 4, 0, 3}));
  EXPECT_EQ(region.missing, 2);
  PutFirstOfMissing(NodeId{3}, 5, &region);
  EXPECT_EQ(nodes(region), (std::vector<int>{1, 2, 4, 3, 0}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(region.base[i], region.nodes[i].value * kRegionBytes);
}

// What is missing on `lost` in each region of a cluster of nodes with `places` places each.
std::vector<RegionPlacement> Without(NodeId lost, int nodes, uint64_t places) {
  std::vector<RegionPlacement> regions =
      PlaceRegions(std::vector<uint64_t>(nodes, places * kRegionBytes), 3);
  for (RegionPlacement& region : regions) LoseReplica(lost, 3, &region);
  return regions;
}

TEST(MasterPlacementTest, ASpareTakesAllThatIsMissing) {
  std::vector<RegionPlacement> regions = Without(NodeId{1}, 3, 8);
  const std::vector<uint64_t> bytes = {8 * kRegionBytes, 0, 8 * kRegionBytes, 9 * kRegionBytes + 5};
  const std::vector<uint32_t> changed = ReplaceNode(NodeId{1}, 3, bytes, &regions);
  EXPECT_EQ(changed.size(), 8U);
  ExpectSound(regions, std::vector<uint64_t>(4, 9 * kRegionBytes), 3);
  for (const RegionPlacement& region : regions) {
    EXPECT_EQ(region.nodes[2], NodeId{3});
    EXPECT_EQ(region.missing, 1) << "nothing is copied yet";
  }
  EXPECT_TRUE(ReplaceNode(NodeId{1}, 3, bytes, &regions).empty()) << "once";
}

TEST(MasterPlacementTest, AReplacementTakesAsMuchAsItHasRoomFor) {
  std::vector<RegionPlacement> regions = Without(NodeId{1}, 3, 8);
  const uint64_t full = 8 * kRegionBytes;
  EXPECT_TRUE(ReplaceNode(NodeId{1}, 3, std::vector<uint64_t>{full, full, full}, &regions).empty());
  EXPECT_EQ(
      ReplaceNode(NodeId{1}, 3, std::vector<uint64_t>{full, 0, full, 3 * kRegionBytes}, &regions)
          .size(),
      3U);
  EXPECT_EQ(ReplaceNode(NodeId{1}, 3,
                        std::vector<uint64_t>{full, 0, full, 3 * kRegionBytes, 64 * kRegionBytes},
                        &regions)
                .size(),
            5U);
  ExpectSound(regions, std::vector<uint64_t>(5, 64 * kRegionBytes), 3);
}

// Buffers lie on their registers' nodes.
TEST(MasterPlacementTest, RegionsThatWereTogetherStayTogether) {
  std::vector<RegionPlacement> regions = Without(NodeId{2}, 6, 30);
  const auto nodes_of = [](const RegionPlacement& region) {
    return std::set<uint16_t>{region.nodes[0].value, region.nodes[1].value, region.nodes[2].value};
  };
  std::map<std::set<uint16_t>, std::set<std::set<uint16_t>>> became;
  const std::vector<RegionPlacement> before = regions;
  // Room on all that live, and on a spare.
  const std::vector<uint64_t> bytes(7, 90 * kRegionBytes);
  ReplaceNode(NodeId{2}, 3, bytes, &regions);
  ExpectSound(regions, bytes, 3);
  uint64_t replaced = 0;
  for (size_t i = 0; i < regions.size(); ++i) {
    became[nodes_of(before[i])].insert(nodes_of(regions[i]));
    EXPECT_FALSE(nodes_of(regions[i]).contains(2));
    if (before[i].missing != 0) {
      ++replaced;
    } else {
      EXPECT_EQ(regions[i], before[i]) << "nothing else moves";
    }
  }
  EXPECT_GT(replaced, 20U);
  for (const auto& [from, to] : became) EXPECT_EQ(to.size(), 1U);
}

// The map that PlaceRegions makes for nodes of `regions` regions each.
std::vector<RegionPlacement> Placed(uint64_t nodes, uint64_t regions) {
  return PlaceRegions(std::vector<uint64_t>(nodes, regions * kRegionBytes), 3);
}

std::vector<uint64_t> Used(const std::vector<RegionPlacement>& regions, size_t nodes) {
  std::vector<uint64_t> used(nodes, 0);
  for (const RegionPlacement& region : regions) {
    for (int i = 0; i < 3; ++i) ++used.at(region.nodes[i].value);
  }
  return used;
}

// Makes all moves that there are; returns how many.
uint64_t MoveAll(const std::vector<MovePart>& parts, std::vector<RegionPlacement>* regions) {
  MovePlanner planner(parts, 3, *regions);
  uint64_t moves = 0;
  while (const std::optional<RegionMove> move = planner.Next()) {
    ApplyMove(*move, 3, &(*regions)[move->region]);
    ++moves;
  }
  return moves;
}

TEST(MasterPlacementTest, ANodeThatDrainsGivesEachRegionOnce) {
  std::vector<RegionPlacement> regions = Placed(5, 24);
  const std::vector<uint64_t> before = Used(regions, 5);
  std::vector<MovePart> parts(5, {48 * kRegionBytes, false, true, false});
  parts[2] = {48 * kRegionBytes, true, false, false};
  EXPECT_EQ(MoveAll(parts, &regions), before[2]);
  ExpectSound(regions, std::vector<uint64_t>(5, 48 * kRegionBytes), 3);
  const std::vector<uint64_t> used = Used(regions, 5);
  EXPECT_EQ(used[2], 0U);
  for (const uint64_t node : {0, 1, 3, 4}) EXPECT_NEAR(used[node], 30, 1) << node;
}

TEST(MasterPlacementTest, WhatHasNoRoomStaysWhereItIs) {
  std::vector<RegionPlacement> regions = Placed(4, 12);
  std::vector<MovePart> parts(4, {14 * kRegionBytes, false, true, false});
  parts[1] = {14 * kRegionBytes, true, false, false};
  const uint64_t held = Used(regions, 4)[1];
  MovePlanner planner(parts, 3, regions);
  uint64_t moves = 0;
  while (planner.Next().has_value()) ++moves;
  EXPECT_EQ(moves, 6U);
  EXPECT_EQ(planner.left_on_draining(), held - 6);
}

TEST(MasterPlacementTest, SharesAreByTheBytesThatNodesOffer) {
  std::vector<RegionPlacement> regions = Placed(3, 30);
  std::vector<MovePart> parts(3, {30 * kRegionBytes, false, true, false});
  parts.push_back({60 * kRegionBytes, false, true, true});
  MoveAll(parts, &regions);
  ExpectSound(regions, {30 * kRegionBytes, 30 * kRegionBytes, 30 * kRegionBytes, 60 * kRegionBytes},
              3);
  // Every region once at most: 30 of 30, rather than 36 of 60.
  const std::vector<uint64_t> used = Used(regions, 4);
  EXPECT_EQ(used[3], 30U);
  for (const uint64_t node : {0, 1, 2}) EXPECT_EQ(used[node], 20U) << node;
  uint64_t primaries = 0;
  for (const RegionPlacement& region : regions) primaries += region.nodes[0] == NodeId{3} ? 1 : 0;
  EXPECT_NEAR(primaries, 10, 1);
  EXPECT_EQ(MoveAll(parts, &regions), 0U) << "fair is fair";
}

TEST(MasterPlacementTest, TwoNodesThatShareAreFilledAlike) {
  std::vector<RegionPlacement> regions = Placed(3, 25);
  std::vector<MovePart> parts(5, {25 * kRegionBytes, false, true, false});
  parts[3].shares = parts[4].shares = true;
  MoveAll(parts, &regions);
  for (const uint64_t used : Used(regions, 5)) EXPECT_NEAR(used, 15, 1);
}

}  // namespace
}  // namespace onetrip
