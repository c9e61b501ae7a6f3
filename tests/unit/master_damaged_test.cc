// Memory nodes whose memory of an earlier life is damaged: they count for nothing until they are
// out, and come back by copies.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

JoinNodeRequest Damaged(uint16_t node) {
  JoinNodeRequest offer = MasterBench::Offer(100U + node);
  offer.adopted = true;
  offer.owner_cluster = MasterBench::kCluster;
  offer.owner_node = node;
  offer.damage = "bytes 2097152 to 3145727 are not what its node left there";
  return offer;
}

// With agents at work.
class MasterDamagedTest : public MasterRepairTest {
 protected:
  // The request that waits for a place.
  uint64_t JoinDamaged(uint16_t node) {
    nodes[node] = bench.Attend(MemberKind::kMemoryNode);
    return bench.Ask(nodes[node], Damaged(node));
  }
  const NodeJoined* PlaceOf(uint16_t node, uint64_t request) const {
    const ReplyMessage* reply = bench.ReplyTo(nodes[node], request);
    return reply == nullptr ? nullptr : std::get_if<NodeJoined>(&reply->body);
  }
  void Serve(uint16_t node) {
    bench.Ask(nodes[node], MasterBench::Serve(static_cast<uint16_t>(7000 + node)));
  }
  void StartNode(uint16_t node) {
    nodes[node] = bench.JoinNode(100U + node);
    Serve(node);
  }
  bool HasLogged(const std::string& text) const {
    return std::any_of(bench.log.begin(), bench.log.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
};

TEST_F(MasterDamagedTest, ADamagedNodeIsPutOutBeforeItGetsItsPlaceAndComesBackByCopies) {
  bench.Break(nodes[1]);
  const uint64_t request = JoinDamaged(1);
  EXPECT_EQ(StateOf(1), "damaged");
  EXPECT_EQ(Status().status.state, "degraded");
  EXPECT_EQ(Status().status.regions_fully_redundant, 0U);
  EXPECT_EQ(Status().waiting_for,
            "the memory of memory node 1 is damaged; it is copied from the others once all agents "
            "do without it");
  EXPECT_TRUE(
      HasLogged("memory node 1 (process 4711 on testhost) comes with damaged memory: bytes "
                "2097152 to 3145727"));
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->leave, std::vector<NodeId>{NodeId{1}});
  Holds(a);
  EXPECT_EQ(PlaceOf(1, request), nullptr) << "b still counts on it";
  Holds(b);
  const NodeJoined* place = PlaceOf(1, request);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(place->node, NodeId{1});
  EXPECT_TRUE(place->view->IsOut(NodeId{1}));
  for (const RegionPlacement& region : place->view->regions) {
    EXPECT_EQ(region.missing, 1);
    EXPECT_EQ(region.nodes[2], NodeId{1});
  }
  EXPECT_TRUE(bench.disk.nodes[1].out);
  EXPECT_EQ(StateOf(1), "joining");
  Serve(1);
  TakeOver();
  Resolve();
  TakeOver();
  EXPECT_EQ(StateOf(1), "copying");
  Answer(a, RepairKind::kScrubRegisters);
  for (uint32_t region = 0; region < 4; ++region) {
    EXPECT_EQ(Status().status.regions_fully_redundant, region);
    AllHold();
    Answer(a, RepairKind::kCopyRegion);
    TakeOver();
    bench.Advance(bench.options.copy_pause_ms + 10);
  }
  EXPECT_EQ(Status().status.regions_fully_redundant, 4U);
  EXPECT_EQ(StateOf(1), "up");
  // Now another one may die.
  bench.Break(nodes[0]);
  AllHold();
  EXPECT_TRUE(view().IsOut(NodeId{0}));
}

TEST_F(MasterDamagedTest, UntilItIsOutItMayNotServeAndIsToldNothing) {
  bench.Break(nodes[1]);
  const uint64_t request = JoinDamaged(1);
  const uint64_t serve = bench.Ask(nodes[1], MasterBench::Serve(7001));
  ASSERT_NE(bench.ReplyTo(nodes[1], serve), nullptr);
  EXPECT_EQ(bench.ReplyTo(nodes[1], serve)->code, StatusCode::kInvalidArgument);
  const uint64_t again = bench.Ask(nodes[1], Damaged(1));
  EXPECT_EQ(bench.ReplyTo(nodes[1], again)->code, StatusCode::kInvalidArgument);
  AllHold();
  EXPECT_NE(PlaceOf(1, request), nullptr);
  EXPECT_EQ(bench.Last<ViewCommittedMessage>(nodes[1]), nullptr) << "the place has the view";
  EXPECT_EQ(bench.Last<FenceMessage>(nodes[1]), nullptr);
}

TEST_F(MasterDamagedTest, WhatIsOutAlreadyGetsItsPlaceAtOnce) {
  LoseNode1();
  const uint64_t request = JoinDamaged(1);
  ASSERT_NE(PlaceOf(1, request), nullptr);
  EXPECT_EQ(StateOf(1), "joining");
  EXPECT_FALSE(HasLogged("comes with damaged memory"));
}

TEST_F(MasterDamagedTest, ADamagedNodeThatEndsIsLostLikeAnyOther) {
  bench.Break(nodes[1]);
  JoinDamaged(1);
  bench.Break(nodes[1]);
  EXPECT_EQ(StateOf(1), "lost");
  AllHold();
  EXPECT_EQ(StateOf(1), "out");
  // It says it again, but now no member counts on what it holds.
  EXPECT_NE(PlaceOf(1, JoinDamaged(1)), nullptr);
}

TEST_F(MasterDamagedTest, TwoDamagedOfThreeWaitAndNothingIsGivenUp) {
  for (const uint16_t node : {1, 2}) bench.Break(nodes[node]);
  TakeOver();
  const uint64_t first = JoinDamaged(1);
  EXPECT_THAT(Status().waiting_for, HasSubstr("memory nodes must be back: 2"));
  const uint64_t second = JoinDamaged(2);
  const uint64_t epoch = view().epoch.value;
  bench.Pass(60'000, Everybody());
  EXPECT_EQ(view().epoch.value, epoch);
  EXPECT_EQ(PlaceOf(1, first), nullptr);
  EXPECT_EQ(PlaceOf(2, second), nullptr);
  for (const uint16_t node : {1, 2}) {
    EXPECT_EQ(StateOf(node), "damaged");
    EXPECT_FALSE(bench.disk.nodes[node].out);
  }
  const std::string what =
      "the memory of memory nodes 1, 2 is damaged, and 4 regions have no majority without it: "
      "start with --accept-damaged yes to go on with what it holds";
  EXPECT_EQ(Status().waiting_for, what);
  EXPECT_EQ(std::count(bench.log.begin(), bench.log.end(), what), 1);
  // The operator decides that one of them is good enough.
  bench.Break(nodes[2]);
  JoinNodeRequest accepted = Damaged(2);
  accepted.damage.clear();
  accepted.accepted = true;
  nodes[2] = bench.Attend(MemberKind::kMemoryNode);
  bench.Ask(nodes[2], accepted);
  EXPECT_TRUE(HasLogged("memory node 2 comes with damaged memory that somebody has accepted"));
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
  Serve(2);
  AllHold();
  EXPECT_NE(PlaceOf(1, first), nullptr);
  EXPECT_FALSE(view().IsOut(NodeId{2}));
  TakeOver();
  Resolve();
  EXPECT_FALSE(bench.disk.cluster.resolve_due);
}

TEST_F(MasterDamagedTest, OneThatIsReplacedAfterItsLongWaitIsGivenTheTimeToServe) {
  for (const uint16_t node : {1, 2}) bench.Break(nodes[node]);
  TakeOver();
  const StreamId spare = bench.JoinNode(200);
  bench.Ask(spare, MasterBench::Serve(7003));
  const uint64_t request = JoinDamaged(1);
  bench.Pass(20'000, {nodes[0], nodes[1], spare, a, b});
  StartNode(2);
  AllHold();
  EXPECT_NE(PlaceOf(1, request), nullptr);
  TakeOver();
  for (const RegionPlacement& region : view().regions) EXPECT_EQ(region.nodes[2], NodeId{1});
}

// All of it was stopped, and is started again: there is no agent yet, and none can come before.
class MasterDamagedAtStartTest : public MasterDamagedTest {
 protected:
  MasterDamagedAtStartTest() {
    for (const StreamId agent : {a, b}) {
      bench.Ask(agent, LeaveWorkerRequest{worker[agent].worker, worker[agent].index.value});
      TakeOver();
    }
    for (const StreamId agent : {a, b}) bench.Ask(agent, LeaveRequest());
    for (const StreamId node : nodes) bench.Ask(node, LeaveRequest());
    bench.Start();
  }
};

TEST_F(MasterDamagedAtStartTest, ItIsPutOutAsSoonAsTheOthersServeWithoutAnybodyWhoWorks) {
  const uint64_t request = JoinDamaged(1);
  EXPECT_EQ(Status().waiting_for,
            "the memory of memory node 1 is damaged, and 4 regions have no majority without it: "
            "memory nodes must be back: 0, 2");
  StartNode(0);
  EXPECT_FALSE(bench.disk.nodes[1].out);
  StartNode(2);
  EXPECT_TRUE(bench.disk.nodes[1].out);
  ASSERT_NE(PlaceOf(1, request), nullptr);
  EXPECT_TRUE(PlaceOf(1, request)->view->IsOut(NodeId{1}));
  Serve(1);
  EXPECT_EQ(StateOf(1), "copying");
  EXPECT_EQ(Status().waiting_for, "repairs need an agent with workers");
}

TEST_F(MasterDamagedAtStartTest, NodesThatOnlyComeLateAreNotPutOutWithIt) {
  CoordinatorOptions four;
  four.nodes = 4;
  bench = MasterBench(four);
  nodes = bench.Form(4);
  bench.Start();
  const uint64_t request = JoinDamaged(1);
  StartNode(0);
  StartNode(2);
  // Node 3 is away, and some regions have two replicas on 1 and 3.
  bench.Pass(20'000, {nodes[0], nodes[1], nodes[2]});
  EXPECT_EQ(PlaceOf(1, request), nullptr);
  StartNode(3);
  EXPECT_NE(PlaceOf(1, request), nullptr);
  EXPECT_FALSE(bench.disk.nodes[3].out);
}

TEST_F(MasterDamagedAtStartTest, AMasterThatIsRestartedIsToldAgain) {
  JoinDamaged(1);
  StartNode(0);
  bench.Start();
  EXPECT_FALSE(bench.disk.nodes[1].out);
  StartNode(0);
  const uint64_t request = JoinDamaged(1);
  EXPECT_EQ(StateOf(1), "damaged");
  StartNode(2);
  EXPECT_NE(PlaceOf(1, request), nullptr);
  // And once it is out it stays so.
  bench.Start();
  EXPECT_TRUE(view().IsOut(NodeId{1}));
  EXPECT_NE(PlaceOf(1, JoinDamaged(1)), nullptr);
}

}  // namespace
}  // namespace onetrip
