// Memory nodes that are lost and come back, rule by rule: which agents are quiesced, which agent
// repairs what, and when a view goes on without a node.
#include <gtest/gtest.h>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

TEST_F(MasterRepairTest, ALostNodeIsPutOutWhenAllHold) {
  const uint64_t epoch = view().epoch.value;
  bench.Break(nodes[1]);
  for (const StreamId agent : {a, b}) {
    ASSERT_NE(HoldOf(agent), nullptr);
    EXPECT_EQ(HoldOf(agent)->kind, HoldKind::kSlots);
    EXPECT_EQ(HoldOf(agent)->leave, std::vector<NodeId>{NodeId{1}});
  }
  Holds(a);
  EXPECT_EQ(view().epoch.value, epoch) << "b still works";
  Holds(b);
  EXPECT_EQ(view().epoch.value, epoch + 1);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  for (size_t region = 0; region < view().regions.size(); ++region) {
    const RegionPlacement& placement = view().regions[region];
    EXPECT_EQ(placement.missing, 1);
    EXPECT_EQ(placement.nodes[2], NodeId{1});
    EXPECT_EQ(bench.disk.regions[region], placement);
  }
  EXPECT_TRUE(bench.disk.nodes[1].out);
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
  EXPECT_EQ(StateOf(1), "out");
  EXPECT_EQ(Status().status.state, "degraded");
  EXPECT_EQ(Status().status.regions_fully_redundant, 0U);
}

TEST_F(MasterRepairTest, SlotsAreResolvedOnceEverybodyDoesWithoutTheNode) {
  bench.Break(nodes[1]);
  AllHold();
  const uint64_t epoch = view().epoch.value;
  bench.TakeOver(a);
  EXPECT_EQ(HoldOf(a), nullptr) << "b is under the older view";
  bench.TakeOver(b);
  for (const StreamId agent : {a, b}) {
    ASSERT_NE(HoldOf(agent), nullptr);
    EXPECT_EQ(HoldOf(agent)->kind, HoldKind::kSlots);
    EXPECT_TRUE(HoldOf(agent)->leave.empty());
  }
  Holds(a);
  EXPECT_EQ(RepairOf(a), nullptr) << "b still works";
  Holds(b);
  ASSERT_NE(RepairOf(a), nullptr);
  EXPECT_EQ(RepairOf(b), nullptr);
  const RepairOrder order = RepairOf(a)->order;
  EXPECT_EQ(order.view->epoch.value, epoch + 1);
  EXPECT_EQ(order.view->regions, view().regions);
  EXPECT_TRUE(order.view->IsOut(NodeId{1}));
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  Answer(a, RepairKind::kResolveSlots);
  EXPECT_EQ(view().epoch.value, epoch + 1);
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
  // Workers join without the node.
  TakeOver();
  EXPECT_EQ(HoldOf(a), nullptr) << "once";
  bench.AddWorker(b, {a, b});
}

TEST_F(MasterRepairTest, ASecondLossThatWouldTakeTheMajorityIsWaitedFor) {
  LoseNode1();
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  const uint64_t epoch = view().epoch.value;
  bench.Break(nodes[2]);
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(StateOf(2), "lost");
  bench.Pass(5000, {nodes[0], a, b});
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_EQ(Status().waiting_for,
            "memory node 2 is not there, and 4 regions have no majority without it; if it is lost "
            "for good: onetrip node accept-loss");
  EXPECT_FALSE(bench.disk.nodes[2].out);
}

TEST_F(MasterRepairTest, ANodeThatIsBackBeforeAllHoldIsNotPutOut) {
  bench.Break(nodes[1]);
  Holds(a);
  const uint64_t epoch = HoldOf(a)->epoch.value;
  StartNode1();
  EXPECT_EQ(view().epoch.value, epoch) << "an empty view ends the hold";
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
  TakeOver();
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(Status().status.state, "serving");
}

TEST_F(MasterRepairTest, ANodeThatIsBackDuringTheRepairHasMissedIt) {
  LoseNode1();
  AllHold();
  StartNode1();
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  Answer(a, RepairKind::kResolveSlots, /*done=*/false);
  // The node is back whether the repair is done or not.
  TakeOver();
  TakeOver();
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_EQ(view().regions[0].missing, 1);
  EXPECT_EQ(StateOf(1), "copying");
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  bench.Pass(bench.options.repair_retry_ms + 100, Everybody());
  AllHold();
  EXPECT_EQ(RepairOf(b)->order.view->regions[0].missing, 1);
  Answer(b, RepairKind::kResolveSlots);
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll) << "the copy comes last";
}

