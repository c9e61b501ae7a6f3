// More memory nodes are lost for good than the regions can do without: the master waits until the
// operator accepts it.
#include <gmock/gmock.h>

#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

class MasterLossTest : public MasterRepairTest {
 protected:
  void LoseTwo() {
    bench.Break(nodes[0]);
    bench.Break(nodes[1]);
    // The quiesce for the first one has ended.
    TakeOver();
    Pass(100);
  }
  // The others live on.
  void Pass(uint64_t ms) { bench.Pass(ms, {nodes[2], a, b}); }
  ReplyMessage Accept(bool confirmed) {
    const StreamId tool = bench.Attend(MemberKind::kOther);
    const uint64_t id = bench.Ask(tool, AcceptLossRequest{confirmed});
    const ReplyMessage* reply = bench.ReplyTo(tool, id);
    return reply == nullptr ? ReplyMessage{} : *reply;
  }
};

TEST_F(MasterLossTest, ThereIsNothingToAcceptWhileRegionsHaveAMajority) {
  EXPECT_EQ(Accept(true).code, StatusCode::kUnavailable);
  LoseNode1();
  EXPECT_EQ(Accept(true).code, StatusCode::kUnavailable);
  EXPECT_THAT(Accept(true).reason, HasSubstr("goes on by itself"));
}

TEST_F(MasterLossTest, WithoutAWordNothingIsGivenUp) {
  LoseTwo();
  EXPECT_EQ(Status().status.state, "not serving");
  EXPECT_THAT(Status().waiting_for, HasSubstr("if it is lost for good: onetrip node accept-loss"));
  const ReplyMessage reply = Accept(false);
  EXPECT_EQ(reply.code, StatusCode::kCorrupt);
  EXPECT_THAT(reply.reason, HasSubstr("memory nodes 0, 1 would be given up: of 4 of 4 regions"));
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(Status().status.state, "not serving");
}

TEST_F(MasterLossTest, OnceAcceptedTheClusterGoesOnWithWhatIsLeft) {
  LoseTwo();
  ASSERT_EQ(Accept(true).code, StatusCode::kOk);
  Pass(10);
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->leave, (std::vector<NodeId>{NodeId{0}, NodeId{1}}));
  AllHold();
  TakeOver();
  for (const RegionPlacement& region : view().regions) {
    EXPECT_EQ(region.missing, 2);
    EXPECT_EQ(region.nodes[0], NodeId{2});
  }
  EXPECT_EQ(Status().status.state, "degraded");
  std::string reason;
  EXPECT_TRUE(
      Coordinator::Create(bench.options, bench.disk, MasterBench::kCluster, 9, 0, 0, &reason).ok())
      << "a master that is started again: " << reason;
  // An agent looks at what is left, key by key: it may name what only the others had.
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  EXPECT_TRUE(RepairOf(a)->order.damaged);
  Resolve();
  Answer(a, RepairKind::kScrubRegisters);
  // A node that comes back is copied to.
  StartNode1();
  for (int waits = 0; waits < 20 && HoldOf(a) == nullptr; ++waits) {
    TakeOver();
    bench.Pass(100, {nodes[1], nodes[2], a, b});
  }
  ASSERT_NE(HoldOf(a), nullptr);
  AllHold();
  Answer(a, RepairKind::kCopyRegion);
  TakeOver();
  EXPECT_EQ(view().regions[0].missing, 1);
  // Without the last one there is nothing.
  bench.Break(nodes[2]);
  bench.Pass(100, {nodes[1], a, b});
  EXPECT_EQ(Status().status.state, "not serving");
  EXPECT_EQ(Accept(true).code, StatusCode::kInvalidArgument);
  EXPECT_THAT(Accept(true).reason, HasSubstr("nothing to go on with"));
}

TEST_F(MasterLossTest, ANodeThatServesAgainTakesTheAcceptanceBack) {
  LoseTwo();
  ASSERT_EQ(Accept(true).code, StatusCode::kOk);
  StartNode1();
  TakeOver();
  AllHold();
  TakeOver();
  // Only the other one is out.
  EXPECT_EQ(view().regions[0].missing, 1);
  bench.Break(nodes[1]);
  Pass(100);
  EXPECT_EQ(Status().status.state, "not serving");
  EXPECT_FALSE(view().IsOut(NodeId{1}));
}

}  // namespace
}  // namespace onetrip
