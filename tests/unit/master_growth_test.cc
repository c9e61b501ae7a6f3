// Regions that are added when memory nodes join.
#include <algorithm>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

// Memory nodes 0 to 2 with four regions, which fill them.
class MasterGrowthTest : public MasterRepairTest {
 protected:
  MasterGrowthTest() { tool = bench.Attend(MemberKind::kOther); }
  // Nodes that join and are to be used, numbered from 3 on.
  void Add(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto node = static_cast<uint16_t>(3 + spares.size());
      spares.push_back(bench.JoinNode(uint64_t{200} + node));
      bench.Ask(spares.back(), MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
    }
    for (size_t i = 0; i < count; ++i) {
      const auto node = static_cast<uint32_t>(3 + spares.size() - count + i);
      bench.Ask(tool, MoveRegionsRequest{node, NodeWish::kShare});
    }
  }
  void Pass(uint64_t ms) {
    Streams who = Everybody();
    who.insert(who.end(), spares.begin(), spares.end());
    std::erase(who, StreamId{0});
    bench.Pass(ms, who);
  }
  // False: no agent is asked to quiesce.
  bool AwaitHold() {
    for (int waits = 0; waits < 20 && HoldOf(a) == nullptr; ++waits) {
      TakeOver();
      Pass(100);
    }
    return HoldOf(a) != nullptr;
  }
  // All are quiesced, and `a` is asked for something.
  RepairOrder AwaitOrder() {
    EXPECT_TRUE(AwaitHold());
    EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll);
    AllHold();
    const RepairMessage* const repair = RepairOf(a);
    EXPECT_NE(repair, nullptr);
    return repair == nullptr ? RepairOrder() : repair->order;
  }
  void ExpectSound() const {
    std::set<std::pair<uint16_t, uint64_t>> places;
    for (const RegionPlacement& region : view().regions) {
      EXPECT_EQ(region.missing, 0);
      std::set<uint16_t> on;
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(on.insert(region.nodes[i].value).second);
        EXPECT_TRUE(places.emplace(region.nodes[i].value, region.base[i]).second);
        EXPECT_FALSE(view().IsOut(region.nodes[i]));
      }
    }
    EXPECT_EQ(bench.disk.regions, view().regions);
  }
  // Moves and growth until there is nothing more to be done; what was ordered.
  std::vector<RepairKind> Finish() {
    std::vector<RepairKind> orders;
    while (AwaitHold()) {
      AllHold();
      TakeOver();
      const RepairMessage* const repair = RepairOf(a);
      if (repair == nullptr) continue;
      orders.push_back(repair->order.kind);
      Answer(a, repair->order.kind);
      TakeOver();
    }
    return orders;
  }

  Streams spares;
  StreamId tool = 0;
};

TEST_F(MasterGrowthTest, NodesThatCanHoldAllReplicasAddRegionsAndNothingMoves) {
  const std::vector<RegionPlacement> before = view().regions;
  Add(3);
  EXPECT_EQ(StateOf(3), "filling");
  EXPECT_NE(Status().moving.find("4 regions are to be added"), std::string::npos)
      << Status().moving;
  const RepairOrder order = AwaitOrder();
  EXPECT_EQ(order.kind, RepairKind::kFormatRegions);
  EXPECT_EQ(order.region, 4U) << "the first of those that are added";
  ASSERT_EQ(order.view->regions.size(), 8U);
  EXPECT_GT(order.view->epoch, view().epoch);
  EXPECT_EQ(view().regions, before) << "not before they are made";
  EXPECT_EQ(bench.disk.regions.size(), 4U);
  Answer(a, RepairKind::kFormatRegions);
  ASSERT_EQ(view().regions, order.view->regions);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), view().regions.begin()));
  ExpectSound();
  EXPECT_TRUE(std::any_of(bench.log.begin(), bench.log.end(), [](const std::string& line) {
    return line == "the capacity has grown by 4 regions to 8, 128 MiB";
  }));
  EXPECT_FALSE(view().records_only) << "no key need be a record for that";
  TakeOver();
  EXPECT_TRUE(Finish().empty());
  EXPECT_EQ(StateOf(3), "up");
  EXPECT_EQ(Status().moving, "");
  for (const NodeRecord& node : bench.disk.nodes) EXPECT_EQ(node.wish, NodeWish::kNone);
  EXPECT_EQ(Status().status.regions, 8U);
}