TEST_F(MasterRepairTest, RegistersAreScrubbedOnceTheSlotsAreAlike) {
  LoseNode1();
  EXPECT_EQ(RepairOf(a), nullptr);
  AllHold();
  Answer(a, RepairKind::kResolveSlots);
  EXPECT_EQ(HoldOf(a), nullptr);
  Answer(a, RepairKind::kScrubRegisters, /*done=*/false);
  TakeOver();
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[2], a, b});
  ASSERT_NE(RepairOf(b), nullptr);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
  Answer(b, RepairKind::kScrubRegisters);
  EXPECT_FALSE(bench.disk.cluster.scrub_due);
}

// A flush is a quiesce: flushes that come again and again must not keep a scrub from its end.
TEST_F(MasterRepairTest, AScrubThatAHoldHasCutShortGoesOnAtTheSameAgent) {
  LoseNode1();
  AllHold();
  Answer(a, RepairKind::kResolveSlots);
  ASSERT_NE(RepairOf(a), nullptr);
  const uint64_t walk = RepairOf(a)->order.walk;
  EXPECT_NE(walk, 0U);
  TakeOver();
  bench.Ask(b, FlushRequest{});
  Answer(a, RepairKind::kScrubRegisters, /*done=*/false);
  AllHold();
  TakeOver();
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[2], a, b});
  ASSERT_NE(RepairOf(a), nullptr);
  EXPECT_EQ(RepairOf(a)->order.kind, RepairKind::kScrubRegisters);
  EXPECT_EQ(RepairOf(a)->order.walk, walk);
}

TEST_F(MasterRepairTest, AScrubThatANodesEndOvertookCountsForNothing) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Break(nodes[1]);
  AllHold();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
}

TEST_F(MasterRepairTest, RegionsAreCopiedOneByOneWhileAllHold) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_EQ(view().regions[0].missing, 1) << "what it holds is old";
  EXPECT_EQ(HoldOf(a), nullptr) << "no copy before registers are scrubbed";
  EXPECT_EQ(StateOf(1), "copying");
  Answer(a, RepairKind::kScrubRegisters);
  for (uint32_t region = 0; region < 4; ++region) {
    EXPECT_EQ(Status().status.regions_fully_redundant, region);
    ASSERT_NE(HoldOf(a), nullptr) << region;
    EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll);
    EXPECT_TRUE(HoldOf(a)->leave.empty());
    Holds(b);
    EXPECT_EQ(RepairOf(a), nullptr);
    Holds(a);
    ASSERT_NE(RepairOf(a), nullptr);
    EXPECT_EQ(RepairOf(a)->order.region, region);
    EXPECT_EQ(RepairOf(a)->order.view->regions[region].missing, 1);
    bench.now_us += 30'000;
    Answer(a, RepairKind::kCopyRegion);
    EXPECT_EQ(view().regions[region].missing, 0);
    EXPECT_EQ(bench.disk.regions[region].missing, 0);
    TakeOver();
    // Four times as long as it took.
    bench.Advance(110);
    EXPECT_EQ(HoldOf(a), nullptr);
    bench.Advance(10);
  }
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(StateOf(1), "up");
  EXPECT_EQ(Status().status.state, "serving");
  // Now another may be lost.
  bench.Break(nodes[2]);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->leave, std::vector<NodeId>{NodeId{2}});
}

