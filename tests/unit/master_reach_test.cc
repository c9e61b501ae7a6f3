// Agents that do not reach memory nodes: which of them go for it, when, and when they may come
// back.
#include <gtest/gtest.h>

#include "client_core/base/planted_bug.h"
#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

UnreachedMessage Misses(const std::vector<uint16_t>& nodes) {
  UnreachedMessage message;
  for (const uint16_t node : nodes) message.nodes.push_back({NodeId{node}, 1, 100});
  return message;
}

class MasterReachTest : public MasterRepairTest {
 protected:
  // Beyond the time that channels have to be made at first.
  MasterReachTest() { Pass(3000); }

  void Pass(uint64_t ms) {
    Streams all = Everybody();
    if (c != 0) all.push_back(c);
    std::erase_if(all, [this](StreamId stream) { return bench.closed.contains(stream); });
    bench.Pass(ms, all);
  }
  // One agent of three is a minority.
  void AddThird() {
    c = bench.AddAgent();
    (void)bench.AddWorker(c, {a, b, c});
    Pass(3000);
  }
  // Node 1 is put out since `agents` do not reach it.
  void CutNode1(const Streams& agents) {
    for (const StreamId agent : agents) bench.Say(agent, Misses({1}));
    Pass(bench.options.reach_settle_ms + 200);
    AllHold();
    TakeOver();
    ASSERT_TRUE(view().IsOut(NodeId{1}));
  }
  // The repairs that are done without the node are done.
  void RepairWithoutIt() {
    Resolve();
    Answer(a, RepairKind::kScrubRegisters);
    TakeOver();
  }
  // Those that work reach no majority, one that waits does, but for a node that has nothing yet.
  void WorkersReachNoMajorityAndAWaiterAllButAnEmptyNode() {
    CutNode1({a});
    RepairWithoutIt();
    bench.Say(a, Misses({}));
    PassUntilBack();
    ASSERT_EQ(StateOf(1), "copying");
    TakeOver();
    c = bench.AddAgent();
    bench.Say(c, Misses({1}));
    Pass(3 * bench.options.reach_settle_ms + 200);
    EXPECT_EQ(HoldOf(a), nullptr) << "others work, and one that waits has no say";
    for (const StreamId agent : {a, b}) bench.Say(agent, Misses({2}));
    // They stop whenever they are asked to, and can repair nothing.
    for (int i = 0; i < 50 && !view().IsOut(NodeId{1}); ++i) {
      for (const StreamId agent : {a, b, c}) {
        const RepairMessage* repair = RepairOf(agent);
        if (HoldOf(agent) != nullptr) Holds(agent);
        if (repair != nullptr && answered.insert(repair->id).second) {
          bench.Say(agent, RepairedMessage{repair->id, false, "a node is not reached"});
        }
        bench.TakeOver(agent);
      }
      Pass(100);
    }
  }
  // Until the node may be back.
  void PassUntilBack() { Pass(bench.options.reach_back_ms + 200); }

  StreamId c = 0;
};

TEST_F(MasterReachTest, ANodeThatMostDoNotReachIsPutOut) {
  AddThird();
  bench.Say(a, Misses({1}));
  bench.Say(b, Misses({1}));
  EXPECT_EQ(HoldOf(a), nullptr) << "it may be over at once";
  EXPECT_EQ(Status().status.state, "degraded");
  EXPECT_NE(Status().unreached.find("does not reach memory node 1 for"), std::string::npos)
      << Status().unreached;
  Pass(bench.options.reach_settle_ms + 200);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kSlots);
  EXPECT_EQ(HoldOf(a)->leave, std::vector<NodeId>{NodeId{1}});
  AllHold();
  Holds(c);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(StateOf(1), "out") << "though it serves";
  EXPECT_FALSE(bench.closed.contains(nodes[1]));
}

TEST_F(MasterReachTest, TheOneThatAloneDoesNotReachANodeIsExpelled) {
  AddThird();
  bench.Say(b, Misses({2}));
  Pass(bench.options.reach_settle_ms + 200);
  const auto* expelled = bench.Last<ExpelledMessage>(b);
  ASSERT_NE(expelled, nullptr);
  EXPECT_NE(expelled->reason.find("does not reach memory node 2"), std::string::npos);
  EXPECT_TRUE(bench.closed.contains(b));
  EXPECT_FALSE(bench.closed.contains(a));
  EXPECT_FALSE(view().IsOut(NodeId{2}));
}

TEST_F(MasterReachTest, OfTwoAgentsNoneHasToGo) {
  CutNode1({a});
  EXPECT_FALSE(bench.closed.contains(a));
  EXPECT_FALSE(bench.closed.contains(b));
}

