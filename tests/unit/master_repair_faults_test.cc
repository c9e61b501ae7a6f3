// Repairs in which agents, nodes or the master are lost: nothing is done beside one that may still
// be under way, and it is done again.
#include <gtest/gtest.h>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

TEST_F(MasterRepairTest, ALossDuringARepairEndsTheHoldWhenTheRepairHasEnded) {
  LoseNode1();
  AllHold();
  const uint64_t epoch = HoldOf(a)->epoch.value;
  bench.Break(nodes[2]);
  EXPECT_LT(view().epoch.value, epoch) << "the repair may still be at it";
  Answer(a, RepairKind::kResolveSlots, /*done=*/false);
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_FALSE(view().IsOut(NodeId{2}));
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterRepairTest, ARepairThatIsNotDoneIsTriedAgainByTheNext) {
  LoseNode1();
  AllHold();
  const uint64_t epoch = HoldOf(a)->epoch.value;
  Answer(a, RepairKind::kResolveSlots, /*done=*/false);
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  EXPECT_NE(bench.log.back().find("the test says no"), std::string::npos) << bench.log.back();
  TakeOver();
  EXPECT_EQ(HoldOf(a), nullptr) << "not at once";
  EXPECT_EQ(RepairOf(a), nullptr) << "no scrub ahead of it";
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[2], a, b});
  AllHold();
  Answer(b, RepairKind::kResolveSlots);
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterRepairTest, AnAgentThatDiesInARepairIsFencedBeforeAnotherDoesIt) {
  LoseNode1();
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Break(a);
  EXPECT_EQ(RepairOf(b), nullptr);
  bench.ConfirmFence(nodes[0]);
  EXPECT_EQ(RepairOf(b), nullptr);
  EXPECT_EQ(bench.disk.cluster.repairer, member[a]);
  bench.ConfirmFence(nodes[2]);
  ASSERT_NE(RepairOf(b), nullptr) << "the node that is out cannot be asked";
  EXPECT_EQ(bench.disk.cluster.repairer, member[b]);
  EXPECT_TRUE(view().IsLive(worker[a].index));
  Answer(b, RepairKind::kResolveSlots);
  EXPECT_FALSE(view().IsLive(worker[a].index));
  EXPECT_EQ(bench.disk.former, std::set<uint32_t>{worker[a].worker.value});
  bench.TakeOver(b);
  // A node that comes back still has to refuse it, and is not in before it has.
  Holds(b);
  Answer(b, RepairKind::kResolveSlots);
  bench.TakeOver(b);
  StartNode1();
  const auto* joined =
      std::get_if<NodeJoined>(&std::get<ReplyMessage>(bench.inbox[nodes[1]].front()).body);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->expelled, std::vector<WorkerId>{worker[a].worker});
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  bench.ConfirmFence(nodes[1]);
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  EXPECT_TRUE(bench.disk.former.empty());
}

TEST_F(MasterRepairTest, ASeatIsFreeOnceNobodyAsksTheNodeThatHasNotFencedIt) {
  bench.Break(nodes[1]);
  Holds(b);
  bench.Break(a);
  bench.ConfirmFence(nodes[0]);
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  bench.ConfirmFence(nodes[2]);
  EXPECT_TRUE(view().IsOut(NodeId{1})) << "it can do harm on the lost node only";
  bench.TakeOver(b);
  EXPECT_TRUE(view().IsLive(worker[a].index));
  Holds(b);
  Answer(b, RepairKind::kResolveSlots);
  EXPECT_FALSE(view().IsLive(worker[a].index));
}

// It may still be at its repair on the lost node: that one must not count again.
TEST_F(MasterRepairTest, ANodeThatIsLostWithTheRepairingAgentIsPutOutInTheSameHold) {
  bench.Break(a);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  bench.TakeOver(b);
  a = bench.AddAgent();
  member[a] = bench.attendance.member;
  Holds(b);
  Holds(a);
  ASSERT_NE(RepairOf(b), nullptr);
  const uint64_t epoch = HoldOf(b)->epoch.value;
  bench.Break(nodes[1]);
  bench.Break(b);
  bench.ConfirmFence(nodes[0]);
  EXPECT_LT(view().epoch.value, epoch);
  bench.ConfirmFence(nodes[2]);
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(bench.disk.cluster.repairer, 0U);
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterRepairTest, ANodeThatIsLostWithTheCopyingAgentIsPutOutInTheSameHold) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Break(nodes[1]);
  bench.Break(a);
  for (const size_t node : {0, 2}) bench.ConfirmFence(nodes[node]);
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(view().regions[0].missing, 1);
}

