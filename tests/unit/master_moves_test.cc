// Regions that move from living nodes to others: a node drains, or is given its share.
#include <algorithm>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

// Memory nodes 0 to 2 with four regions on each; node 3, a spare with as much room, serves.
class MasterMovesTest : public MasterRepairTest {
 protected:
  MasterMovesTest() {
    spare = bench.JoinNode(200);
    bench.Ask(spare, MasterBench::Serve(7003));
    tool = bench.Attend(MemberKind::kOther);
  }
  // The answer to what a tool asks.
  ReplyMessage Wish(uint32_t node, NodeWish wish) {
    const uint64_t id = bench.Ask(tool, MoveRegionsRequest{node, wish});
    const ReplyMessage* const reply = bench.ReplyTo(tool, id);
    return reply == nullptr ? ReplyMessage{0, StatusCode::kUnavailable, "no answer", {}} : *reply;
  }
  void Pass(uint64_t ms) {
    Streams who = {nodes[0], nodes[1], nodes[2], a, b};
    if (spare != 0) who.push_back(spare);
    bench.Pass(ms, who);
  }
  void AwaitHold() {
    for (int waits = 0; waits < 20 && HoldOf(a) == nullptr; ++waits) {
      TakeOver();
      Pass(100);
    }
    ASSERT_NE(HoldOf(a), nullptr);
    EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll);
  }
  // All keys are records, and the first region may move.
  void ForgoRegisters() {
    AwaitHold();
    EXPECT_FALSE(view().records_only);
    AllHold();
    EXPECT_TRUE(view().records_only);
    EXPECT_TRUE(bench.disk.cluster.records_only);
    TakeOver();
    Answer(a, RepairKind::kEndRegisters);
  }
  void MoveOne() {
    AwaitHold();
    AllHold();
    Answer(a, RepairKind::kMoveRegion);
    TakeOver();
  }
  void GrowOnce() {
    AwaitHold();
    AllHold();
    Answer(a, RepairKind::kFormatRegions);
    TakeOver();
  }
  [[nodiscard]] uint32_t Held(uint16_t node) const {
    return Status().status.members.at(node).regions;
  }
  [[nodiscard]] bool IsWhole() const {
    return std::all_of(view().regions.begin(), view().regions.end(),
                       [](const RegionPlacement& region) { return region.missing == 0; });
  }

  StreamId spare = 0;
  StreamId tool = 0;
};

