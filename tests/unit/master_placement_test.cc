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
    // One region more would not fit, wherever it was placed.
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

// Replicas that are missing on `lost`, in each region of a cluster of nodes with `places` places
// each.
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

// Node 1 alone has room, and a replica of all that node 0 has to give.
TEST(MasterPlacementTest, ANodeWithoutRoomMakesWayForWhatLiesOnTheOneThatHasIt) {
  std::vector<RegionPlacement> regions = {
      {{NodeId{0}, NodeId{1}, NodeId{2}}, {0, 0, 0}},
      {{NodeId{3}, NodeId{4}, NodeId{2}}, {0, 0, kRegionBytes}},
  };
  const std::vector<uint64_t> bytes = {kRegionBytes, 2 * kRegionBytes, 2 * kRegionBytes,
                                       kRegionBytes, kRegionBytes};
  std::vector<MovePart> parts;
  for (const uint64_t one : bytes) parts.push_back({one, false, true, false});
  parts[0] = {bytes[0], true, false, false};
  MovePlanner planner(parts, 3, regions);
  while (planner.Next().has_value()) continue;
  EXPECT_EQ(planner.left_on_draining(), 0U);
  EXPECT_EQ(MoveAll(parts, &regions), 2U);
  ExpectSound(regions, bytes, 3);
  EXPECT_EQ(Used(regions, 5)[0], 0U);
}

// Moves and adds all that there is to; returns how many have moved.
uint64_t GrowAll(const std::vector<MovePart>& parts, int replicas, size_t at_once,
                 std::vector<RegionPlacement>* regions) {
  uint64_t moves = 0;
  while (true) {
    // Anew each time, as the master does.
    MovePlanner planner(parts, replicas, *regions);
    const uint64_t to_come = planner.regions_to_come();
    const std::vector<RegionPlacement> grown = planner.Grow(at_once);
    EXPECT_LE(grown.size(), at_once);
    if (!grown.empty()) {
      EXPECT_EQ(planner.regions_to_come() + grown.size(), to_come);
      regions->insert(regions->end(), grown.begin(), grown.end());
      continue;
    }
    const std::optional<RegionMove> move = planner.Next();
    if (!move.has_value()) return moves;
    ApplyMove(*move, replicas, &(*regions)[move->region]);
    ++moves;
  }
}

std::vector<uint64_t> BytesOf(const std::vector<MovePart>& parts) {
  std::vector<uint64_t> bytes;
  bytes.reserve(parts.size());
  for (const MovePart& part : parts) bytes.push_back(part.bytes);
  return bytes;
}

TEST(MasterPlacementTest, TwoEmptyNodesBesideThreeFullOnesMakeRoomForHalfAsMuchMore) {
  std::vector<RegionPlacement> regions = Placed(3, 4);
  const std::vector<RegionPlacement> before = regions;
  std::vector<MovePart> parts(5, {4 * kRegionBytes, false, true, false});
  parts[3].shares = parts[4].shares = true;
  MovePlanner planner(parts, 3, regions);
  EXPECT_EQ(planner.regions_to_come(), 2U);
  EXPECT_TRUE(planner.Grow(9).empty()) << "there is room on two nodes only";
  // One place more on a third node for each of the two, and nothing beyond that.
  EXPECT_EQ(GrowAll(parts, 3, 9, &regions), 2U);
  ExpectSound(regions, BytesOf(parts), 3);
  ASSERT_EQ(regions.size(), 6U);
  const std::vector<uint64_t> used = Used(regions, 5);
  for (const uint64_t one : used) EXPECT_GE(one, 3U);
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += regions[i] == before[i] ? 0 : 1;
  EXPECT_EQ(changed, 2U);
  std::vector<uint64_t> primaries(5, 0);
  for (const RegionPlacement& region : regions) ++primaries[region.nodes[0].value];
  for (const uint64_t one : primaries) EXPECT_GE(one, 1U);
  EXPECT_EQ(GrowAll(parts, 3, 9, &regions), 0U) << "enough is enough";
}