TEST_F(MasterRepairTest, ANodeThatIsBackBeforeItFencedADeadRepairerIsWaitedFor) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  AllHold();
  const uint64_t epoch = HoldOf(b)->epoch.value;
  bench.Break(a);
  for (const size_t node : {0, 2}) bench.ConfirmFence(nodes[node]);
  EXPECT_EQ(RepairOf(b), nullptr);
  EXPECT_LT(view().epoch.value, epoch) << "released beside a repair";
  bench.ConfirmFence(nodes[1]);
  EXPECT_NE(RepairOf(b), nullptr) << "in the same hold";
}

// A write that an agent has left unfinished is made whole ahead of the next copy, which may bring
// the word to a node where the bytes are not.
TEST_F(MasterRepairTest, NothingIsCopiedBehindAnAgentThatEndedBeforeItHeld) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  Holds(a);
  bench.Break(b);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  EXPECT_EQ(RepairOf(a), nullptr);
  bench.TakeOver(a);  // the view that ends the quiesce
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
  bench.TakeOver(a);
  Holds(a);
  Answer(a, RepairKind::kResolveSlots);
  bench.TakeOver(a);
  EXPECT_EQ(HoldOf(a), nullptr);
  Answer(a, RepairKind::kScrubRegisters);
  Holds(a);
  Answer(a, RepairKind::kCopyRegion);
  EXPECT_FALSE(bench.disk.cluster.scrub_due);
}

TEST_F(MasterRepairTest, AScrubOfBeforeAnAgentsEndDoesNotCount) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Break(b);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  bench.TakeOver(a);
  Answer(a, RepairKind::kScrubRegisters);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
}

TEST_F(MasterRepairTest, AnAgentThatDoesNotEndItsRepairIsExpelled) {
  LoseNode1();
  AllHold();
  bench.Pass(bench.options.repair_timeout_ms - 1000, {nodes[0], nodes[2], a, b});
  EXPECT_EQ(bench.Last<ExpelledMessage>(a), nullptr);
  bench.Pass(1200, {nodes[0], nodes[2], a, b});
  ASSERT_NE(bench.Last<ExpelledMessage>(a), nullptr);
  bench.ConfirmFence(nodes[0]);
  bench.ConfirmFence(nodes[2]);
  Answer(b, RepairKind::kResolveSlots);
  EXPECT_FALSE(view().IsLive(worker[a].index));
}

TEST_F(MasterRepairTest, AHoldThatIsNotAnsweredEndsAndIsTriedAgain) {
  bench.Break(nodes[1]);
  Holds(a);
  const uint64_t epoch = HoldOf(a)->epoch.value;
  bench.Pass(bench.options.hold_timeout_ms + 100, {nodes[0], nodes[2], a, b});
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_FALSE(view().IsOut(NodeId{1}));
  TakeOver();
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[2], a, b});
  EXPECT_NE(HoldOf(b), nullptr);
}

// All stand still in it, so one that hangs is waited for as shortly as possible.
TEST_F(MasterRepairTest, AHoldForACopyIsSoonGivenUp) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  const std::vector<StreamId> all = {nodes[0], nodes[1], nodes[2], a, b};
  uint64_t timeout_ms = bench.options.copy_hold_timeout_ms;
  for (int attempt = 0; attempt < 3; ++attempt, timeout_ms *= 2) {
    ASSERT_NE(HoldOf(a), nullptr);
    EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll);
    Holds(a);
    const uint64_t epoch = HoldOf(a)->epoch.value;
    bench.Pass(timeout_ms - 100, all);
    EXPECT_LT(view().epoch.value, epoch);
    bench.Pass(100, all);
    EXPECT_EQ(view().epoch.value, epoch);
    EXPECT_EQ(view().regions[0].missing, 1);
    bench.TakeOver(a);
    bench.Pass(bench.options.repair_retry_ms + 100, all);
    EXPECT_EQ(HoldOf(a), nullptr) << "b hangs still";
    bench.TakeOver(b);
  }
  AllHold();
  Answer(a, RepairKind::kCopyRegion);
  EXPECT_EQ(view().regions[0].missing, 0);
}