// Flushes that come again and again cut every one short, and a copy waits for whichever is under
// way.
TEST_F(MasterRepairTest, CopiesDoNotWaitForATakeOverThatComesToNoEnd) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  const WorkerJoined second = bench.AddWorker(a, {a, b});
  bench.Ask(a, LeaveWorkerRequest{second.worker, second.index.value});
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  const auto copy = [this] {
    ASSERT_NE(HoldOf(a), nullptr);
    Holds(b);
    Holds(a);
    bench.now_us += 30'000;
    Answer(RepairOf(a) != nullptr ? a : b, RepairKind::kCopyRegion);
    TakeOver();
  };
  ASSERT_NO_FATAL_FAILURE(copy());
  Answer(a, RepairKind::kTakeOverBlocks, /*done=*/false);
  bench.Pass(bench.options.repair_retry_ms, Everybody());
  for (uint32_t region = 1; region < 4; ++region) {
    EXPECT_EQ(RepairOf(a), nullptr) << region;
    EXPECT_EQ(RepairOf(b), nullptr) << region;
    ASSERT_NO_FATAL_FAILURE(copy()) << region;
    bench.Advance(120);
  }
  EXPECT_EQ(Status().status.regions_fully_redundant, 4U);
  Answer(RepairOf(a) != nullptr ? a : b, RepairKind::kTakeOverBlocks);
}

TEST_F(MasterRepairTest, NothingIsCopiedToANodeThatAnAgentDoesNotReach) {
  LoseNode1();
  Resolve();
  bench.reaches_nodes = false;
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  bench.Pass(1000, Everybody());
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(StateOf(1), "copying");
  bench.Say(a, ReachedMessage{bench.Last<ReachMessage>(a)->id});
  EXPECT_EQ(Status().waiting_for, "agent " + std::to_string(member[b]) +
                                      " (process 4711 on testhost) does not reach memory node 1 "
                                      "yet");
  EXPECT_EQ(HoldOf(a), nullptr);
  bench.Say(b, ReachedMessage{bench.Last<ReachMessage>(b)->id});
  EXPECT_NE(HoldOf(a), nullptr);
}

TEST_F(MasterRepairTest, ACopyThatIsNotDoneCountsForNothing) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  Holds(a);
  Holds(b);
  Answer(a, RepairKind::kCopyRegion, /*done=*/false);
  EXPECT_EQ(view().regions[0].missing, 1);
  TakeOver();
  // Nor does one of a node that is lost again.
  bench.Pass(bench.options.repair_retry_ms, Everybody());
  Holds(a);
  bench.Break(nodes[1]);
  TakeOver();
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kSlots);
  EXPECT_EQ(view().regions[0].missing, 1);
}

TEST_F(MasterRepairTest, WithoutWorkersANodeIsWaitedForUntilOneWantsToJoin) {
  for (const StreamId agent : {a, b}) {
    bench.Ask(agent, LeaveWorkerRequest{worker[agent].worker, worker[agent].index.value});
    TakeOver();
    TakeOver();
  }
  bench.Break(nodes[1]);
  bench.Pass(bench.options.node_wait_ms + 500, {nodes[0], nodes[2], a, b});
  EXPECT_EQ(HoldOf(a), nullptr) << "nobody needs it";
  const uint64_t join = bench.Ask(a, JoinWorkerRequest());
  Holds(a);
  Holds(b);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(RepairOf(a), nullptr) << "an agent without workers repairs nothing";
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  TakeOver();
  EXPECT_NE(bench.ReplyTo(a, join), nullptr);
  Holds(a);
  Holds(b);
  Answer(a, RepairKind::kResolveSlots);
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterRepairTest, AJoinWaitsForANodeThatIsBackSoon) {
  for (const StreamId agent : {a, b}) {
    bench.Ask(agent, LeaveWorkerRequest{worker[agent].worker, worker[agent].index.value});
    TakeOver();
    TakeOver();
  }
  bench.Break(nodes[1]);
  const uint64_t join = bench.Ask(a, JoinWorkerRequest());
  bench.Pass(bench.options.node_wait_ms - 500, {nodes[0], nodes[2], a, b});
  EXPECT_EQ(HoldOf(a), nullptr);
  StartNode1();
  TakeOver();
  EXPECT_NE(bench.ReplyTo(a, join), nullptr);
  EXPECT_FALSE(view().IsOut(NodeId{1}));
}

class MasterReplaceTest : public MasterRepairTest {
 protected:
  // Node 1 is out, nothing is to be repaired but what it held, and a spare, node 3, serves.
  void LoseNode1AndAddSpare() {
    LoseNode1();
    Resolve();
    Answer(a, RepairKind::kScrubRegisters);
    spare = bench.JoinNode(200);
    bench.Ask(spare, MasterBench::Serve(7003));
  }
  void Pass(uint64_t ms) {
    Streams who = {nodes[0], nodes[2], a, b};
    if (spare != 0) who.push_back(spare);
    bench.Pass(ms, who);
  }
  void CopyAll() {
    for (int copies = 0; copies < 20 && Status().status.regions_fully_redundant < 4; ++copies) {
      for (int waits = 0; waits < 20 && HoldOf(a) == nullptr; ++waits) Pass(100);
      AllHold();
      Answer(a, RepairKind::kCopyRegion);
      TakeOver();
    }
  }
  StreamId spare = 0;
};