TEST_F(MasterReachTest, WhatIsOverSoonIsForgotten) {
  bench.Say(a, Misses({1}));
  Pass(bench.options.reach_settle_ms - 300);
  bench.Say(a, Misses({}));
  EXPECT_EQ(Status().unreached, "");
  EXPECT_EQ(Status().status.state, "serving");
  Pass(3000);
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterReachTest, WhatComesAgainAndAgainIsOneCut) {
  bench.Say(a, Misses({1}));
  Pass(bench.options.reach_settle_ms - 300);
  bench.Say(a, Misses({}));
  Pass(1000);
  bench.Say(a, Misses({1}));
  Pass(200);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->leave, std::vector<NodeId>{NodeId{1}});
}

TEST_F(MasterReachTest, ANodeThatIsReachedAgainBeforeAllHoldStays) {
  bench.Say(a, Misses({1}));
  Pass(bench.options.reach_settle_ms + 200);
  ASSERT_NE(HoldOf(a), nullptr);
  bench.Say(a, Misses({}));
  bench.Advance(100);
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_EQ(HoldOf(a), nullptr) << "an empty view ends the hold";
}

TEST_F(MasterReachTest, ANodeIsBackWhenAllReachItAgain) {
  CutNode1({a});
  RepairWithoutIt();
  PassUntilBack();
  EXPECT_TRUE(view().IsOut(NodeId{1})) << "a does not reach it";
  EXPECT_NE(Status().unreached, "");
  bench.Say(a, Misses({}));
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_EQ(StateOf(1), "copying");
}

TEST_F(MasterReachTest, ANodeThatGoesAgainStaysOutForLonger) {
  CutNode1({a});
  RepairWithoutIt();
  bench.Say(a, Misses({}));
  EXPECT_TRUE(view().IsOut(NodeId{1})) << "it was reached only now";
  PassUntilBack();
  EXPECT_FALSE(view().IsOut(NodeId{1}));
}

TEST_F(MasterReachTest, AnotherTakesThePlaceOfANodeThatIsNotReachedForLong) {
  const StreamId spare = bench.JoinNode(103);
  bench.Ask(spare, MasterBench::Serve(7003));
  nodes.push_back(spare);
  CutNode1({a});
  RepairWithoutIt();
  Pass(bench.options.replace_after_ms + 500);
  TakeOver();
  for (const RegionPlacement& region : view().regions) {
    for (int i = 0; i < view().replicas; ++i) EXPECT_NE(region.nodes[i], NodeId{1});
  }
}

TEST_F(MasterReachTest, WhoeverMissesTwoOfThreeIsExpelledAlsoOfTwoAgents) {
  bench.Say(b, Misses({0, 2}));
  Pass(bench.options.reach_settle_ms + 200);
  EXPECT_TRUE(bench.closed.contains(b));
  EXPECT_FALSE(bench.closed.contains(a));
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterReachTest, WhatNobodyCanHelpIsToldInTheStatus) {
  bench.Say(a, Misses({0, 2}));
  bench.Say(b, Misses({0, 2}));
  Pass(5000);
  EXPECT_FALSE(bench.closed.contains(a));
  EXPECT_FALSE(bench.closed.contains(b));
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_NE(Status().unreached.find("nobody can be helped"), std::string::npos)
      << Status().unreached;
}

// A switch that was away for a while: agents are back one after the other.
TEST_F(MasterReachTest, BehindAFaultOfAllWhoIsLateStays) {
  for (const StreamId agent : {a, b}) bench.Say(agent, Misses({0, 2}));
  Pass(2 * bench.options.reach_settle_ms);
  bench.Say(a, Misses({}));
  Pass(2 * bench.options.reach_settle_ms);
  EXPECT_FALSE(bench.closed.contains(b));
  EXPECT_EQ(HoldOf(a), nullptr);
  bench.Say(b, Misses({2}));
  Pass(bench.options.reach_settle_ms / 2);
  EXPECT_EQ(HoldOf(a), nullptr);
  bench.Say(b, Misses({}));
  Pass(4 * bench.options.reach_settle_ms);
  EXPECT_FALSE(bench.closed.contains(b));
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterReachTest, BehindAFaultOfAllWhoStaysAwayGoes) {
  for (const StreamId agent : {a, b}) bench.Say(agent, Misses({0, 2}));
  Pass(2 * bench.options.reach_settle_ms);
  bench.Say(a, Misses({}));
  Pass(3 * bench.options.reach_settle_ms + 200);
  EXPECT_TRUE(bench.closed.contains(b));
  EXPECT_FALSE(bench.closed.contains(a));
}