TEST_F(MasterGrowthTest, WhatIsInTheWayMovesFirstAndNothingElse) {
  const std::vector<RegionPlacement> before = view().regions;
  Add(2);
  const std::vector<RepairKind> orders = Finish();
  EXPECT_EQ(std::count(orders.begin(), orders.end(), RepairKind::kMoveRegion), 2);
  EXPECT_EQ(std::count(orders.begin(), orders.end(), RepairKind::kFormatRegions), 2);
  ASSERT_EQ(view().regions.size(), 6U);
  ExpectSound();
  size_t moved = 0;
  for (size_t i = 0; i < before.size(); ++i) moved += view().regions[i] == before[i] ? 0 : 1;
  EXPECT_EQ(moved, 2U);
  EXPECT_FALSE(view().records_only);
  uint64_t unusable = 0;
  for (const MemberStatusInfo& one : Status().status.members) unusable += one.unusable_bytes;
  EXPECT_EQ(unusable, 2 * kRegionBytes) << "two of twenty places";
}

TEST_F(MasterGrowthTest, WhatIsNotMadeIsNotThereAndIsTriedAgain) {
  Add(3);
  (void)AwaitOrder();
  Answer(a, RepairKind::kFormatRegions, /*done=*/false);
  EXPECT_EQ(view().regions.size(), 4U);
  EXPECT_EQ(bench.disk.regions.size(), 4U);
  EXPECT_EQ(HoldOf(a), nullptr) << "nobody is held meanwhile";
  TakeOver();
  ASSERT_TRUE(AwaitHold());
  AllHold();
  Answer(b, RepairKind::kFormatRegions);
  EXPECT_EQ(view().regions.size(), 8U);
  ExpectSound();
}

TEST_F(MasterGrowthTest, ANodeThatDiesMeanwhileAddsNothing) {
  Add(3);
  (void)AwaitOrder();
  bench.Break(spares[1]);
  spares[1] = 0;
  Answer(a, RepairKind::kFormatRegions);
  EXPECT_EQ(view().regions.size(), 4U);
  TakeOver();
  Finish();
  // Two of the three are left: as if they had come alone.
  EXPECT_EQ(view().regions.size(), 6U);
  ExpectSound();
}

TEST_F(MasterGrowthTest, AnAgentThatDiesMeanwhileIsFencedBeforeAnotherMakesThem) {
  Add(3);
  (void)AwaitOrder();
  bench.Break(a);
  EXPECT_EQ(RepairOf(b), nullptr);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  EXPECT_EQ(RepairOf(b), nullptr) << "not before all have fenced it";
  for (const StreamId node : spares) bench.ConfirmFence(node);
  ASSERT_NE(RepairOf(b), nullptr);
  EXPECT_EQ(RepairOf(b)->order.kind, RepairKind::kFormatRegions);
  Answer(b, RepairKind::kFormatRegions);
  EXPECT_EQ(view().regions.size(), 8U);
  ExpectSound();
}

TEST_F(MasterGrowthTest, ARestartedMasterKnowsWhatWasAddedAndAddsTheRest) {
  Add(3);
  (void)AwaitOrder();
  bench.Start();
  EXPECT_EQ(view().regions.size(), 4U) << "what was about to be made is not";
  EXPECT_NE(Status().moving.find("is given its share"), std::string::npos);
}