TEST(MasterPlacementTest, AsManyEmptyNodesAsReplicasNeedNoMove) {
  std::vector<RegionPlacement> regions = Placed(3, 10);
  const std::vector<RegionPlacement> before = regions;
  std::vector<MovePart> parts(6, {10 * kRegionBytes, false, true, false});
  for (size_t node = 3; node < 6; ++node) parts[node].shares = true;
  EXPECT_EQ(GrowAll(parts, 3, 4, &regions), 0U);
  ASSERT_EQ(regions.size(), 20U);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), regions.begin()));
  ExpectSound(regions, BytesOf(parts), 3);
}

TEST(MasterPlacementTest, AnyNodesThatJoinAreUsedAsFarAsDistinctReplicasCanWithFewestMoves) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const int replicas = 1 + static_cast<int>(rng.Below(kMaxReplicas));
    const uint64_t founders = static_cast<uint64_t>(replicas) + rng.Below(4);
    const auto any_bytes = [&rng] {
      return (1 + rng.Below(rng.Below(3) == 0 ? 30 : 6)) * kRegionBytes + rng.Below(2) * 777;
    };
    std::vector<MovePart> parts;
    for (uint64_t node = 0; node < founders; ++node) {
      parts.push_back({any_bytes(), false, true, rng.Below(4) == 0});
    }
    std::vector<RegionPlacement> regions = PlaceRegions(BytesOf(parts), replicas);
    // The one region of a node that does not share would have to stay.
    for (uint16_t node = 0; node < static_cast<uint16_t>(founders); ++node) {
      const auto held = std::count_if(regions.begin(), regions.end(), [&](const auto& region) {
        const auto end = region.nodes.begin() + replicas;
        return std::find(region.nodes.begin(), end, NodeId{node}) != end;
      });
      if (held == 1) parts[node].shares = true;
    }
    // Some of the founders get more memory, too, with a later process.
    if (rng.Below(3) == 0) parts[0].bytes += any_bytes();
    for (uint64_t node = rng.Below(5); node > 0; --node) {
      parts.push_back({any_bytes(), false, true, true});
    }
    const std::vector<uint64_t> bytes = BytesOf(parts);
    const bool shares =
        std::any_of(parts.begin(), parts.end(), [](const MovePart& part) { return part.shares; });
    // Those that hold nothing and are not asked for are no part of it.
    std::vector<uint64_t> usable = bytes;
    for (size_t node = 0; node < parts.size(); ++node) {
      const auto is_there = [&](const RegionPlacement& region) {
        const auto end = region.nodes.begin() + replicas;
        return std::find(region.nodes.begin(), end, NodeId{static_cast<uint16_t>(node)}) != end;
      };
      if (!parts[node].shares && std::none_of(regions.begin(), regions.end(), is_there)) {
        usable[node] = 0;
      }
    }
    const size_t most = shares ? PlaceRegions(usable, replicas).size() : regions.size();
    // How many places are lacking, which is how many moves it takes.
    const uint64_t more = most - regions.size();
    uint64_t places = 0;
    std::vector<uint64_t> used(parts.size(), 0);
    for (const RegionPlacement& region : regions) {
      for (int i = 0; i < replicas; ++i) ++used[region.nodes[i].value];
    }
    for (size_t node = 0; node < parts.size(); ++node) {
      places += std::min(usable[node] / kRegionBytes - std::min(used[node], usable[node]), more);
    }
    const uint64_t wanted = more * static_cast<uint64_t>(replicas);
    const uint64_t lacking = wanted - std::min(places, wanted);
    uint64_t moves = 0;
    while (regions.size() < most) {
      MovePlanner planner(parts, replicas, regions);
      const std::vector<RegionPlacement> grown = planner.Grow(1 + rng.Below(5));
      regions.insert(regions.end(), grown.begin(), grown.end());
      if (!grown.empty()) continue;
      const std::optional<RegionMove> move = planner.Next();
      ASSERT_TRUE(move.has_value()) << regions.size() << " of " << most;
      ApplyMove(*move, replicas, &regions[move->region]);
      ++moves;
    }
    EXPECT_EQ(moves, lacking);
    GrowAll(parts, replicas, 9, &regions);
    EXPECT_EQ(regions.size(), most);
    ExpectSound(regions, bytes, replicas);
  }
}