TEST_F(MasterMovesTest, ADrainedNodeHasGivenAllItsRegionsOneByOne) {
  EXPECT_EQ(Wish(1, NodeWish::kDrain).code, StatusCode::kOk);
  EXPECT_EQ(bench.disk.nodes[1].wish, NodeWish::kDrain);
  EXPECT_EQ(StateOf(1), "draining");
  EXPECT_EQ(Status().moving, "memory node 1 is draining, 4 of 4 regions left");
  ForgoRegisters();
  EXPECT_FALSE(view().IsOut(NodeId{3})) << "whoever takes regions is in first";
  for (uint32_t left = 4; left > 0; --left) {
    EXPECT_EQ(Held(1), left);
    AwaitHold();
    const View before = view();
    Holds(b);
    EXPECT_EQ(RepairOf(a), nullptr);
    Holds(a);
    ASSERT_NE(RepairOf(a), nullptr);
    const RepairOrder order = RepairOf(a)->order;
    EXPECT_EQ(order.kind, RepairKind::kMoveRegion);
    EXPECT_EQ(order.source, NodeId{1});
    EXPECT_EQ(order.target.node, NodeId{3});
    EXPECT_EQ(view().regions, before.regions) << "not before the copy is whole";
    Answer(a, RepairKind::kMoveRegion);
    const RegionPlacement& was = before.regions[order.region];
    const RegionPlacement& is = view().regions[order.region];
    for (int i = 0; i < 3; ++i) {
      const bool moved = was.nodes[i] == NodeId{1};
      EXPECT_EQ(is.nodes[i], moved ? NodeId{3} : was.nodes[i]);
      EXPECT_EQ(is.base[i], moved ? order.target.offset : was.base[i]);
    }
    EXPECT_TRUE(IsWhole());
    EXPECT_EQ(bench.disk.regions[order.region], is);
    EXPECT_EQ(Status().status.state, "serving");
    EXPECT_EQ(Status().status.regions_fully_redundant, 4U);
    TakeOver();
  }
  EXPECT_EQ(Held(1), 0U);
  EXPECT_EQ(StateOf(1), "draining") << "somebody may still ask it";
  TakeOver();
  EXPECT_EQ(StateOf(1), "drained");
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_FALSE(view().records_only);
  EXPECT_FALSE(bench.disk.cluster.records_only);
  EXPECT_EQ(Status().moving, "");
  // Its end is no event.
  const uint64_t epoch = view().epoch.value;
  bench.Break(nodes[1]);
  nodes[1] = nodes[0];
  Pass(15'000);
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_EQ(StateOf(1), "drained");
  EXPECT_EQ(Status().status.state, "serving");
}

TEST_F(MasterMovesTest, ANodeThatIsFilledGetsItsShareAndOfPrimariesToo) {
  EXPECT_EQ(Wish(3, NodeWish::kShare).code, StatusCode::kOk);
  EXPECT_EQ(StateOf(3), "filling");
  ForgoRegisters();
  // Room on two of the others is what one region more lacks.
  for (int move = 0; move < 2; ++move) MoveOne();
  GrowOnce();
  Pass(200);
  TakeOver();
  EXPECT_EQ(view().regions.size(), 5U);
  for (uint16_t node = 0; node < 4; ++node) EXPECT_GE(Held(node), 3U) << node;
  const auto primaries =
      std::count_if(view().regions.begin(), view().regions.end(),
                    [](const RegionPlacement& region) { return region.nodes[0] == NodeId{3}; });
  EXPECT_EQ(primaries, 1);
  EXPECT_FALSE(view().records_only);
  EXPECT_EQ(StateOf(3), "up");
  EXPECT_EQ(bench.disk.nodes[3].wish, NodeWish::kNone) << "it has been given what it was to have";
  Pass(3000);
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterMovesTest, NothingMovesToANodeThatAnAgentDoesNotReach) {
  bench.reaches_nodes = false;
  Wish(1, NodeWish::kDrain);
  const auto pass = [this] {
    for (int turn = 0; turn < 10; ++turn) {
      TakeOver();
      Pass(100);
    }
  };
  pass();
  ASSERT_NE(bench.Last<ReachMessage>(a), nullptr);
  EXPECT_EQ(bench.Last<ReachMessage>(a)->node, NodeId{3});
  EXPECT_EQ(bench.Last<ReachMessage>(nodes[0]), nullptr);
  EXPECT_EQ(HoldOf(a), nullptr) << "not even registers end before";
  const std::string draining = "memory node 1 is draining, 4 of 4 regions left; agent ";
  const std::string unreached = " (process 4711 on testhost) does not reach memory node 3 yet";
  EXPECT_EQ(Status().moving, draining + std::to_string(member[a]) + unreached);
  const auto say = [this](StreamId agent) {
    bench.Say(agent, ReachedMessage{bench.Last<ReachMessage>(agent)->id});
  };
  say(a);
  EXPECT_EQ(Status().moving, draining + std::to_string(member[b]) + unreached);
  EXPECT_EQ(HoldOf(a), nullptr);
  say(b);
  ForgoRegisters();
  MoveOne();

  // A question is asked once, and again when the node was away; what was meant for the first life
  // counts for nothing.
  const uint64_t old_id = bench.Last<ReachMessage>(a)->id;
  bench.Break(spare);
  spare = bench.JoinNode(200);
  bench.Ask(spare, MasterBench::Serve(7003));
  pass();
  EXPECT_NE(bench.Last<ReachMessage>(a)->id, old_id);
  say(b);
  bench.Say(a, ReachedMessage{old_id});
  pass();
  EXPECT_EQ(HoldOf(a), nullptr);
  say(a);
  MoveOne();
  EXPECT_EQ(Held(1), 2U);
}

TEST_F(MasterMovesTest, AnAgentOnANewStreamSaysAnewWhomItReaches) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  MoveOne();
  bench.reaches_nodes = false;
  b = bench.Attend(MemberKind::kAgent, member[b]);
  for (int turn = 0; turn < 10; ++turn) {
    TakeOver();
    Pass(100);
  }
  EXPECT_EQ(HoldOf(a), nullptr);
  ASSERT_NE(bench.Last<ReachMessage>(b), nullptr);
  bench.Say(b, ReachedMessage{bench.Last<ReachMessage>(b)->id});
  MoveOne();
}

TEST_F(MasterMovesTest, WhatCannotBeDrainedIsRefusedAndSaysWhatIsMissing) {
  EXPECT_EQ(Wish(7, NodeWish::kDrain).reason, "there is no memory node 7");
  bench.Break(spare);
  spare = 0;
  const ReplyMessage few = Wish(1, NodeWish::kDrain);
  EXPECT_EQ(few.code, StatusCode::kInvalidArgument);
  EXPECT_EQ(few.reason,
            "each region has 3 replicas, and without memory node 1 there are 2 memory nodes for "
            "them; add 1");
  EXPECT_EQ(Wish(3, NodeWish::kShare).reason, "memory node 3 does not serve; start it first");
  JoinNodeRequest small;
  small.bytes = kRegionBytes;
  small.incarnation = 300;
  spare = bench.Attend(MemberKind::kMemoryNode);
  bench.Ask(spare, small);
  bench.Ask(spare, MasterBench::Serve(7004));
  // Nor is it known whether the capacity may shrink.
  EXPECT_EQ(Wish(1, NodeWish::kDrain).reason,
            "the other memory nodes have no room for 3 regions: they need 48 MiB more; and how "
            "much memory is in use is not known yet, try again in a moment; add a memory node");
  EXPECT_EQ(bench.disk.nodes[1].wish, NodeWish::kNone);
  Pass(1000);
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterMovesTest, AMoveThatIsNotDoneChangesNothingAndIsTriedAgain) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  const View before = view();
  AwaitHold();
  AllHold();
  Answer(a, RepairKind::kMoveRegion, /*done=*/false);
  EXPECT_EQ(view().regions, before.regions);
  EXPECT_EQ(HoldOf(a), nullptr) << "nobody is held meanwhile";
  TakeOver();
  AwaitHold();
  AllHold();
  Answer(b, RepairKind::kMoveRegion);
  EXPECT_EQ(Held(1), 3U);
}