TEST_F(MasterGrowthTest, ARestartedMasterAwaitsWhoIsToBeGivenRegions) {
  Add(1);
  ASSERT_TRUE(AwaitHold());
  bench.Start();
  for (uint16_t node = 0; node < 3; ++node) {
    nodes[node] = bench.JoinNode(100U + node);
    bench.Ask(nodes[node], MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  const StreamId back = bench.Attend(MemberKind::kAgent, member[a]);
  b = bench.Attend(MemberKind::kAgent, member[b]);
  a = back;
  spares[0] = 0;
  TakeOver();
  Pass(100);
  TakeOver();
  EXPECT_EQ(bench.disk.nodes[3].wish, NodeWish::kShare);
  spares[0] = bench.JoinNode(203);
  bench.Ask(spares[0], MasterBench::Serve(7003));
  TakeOver();
  Answer(a, RepairKind::kTakeOverBlocks);
  Finish();
  EXPECT_EQ(view().regions.size(), 5U);
  ExpectSound();
}

TEST_F(MasterGrowthTest, ANodeThatIsToBeGivenRegionsIsNotAwaitedForEver) {
  Add(1);
  ASSERT_TRUE(AwaitHold());
  bench.Break(spares[0]);
  spares[0] = 0;
  Finish();
  Pass(5000);
  TakeOver();
  EXPECT_EQ(bench.disk.nodes[3].wish, NodeWish::kNone);
  EXPECT_EQ(view().regions.size(), 4U);
}

TEST_F(MasterGrowthTest, ARestartedMasterKeepsWhatWasAdded) {
  Add(3);
  (void)AwaitOrder();
  Answer(a, RepairKind::kFormatRegions);
  const std::vector<RegionPlacement> regions = view().regions;
  bench.Start();
  EXPECT_EQ(view().regions, regions);
  EXPECT_EQ(regions.size(), 8U);
}

TEST_F(MasterGrowthTest, NothingIsAddedOnANodeThatAnAgentDoesNotReach) {
  bench.reaches_nodes = false;
  Add(3);
  EXPECT_FALSE(AwaitHold());
  EXPECT_EQ(view().regions.size(), 4U);
  const auto say = [this](StreamId agent) {
    for (const MasterMessage& message : std::deque<MasterMessage>(bench.inbox[agent])) {
      const auto* const reach = std::get_if<ReachMessage>(&message);
      if (reach != nullptr) bench.Say(agent, ReachedMessage{reach->id});
    }
  };
  say(a);
  EXPECT_FALSE(AwaitHold());
  EXPECT_NE(Status().moving.find("does not reach memory node"), std::string::npos)
      << Status().moving;
  say(b);
  EXPECT_EQ(AwaitOrder().kind, RepairKind::kFormatRegions);
}

TEST_F(MasterGrowthTest, SparesThatNobodyAskedForStaySpares) {
  Add(1);
  spares.push_back(bench.JoinNode(300));
  bench.Ask(spares.back(), MasterBench::Serve(7009));
  Finish();
  EXPECT_EQ(view().regions.size(), 5U) << "sixteen places";
  EXPECT_EQ(StateOf(4), "spare");
  ExpectSound();
}

TEST_F(MasterGrowthTest, ANodeThatHoldsRegionsMayBeNamedToo) {
  // Without a wish nothing is added, though there is room: some may want it for what is lost.
  Add(3);
  for (const uint32_t node : {3, 4, 5}) {
    bench.Ask(tool, MoveRegionsRequest{node, NodeWish::kNone});
  }
  Finish();
  EXPECT_EQ(view().regions.size(), 4U);
  bench.Ask(tool, MoveRegionsRequest{3, NodeWish::kShare});
  Finish();
  EXPECT_EQ(view().regions.size(), 5U);
  bench.Ask(tool, MoveRegionsRequest{4, NodeWish::kShare});
  bench.Ask(tool, MoveRegionsRequest{0, NodeWish::kShare});
  Finish();
  EXPECT_EQ(view().regions.size(), 6U);
  ExpectSound();
}

TEST_F(MasterGrowthTest, WhileANodeDrainsNothingIsAdded) {
  spares.push_back(bench.JoinNode(203));
  bench.Ask(spares.back(), MasterBench::Serve(7003));
  spares.push_back(bench.JoinNode(204));
  bench.Ask(spares.back(), MasterBench::Serve(7004));
  bench.Ask(tool, MoveRegionsRequest{1, NodeWish::kDrain});
  bench.Ask(tool, MoveRegionsRequest{3, NodeWish::kShare});
  bench.Ask(tool, MoveRegionsRequest{4, NodeWish::kShare});
  const std::vector<RepairKind> orders = Finish();
  // Four go; then the rest is as with two of three full nodes and what the others were given.
  const auto grown = std::find(orders.begin(), orders.end(), RepairKind::kFormatRegions);
  ASSERT_NE(grown, orders.end());
  EXPECT_GE(std::count(orders.begin(), grown, RepairKind::kMoveRegion), 4);
  EXPECT_EQ(view().regions.size(), 5U) << "sixteen places on the other four";
  EXPECT_EQ(StateOf(1), "drained");
  ExpectSound();
}

// As many regions as the places of all five would have no room for what leaves the one.
TEST_F(MasterGrowthTest, ADrainThatIsAskedForMeanwhileAddsNothing) {
  Add(3);
  (void)AwaitOrder();
  bench.Ask(tool, MoveRegionsRequest{1, NodeWish::kDrain});
  Answer(a, RepairKind::kFormatRegions);
  EXPECT_EQ(view().regions.size(), 4U);
  TakeOver();
  const std::vector<RepairKind> orders = Finish();
  const auto grown = std::find(orders.begin(), orders.end(), RepairKind::kFormatRegions);
  EXPECT_GE(std::count(orders.begin(), grown, RepairKind::kMoveRegion), 4);
  EXPECT_EQ(StateOf(1), "drained");
  ExpectSound();
}

}  // namespace
}  // namespace onetrip