TEST_F(MasterReplaceTest, ASpareTakesThePlaceOfANodeThatStaysAway) {
  LoseNode1AndAddSpare();
  EXPECT_EQ(StateOf(3), "spare");
  EXPECT_EQ(Status().waiting_for,
            "4 regions lack a replica until memory node 1 is back, or is replaced after 10 s");
  Pass(9800);
  EXPECT_EQ(StateOf(3), "spare");
  EXPECT_EQ(view().nodes.size(), 3U);
  Pass(400);
  ASSERT_EQ(view().nodes.size(), 4U);
  EXPECT_EQ(view().node_count, 4);
  EXPECT_EQ(view().nodes[3].address.tcp_port, 7003);
  for (const RegionPlacement& region : view().regions) {
    EXPECT_EQ(region.nodes[2], NodeId{3});
    EXPECT_EQ(region.missing, 1);
  }
  // Shown as coming before it counts.
  TakeOver();
  TakeOver();
  EXPECT_FALSE(view().IsOut(NodeId{3}));
  EXPECT_EQ(StateOf(3), "copying");
  CopyAll();
  EXPECT_EQ(Status().status.regions_fully_redundant, 4U);
  EXPECT_EQ(StateOf(3), "up");
  EXPECT_EQ(Status().waiting_for, "");
  for (size_t region = 0; region < view().regions.size(); ++region) {
    EXPECT_EQ(bench.disk.regions[region], view().regions[region]);
  }
  // Now another one may die.
  bench.Break(nodes[2]);
  AllHold();
  EXPECT_TRUE(view().IsOut(NodeId{2}));
}