TEST_F(MasterReachTest, AFaultOfAllThatComesAgainSoonDoesNotHeal) {
  for (int time = 0; time < 2; ++time) {
    for (const StreamId agent : {a, b}) bench.Say(agent, Misses({0, 2}));
    Pass(2 * bench.options.reach_settle_ms);
    bench.Say(a, Misses({}));
    Pass(200);
    EXPECT_EQ(bench.closed.contains(b), time == 1);
  }
}

TEST_F(MasterReachTest, ANodeThatTheMasterHasLostComesFirst) {
  bench.Say(b, Misses({2}));
  bench.Break(nodes[1]);
  Pass(500);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->leave, std::vector<NodeId>{NodeId{1}});
  AllHold();
  TakeOver();
  Pass(bench.options.reach_settle_ms + 200);
  // Without node 1 the other cannot leave.
  EXPECT_TRUE(bench.closed.contains(b));
  EXPECT_FALSE(view().IsOut(NodeId{2}));
}

TEST_F(MasterReachTest, ChannelsToANodeThatHasJustComeAreWaitedFor) {
  const StreamId late = nodes[1];
  bench.Break(late);
  AllHold();
  TakeOver();
  bench.Say(a, Misses({1}));
  Pass(3000);
  StartNode1();
  TakeOver();
  EXPECT_TRUE(view().IsOut(NodeId{1})) << "a does not reach it yet";
  bench.Say(a, Misses({}));
  EXPECT_FALSE(view().IsOut(NodeId{1}));
}

TEST_F(MasterReachTest, AnAgentThatWaitsToJoinHasNoSay) {
  c = bench.AddAgent();
  bench.Say(c, Misses({1}));
  Pass(5000);
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_FALSE(bench.closed.contains(c));
  EXPECT_NE(Status().unreached.find("waits to join, for it does not reach memory node 1"),
            std::string::npos)
      << Status().unreached;
}

TEST_F(MasterReachTest, ANodeOnWhichNothingLivesGoesForOneThatWaitsToJoin) {
  WorkersReachNoMajorityAndAWaiterAllButAnEmptyNode();
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_FALSE(view().IsOut(NodeId{2}));
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(MasterReachTest, PlantedBugEmptyNodeStaysIsFound) {
  TEST_planted_bug = Bug::kEmptyNodeStays;
  WorkersReachNoMajorityAndAWaiterAllButAnEmptyNode();
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  TEST_planted_bug = Bug::kNone;
}
#endif

TEST_F(MasterReachTest, ANodeOnWhichNothingLivesGoesForWhoeverIsToBegin) {
  CutNode1({a});
  RepairWithoutIt();
  bench.Say(a, Misses({}));
  PassUntilBack();
  ASSERT_EQ(StateOf(1), "copying");
  for (const StreamId agent : {a, b}) {
    bench.Ask(agent, LeaveRequest());
    for (const StreamId node : nodes) bench.ConfirmFence(node);
  }
  c = bench.AddAgent();
  bench.Say(c, Misses({1}));
  Pass(bench.options.node_wait_ms + 3000);
  ASSERT_NE(HoldOf(c), nullptr);
  EXPECT_EQ(HoldOf(c)->leave, std::vector<NodeId>{NodeId{1}});
}

TEST_F(MasterReachTest, WhereNobodyWorksWhoWantsToBeginMayDoWithoutTheNode) {
  for (const StreamId agent : {a, b}) {
    bench.Ask(agent, LeaveRequest());
    for (const StreamId node : nodes) bench.ConfirmFence(node);
  }
  c = bench.AddAgent();
  bench.Say(c, Misses({1}));
  Pass(bench.options.node_wait_ms + 500);
  ASSERT_NE(HoldOf(c), nullptr);
  Holds(c);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
}

// It cannot tell whether its network or the node is at fault; the master can.
TEST_F(MasterReachTest, WhereNobodyWorksALostNodeGoesForWhoeverDoesNotReachIt) {
  for (const StreamId agent : {a, b}) {
    bench.Ask(agent, LeaveRequest());
    for (const StreamId node : nodes) bench.ConfirmFence(node);
  }
  bench.Break(nodes[1]);
  c = bench.AddAgent();
  Pass(bench.options.node_wait_ms + 500);
  EXPECT_EQ(HoldOf(c), nullptr) << "no process wants to work";
  bench.Say(c, Misses({1}));
  Pass(200);
  ASSERT_NE(HoldOf(c), nullptr);
  Holds(c);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
}

TEST_F(MasterReachTest, AProcessThatOpensAnotherStreamSaysSoAnew) {
  bench.Say(a, Misses({1}));
  Pass(300);
  const StreamId old = a;
  a = bench.Attend(MemberKind::kAgent, member[old], bench.SentEpoch(old));
  EXPECT_EQ(Status().unreached, "");
  bench.Say(a, Misses({1}));
  EXPECT_NE(Status().unreached, "");
}

}  // namespace
}  // namespace onetrip