TEST_F(MasterRepairTest, TheSlotsOfADeadAgentAreResolvedByAnother) {
  bench.Break(a);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  bench.TakeOver(b);
  ASSERT_NE(HoldOf(b), nullptr);
  EXPECT_EQ(HoldOf(b)->kind, HoldKind::kSlots);
  EXPECT_TRUE(HoldOf(b)->leave.empty());
  Holds(b);
  Answer(b, RepairKind::kResolveSlots);
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
  bench.TakeOver(b);
  EXPECT_EQ(HoldOf(b), nullptr) << "once";
  ASSERT_NE(RepairOf(b), nullptr);
  EXPECT_EQ(RepairOf(b)->order.kind, RepairKind::kTakeOverBlocks) << "its registers are whole";
}

TEST_F(MasterRepairTest, TheMemoryOfTheDeadIsTakenOverOnce) {
  bench.Break(a);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  bench.TakeOver(b);
  EXPECT_EQ(RepairOf(b), nullptr) << "ahead of slots";
  Holds(b);
  Answer(b, RepairKind::kResolveSlots);
  bench.TakeOver(b);
  ASSERT_NE(RepairOf(b), nullptr);
  const LivingWorkers living = RepairOf(b)->order.living;
  EXPECT_FALSE(living.Includes(worker[a].worker));
  EXPECT_TRUE(living.Includes(worker[b].worker));
  EXPECT_TRUE(living.Includes(living.next)) << "who joins meanwhile";
  Answer(b, RepairKind::kTakeOverBlocks, /*done=*/false);
  EXPECT_EQ(RepairOf(b), nullptr);
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[1], nodes[2], b});
  Answer(b, RepairKind::kTakeOverBlocks);
  bench.Pass(bench.options.repair_retry_ms + 100, {nodes[0], nodes[1], nodes[2], b});
  EXPECT_EQ(RepairOf(b), nullptr);
}

TEST_F(MasterRepairTest, WhoLeavesWhileMemoryIsTakenOverMakesItDueAgain) {
  bench.Ask(a, LeaveWorkerRequest{worker[a].worker, worker[a].index.value});
  TakeOver();
  ASSERT_NE(RepairOf(b), nullptr);
  EXPECT_EQ(RepairOf(b)->order.kind, RepairKind::kTakeOverBlocks);
  const WorkerJoined second = bench.AddWorker(a, {a, b});
  bench.Ask(a, LeaveWorkerRequest{second.worker, second.index.value});
  TakeOver();
  Answer(b, RepairKind::kTakeOverBlocks);
  ASSERT_NE(RepairOf(b), nullptr) << "that one was not looked for";
  EXPECT_FALSE(RepairOf(b)->order.living.Includes(second.worker));
  Answer(b, RepairKind::kTakeOverBlocks);
  EXPECT_EQ(RepairOf(b), nullptr);
}