TEST_F(MasterMovesTest, ATargetThatDiesInAMoveLeavesTheRegionWhereItIs) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  const View before = view();
  AwaitHold();
  AllHold();
  bench.Break(spare);
  spare = 0;
  Answer(a, RepairKind::kMoveRegion);
  EXPECT_EQ(view().regions, before.regions);
  TakeOver();
  Pass(200);
  TakeOver();
  EXPECT_TRUE(IsWhole());
  EXPECT_TRUE(view().IsOut(NodeId{3})) << "without a hold, since it has no region";
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_FALSE(view().records_only) << "nothing can move now";
  EXPECT_EQ(bench.coordinator.TickMs(), bench.options.lease_ms / 6) << "no pause is to end soon";
  EXPECT_EQ(Status().moving,
            "memory node 1 is draining, 4 of 4 regions left; there is no room for them");
  EXPECT_EQ(Status().status.state, "serving");
}

TEST_F(MasterMovesTest, ASpareThatIsLongGoneIsForgotten) {
  bench.Break(spare);
  spare = 0;
  Pass(1000);
  ASSERT_EQ(Status().status.members.size(), 4U + 2U);
  EXPECT_EQ(Status().status.members[3].state, "lost");
  Pass(600'000);
  EXPECT_EQ(Status().status.members.size(), 3U + 2U);
}

TEST_F(MasterMovesTest, ADrainGoesOnAfterARestart) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  MoveOne();
  AwaitHold();
  AllHold();
  const std::vector<RegionPlacement> regions = view().regions;
  bench.Start();
  EXPECT_EQ(view().regions, regions);
  EXPECT_TRUE(view().records_only);
  EXPECT_EQ(view().nodes.size(), 4U);
  EXPECT_EQ(Status().moving,
            "memory node 1 is draining, 3 of 4 regions left; moves need an agent "
            "with workers");
}

TEST_F(MasterMovesTest, ANodeThatIsLostAmidADrainIsReplacedElsewhere) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  MoveOne();
  bench.Break(nodes[1]);
  nodes[1] = nodes[0];
  AllHold();
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(Status().moving,
            "memory node 1 is draining, 3 of 4 regions left; they wait until no region lacks a "
            "replica");
  TakeOver();
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  Pass(11'000);
  for (const RegionPlacement& region : view().regions) {
    for (int i = 0; i < 3; ++i) EXPECT_NE(region.nodes[i], NodeId{1});
  }
}

TEST_F(MasterMovesTest, ADrainThatIsTakenBackLeavesTheRestWhereItIs) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  MoveOne();
  EXPECT_EQ(Wish(1, NodeWish::kNone).code, StatusCode::kOk);
  TakeOver();
  TakeOver();
  EXPECT_EQ(StateOf(1), "up");
  EXPECT_EQ(Held(1), 3U);
  EXPECT_FALSE(view().records_only);
  Pass(2000);
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterMovesTest, ADrainedNodeTakesNobodysPlaceUntilItIsToldOtherwise) {
  Wish(1, NodeWish::kDrain);
  ForgoRegisters();
  for (int move = 0; move < 4; ++move) MoveOne();
  TakeOver();
  ASSERT_EQ(StateOf(1), "drained");
  EXPECT_EQ(Wish(1, NodeWish::kShare).code, StatusCode::kOk);
  EXPECT_EQ(StateOf(1), "filling");
  ForgoRegisters();
  for (int move = 0; move < 2; ++move) MoveOne();
  GrowOnce();
  TakeOver();
  for (uint16_t node = 0; node < 4; ++node) EXPECT_GE(Held(node), 3U) << node;
}

TEST_F(MasterMovesTest, NoRegionMovesBeforeEveryRegisterIsARecord) {
  Wish(1, NodeWish::kDrain);
  AwaitHold();
  AllHold();
  TakeOver();
  Answer(a, RepairKind::kEndRegisters, /*done=*/false);
  Pass(100);
  EXPECT_EQ(HoldOf(a), nullptr) << "no region moves before";
  Pass(200);
  Answer(b, RepairKind::kEndRegisters);
  MoveOne();
  EXPECT_EQ(Held(1), 3U);
}

}  // namespace
}  // namespace onetrip