TEST(MasterPlacementTest, NothingIsAddedWhereNobodyAskedOrSomethingDrains) {
  std::vector<RegionPlacement> regions = Placed(3, 4);
  std::vector<MovePart> parts(6, {8 * kRegionBytes, false, true, false});
  EXPECT_EQ(MovePlanner(parts, 3, regions).regions_to_come(), 0U) << "nobody asked";
  EXPECT_TRUE(MovePlanner(parts, 3, regions).Grow(9).empty());
  parts[3].shares = true;
  EXPECT_EQ(MovePlanner(parts, 3, regions).regions_to_come(), 6U) << "spares are left alone";
  parts[1].drains = true;
  parts[1].takes = false;
  MovePlanner planner(parts, 3, regions);
  EXPECT_EQ(planner.regions_to_come(), 0U);
  for (int move = 0; move < 4; ++move) {
    EXPECT_TRUE(planner.Grow(9).empty());
    const std::optional<RegionMove> next = planner.Next();
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->from, NodeId{1});
  }
  EXPECT_EQ(planner.left_on_draining(), 0U);
  EXPECT_GT(planner.regions_to_come(), 0U) << "what drains has none left";
  // A node that holds some and may not be given any keeps the rest from growing.
  parts[1].drains = false;
  EXPECT_EQ(MovePlanner(parts, 3, regions).regions_to_come(), 0U);
}

TEST(MasterPlacementTest, WhatNoRegionCanLieInIsUnusable) {
  const std::vector<uint64_t> bytes{4 * kRegionBytes, 4 * kRegionBytes, 9 * kRegionBytes + 5};
  EXPECT_EQ(UnusableBytes(bytes, std::vector<uint32_t>{4, 4, 4}, 4, 3),
            (std::vector<uint64_t>{0, 0, 5 * kRegionBytes + 5}));
  // There may be more: what they would hold is not unusable.
  EXPECT_EQ(UnusableBytes(bytes, std::vector<uint32_t>{1, 1, 1}, 1, 3),
            (std::vector<uint64_t>{0, 0, 5 * kRegionBytes + 5}));
  // One of sixteen places is left when there are five regions.
  EXPECT_EQ(UnusableBytes(std::vector<uint64_t>(4, 4 * kRegionBytes),
                          std::vector<uint32_t>{4, 4, 4, 3}, 5, 3),
            (std::vector<uint64_t>{0, 0, 0, kRegionBytes}));
  EXPECT_EQ(
      UnusableBytes(std::vector<uint64_t>(2, 4 * kRegionBytes), std::vector<uint32_t>{0, 0}, 0, 3),
      (std::vector<uint64_t>(2, 4 * kRegionBytes)));
}

TEST(MasterPlacementTest, SharesAreByTheBytesThatNodesOffer) {
  std::vector<RegionPlacement> regions = Placed(3, 30);
  std::vector<MovePart> parts(3, {30 * kRegionBytes, false, true, false});
  parts.push_back({60 * kRegionBytes, false, true, true});
  EXPECT_EQ(GrowAll(parts, 3, 9, &regions), 30U);
  ExpectSound(regions, BytesOf(parts), 3);
  // Every region once at most: 45 of 60.
  EXPECT_EQ(regions.size(), 45U);
  const std::vector<uint64_t> used = Used(regions, 4);
  EXPECT_EQ(used[3], 45U);
  for (const uint64_t node : {0, 1, 2}) EXPECT_EQ(used[node], 30U) << node;
  std::vector<uint64_t> primaries(4, 0);
  for (const RegionPlacement& region : regions) ++primaries[region.nodes[0].value];
  EXPECT_NEAR(primaries[3], 15, 1);
  for (const uint64_t node : {0, 1, 2}) EXPECT_NEAR(primaries[node], 10, 1) << node;
}

TEST(MasterPlacementTest, WhereNoRegionCanBeAddedANodeThatSharesIsAsFullAsTheOthers) {
  // Twelve places of 20, and two more: none of them makes a region more.
  std::vector<RegionPlacement> regions = PlaceRegions(
      std::vector<uint64_t>{20 * kRegionBytes, 20 * kRegionBytes, 20 * kRegionBytes}, 3);
  std::vector<MovePart> parts(3, {20 * kRegionBytes, false, true, false});
  parts.push_back({2 * kRegionBytes, false, true, true});
  EXPECT_EQ(GrowAll(parts, 3, 9, &regions), 1U);
  EXPECT_EQ(regions.size(), 20U);
  EXPECT_EQ(Used(regions, 4)[3], 1U);
}

}  // namespace
}  // namespace onetrip