TEST_F(MasterReplaceTest, WithoutRoomAnywhereTheNodeIsWaitedFor) {
  LoseNode1();
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  Pass(60'000);
  for (const RegionPlacement& region : view().regions) EXPECT_EQ(region.nodes[2], NodeId{1});
  EXPECT_EQ(Status().waiting_for,
            "4 regions lack a replica until memory node 1 is back or another with room for them "
            "joins");
  // One that comes now is taken at once.
  spare = bench.JoinNode(200);
  bench.Ask(spare, MasterBench::Serve(7003));
  Pass(200);
  for (const RegionPlacement& region : view().regions) EXPECT_EQ(region.nodes[2], NodeId{3});
}

TEST_F(MasterReplaceTest, ANodeThatComesBackInTimeKeepsItsPlaces) {
  LoseNode1AndAddSpare();
  Pass(9000);
  StartNode1();
  bench.Pass(5000, {nodes[0], nodes[1], nodes[2], spare, a, b});
  EXPECT_EQ(StateOf(1), "copying");
  EXPECT_EQ(StateOf(3), "spare");
  EXPECT_EQ(view().nodes.size(), 3U);
}

TEST_F(MasterReplaceTest, ANodeThatWasReplacedIsASpareWhenItIsBack) {
  LoseNode1AndAddSpare();
  Pass(10'200);
  TakeOver();
  TakeOver();
  CopyAll();
  StartNode1();
  EXPECT_EQ(StateOf(1), "spare");
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  // It takes the place of the next.
  bench.Break(nodes[2]);
  AllHold();
  TakeOver();
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  bench.Pass(10'200, {nodes[0], nodes[1], spare, a, b});
  TakeOver();
  TakeOver();
  for (const RegionPlacement& region : view().regions) EXPECT_EQ(region.nodes[2], NodeId{1});
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_EQ(StateOf(1), "copying");
}

// An agent that was expelled might know the memory from before.
TEST_F(MasterReplaceTest, ASpareIsNotInBeforeItRefusesAllWhoWereExpelled) {
  LoseNode1AndAddSpare();
  bench.Break(b);
  for (const StreamId node : {nodes[0], nodes[2]}) bench.ConfirmFence(node);
  EXPECT_EQ(bench.Last<FenceMessage>(spare), nullptr) << "it has no region";
  bench.TakeOver(a);
  for (int i = 0; i < 3; ++i) {
    if (HoldOf(a) == nullptr) continue;
    Holds(a);
    Answer(a, RepairKind::kResolveSlots);
    bench.TakeOver(a);
  }
  bench.Pass(10'200, {nodes[0], nodes[2], spare, a});
  bench.TakeOver(a);
  bench.TakeOver(a);
  ASSERT_EQ(view().nodes.size(), 4U);
  EXPECT_TRUE(view().IsOut(NodeId{3}));
  ASSERT_NE(bench.Last<FenceMessage>(spare), nullptr);
  bench.ConfirmFence(spare);
  bench.TakeOver(a);
  EXPECT_FALSE(view().IsOut(NodeId{3}));
}

TEST_F(MasterReplaceTest, ASpareThatDiesIsReplacedToo) {
  LoseNode1AndAddSpare();
  Pass(10'200);
  TakeOver();
  EXPECT_FALSE(view().IsOut(NodeId{3}));
  bench.Break(spare);
  spare = 0;
  TakeOver();
  AllHold();
  TakeOver();
  EXPECT_TRUE(view().IsOut(NodeId{3}));
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  spare = bench.JoinNode(201);
  bench.Ask(spare, MasterBench::Serve(7004));
  Pass(10'200);
  for (const RegionPlacement& region : view().regions) EXPECT_EQ(region.nodes[2], NodeId{4});
  TakeOver();
  TakeOver();
  CopyAll();
  EXPECT_EQ(Status().status.regions_fully_redundant, 4U);
}

TEST_F(MasterReplaceTest, NumbersOfReplacedNodesAreUsedAgainWhenThereAreNoOthers) {
  bench.options.nodes_max = 4;
  bench.Start();
  for (uint64_t node = 0; node < 3; ++node) {
    nodes[node] = bench.JoinNode(100 + node);
    bench.Ask(nodes[node], MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  for (StreamId* const agent : {&a, &b}) {
    *agent = bench.Attend(MemberKind::kAgent, member[*agent], view().epoch.value);
    bench.TakeOver(*agent);
  }
  Answer(a, RepairKind::kTakeOverBlocks);
  LoseNode1AndAddSpare();
  const StreamId refused = bench.Attend(MemberKind::kMemoryNode);
  const uint64_t request = bench.Ask(refused, MasterBench::Offer(300));
  EXPECT_EQ(bench.ReplyTo(refused, request)->code, StatusCode::kInvalidArgument);
  Pass(10'200);
  TakeOver();
  TakeOver();
  CopyAll();
  // Node 1 holds nothing any more.
  const StreamId fresh = bench.JoinNode(300);
  bench.Ask(fresh, MasterBench::Serve(7001));
  EXPECT_EQ(StateOf(1), "spare");
  EXPECT_EQ(bench.disk.nodes[1].incarnation, 300U);
  EXPECT_EQ(view().nodes[1].incarnation, 300U);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
}

TEST_F(MasterReplaceTest, ANodeThatIsLongGoneLeavesItsNumberToTheNext) {
  LoseNode1AndAddSpare();
  Pass(10'200);
  TakeOver();
  TakeOver();
  CopyAll();
  const StreamId early = bench.JoinNode(300);
  bench.Ask(early, MasterBench::Serve(7004));
  EXPECT_EQ(bench.disk.nodes[4].incarnation, 300U) << "node 1 may still come back";
  bench.Pass(600'000, {nodes[0], nodes[2], a, b, spare, early});
  EXPECT_EQ(Status().status.members.at(1).node, 2U) << "it is not shown any more";
  bench.JoinNode(301);
  EXPECT_EQ(bench.disk.nodes[1].incarnation, 301U);
  EXPECT_EQ(bench.disk.nodes.size(), 5U);
}

TEST_F(MasterReplaceTest, AReplacementIsRememberedOverARestart) {
  LoseNode1AndAddSpare();
  Pass(10'200);
  TakeOver();
  TakeOver();
  const View before = view();
  bench.Start();
  EXPECT_EQ(view().regions, before.regions);
  EXPECT_EQ(view().nodes, before.nodes);
  EXPECT_EQ(view().node_count, before.node_count);
}

}  // namespace
}  // namespace onetrip