TEST_F(MasterRepairTest, ARestartGoesOnWhereItWas) {
  LoseNode1();
  const uint64_t epoch = view().epoch.value;
  const auto come_back = [&] {
    for (const uint16_t node : {0, 2}) {
      nodes[node] = bench.JoinNode(100U + node);
      bench.Ask(nodes[node], MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
    }
    for (StreamId* const agent : {&a, &b}) {
      const uint64_t id = member.at(*agent);
      *agent = bench.Attend(MemberKind::kAgent, id, epoch);
      member[*agent] = id;
    }
  };
  // The node is no part of it any more, though nothing was resolved.
  bench.Start();
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_EQ(view().regions[0].missing, 1);
  come_back();
  EXPECT_EQ(HoldOf(a), nullptr) << "nobody is under its view yet";
  TakeOver();
  EXPECT_EQ(RepairOf(a), nullptr);
  Resolve();
  bench.Start();
  come_back();
  EXPECT_EQ(RepairOf(a), nullptr) << "nobody is under its view yet";
  TakeOver();
  EXPECT_EQ(HoldOf(a), nullptr);
  Answer(a, RepairKind::kScrubRegisters);
  EXPECT_FALSE(bench.disk.cluster.scrub_due);
  // Nodes have time to come back, like agents.
  bench.Start();
  nodes[0] = bench.JoinNode(100);
  bench.Ask(nodes[0], MasterBench::Serve(7000));
  bench.Advance(100);
  EXPECT_EQ(StateOf(2), "lost");
  nodes[2] = bench.JoinNode(102);
  bench.Ask(nodes[2], MasterBench::Serve(7002));
  EXPECT_EQ(Status().status.state, "degraded");
}

TEST_F(MasterRepairTest, AfterARestartALostNodeHasItsGrace) {
  bench.Start();
  for (const uint16_t node : {0, 2}) {
    nodes[node] = bench.JoinNode(100U + node);
    bench.Ask(nodes[node], MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  const StreamId back = bench.Attend(MemberKind::kAgent, member[a]);
  const StreamId other = bench.Attend(MemberKind::kAgent, member[b]);
  a = back;
  b = other;
  TakeOver();
  bench.Pass(bench.options.lease_ms + bench.options.grace_ms - 100, {nodes[0], nodes[2], a, b});
  EXPECT_EQ(HoldOf(a), nullptr);
  bench.Pass(200, {nodes[0], nodes[2], a, b});
  EXPECT_NE(HoldOf(a), nullptr);
}

TEST_F(MasterRepairTest, AfterARestartNobodyIsReleasedBesideARepairOfTheLastLife) {
  LoseNode1();
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Start();
  const StreamId other = bench.Attend(MemberKind::kAgent, member[b]);
  EXPECT_EQ(bench.SentEpoch(other), 0U) << "it holds for a repair that may be under way";
  const StreamId back = bench.Attend(MemberKind::kAgent, member[a]);
  EXPECT_EQ(bench.SentEpoch(other), 0U);
  bench.TakeOver(back);
  EXPECT_EQ(bench.SentEpoch(other), view().epoch.value);
  EXPECT_EQ(bench.disk.cluster.repairer, 0U);
}

TEST_F(MasterRepairTest, AfterARestartANodeThatIsLostWithTheRepairingAgentIsPutOutFirst) {
  LoseNode1();
  Resolve();
  StartNode1();
  TakeOver();
  Answer(a, RepairKind::kScrubRegisters);
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  bench.Start();
  Streams here;
  for (const uint16_t node : {0, 2}) {
    here.push_back(bench.JoinNode(100U + node));
    bench.Ask(here.back(), MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  here.push_back(bench.Attend(MemberKind::kAgent, member[b]));
  const StreamId other = here.back();
  bench.Pass(bench.options.lease_ms + bench.options.grace_ms + 200, here);
  bench.ConfirmFence(here[0]);
  EXPECT_EQ(bench.SentEpoch(other), 0U);
  bench.ConfirmFence(here[1]);
  EXPECT_EQ(bench.SentEpoch(other), view().epoch.value);
  EXPECT_TRUE(bench.Last<ViewCommittedMessage>(other)->view->IsOut(NodeId{1}));
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterRepairTest, ANewStreamOfTheRepairingAgentIsAskedAgain) {
  LoseNode1();
  AllHold();
  const uint64_t id = RepairOf(a)->id;
  const StreamId again = bench.Attend(MemberKind::kAgent, member[a], view().epoch.value);
  ASSERT_NE(RepairOf(again), nullptr);
  EXPECT_EQ(RepairOf(again)->id, id) << "the same repair";
  Answer(again, RepairKind::kResolveSlots);
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
}

}  // namespace
}  // namespace onetrip
