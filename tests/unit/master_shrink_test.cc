// Regions that are given up for nodes that drain.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/master_bench.h"

namespace onetrip {
namespace {

CoordinatorOptions WithNodes(uint16_t nodes) {
  CoordinatorOptions options;
  options.nodes = nodes;
  return options;
}

// Four memory nodes of four places, which are five regions; three have room for four.
class MasterShrinkTest : public testing::Test {
 protected:
  explicit MasterShrinkTest(uint16_t count = 4) : bench(WithNodes(count)) {
    nodes = bench.Form(count);
    for (StreamId* const agent : {&a, &b}) *agent = bench.AddAgent();
    for (const StreamId agent : {a, b}) bench.AddWorker(agent, {a, b});
    tool = bench.Attend(MemberKind::kOther);
  }

  [[nodiscard]] const View& view() const { return bench.coordinator.view(); }
  [[nodiscard]] StatusReply Status() const { return bench.coordinator.Status(bench.now_us); }
  ReplyMessage Wish(uint32_t node, NodeWish wish) {
    const uint64_t id = bench.Ask(tool, MoveRegionsRequest{node, wish});
    const ReplyMessage* const reply = bench.ReplyTo(tool, id);
    return reply == nullptr ? ReplyMessage{0, StatusCode::kUnavailable, "no answer", {}} : *reply;
  }
  // Every node has the newest view; `leaving` blocks of the first are in regions that leave.
  void Report(uint64_t granted = 10, uint64_t leaving = 0) {
    for (const StreamId node : nodes) {
      RenewMessage renew;
      renew.report.node = {.blocks = 64,
                           .granted_blocks = granted,
                           .reserve_blocks = 4,
                           .leaving_blocks = node == nodes[0] ? leaving : 0,
                           .view_epoch = bench.SentEpoch(node)};
      bench.Say(node, renew);
    }
    for (const StreamId agent : {a, b}) bench.Say(agent, RenewMessage{});
  }
  void Pass(uint64_t ms, uint64_t leaving = 0) {
    for (uint64_t passed = 0; passed < ms; passed += 100) {
      Report(10, leaving);
      bench.Advance(100);
    }
  }
  const HoldForViewMessage* HoldOf(StreamId agent) const {
    const auto* hold = bench.Last<HoldForViewMessage>(agent);
    return hold == nullptr || hold->epoch <= view().epoch ? nullptr : hold;
  }
  void TakeOver() {
    for (const StreamId agent : {a, b}) bench.TakeOver(agent);
  }
  // All quiesce everything, as soon as they are asked.
  void AllHold(uint64_t leaving = 0) {
    for (int waits = 0; waits < 40 && HoldOf(a) == nullptr; ++waits) {
      TakeOver();
      Pass(100, leaving);
    }
    for (const StreamId agent : {a, b}) {
      ASSERT_NE(HoldOf(agent), nullptr);
      EXPECT_EQ(HoldOf(agent)->kind, HoldKind::kAll);
      bench.Say(agent, ViewHeldMessage{HoldOf(agent)->epoch});
    }
  }
  // Whatever is asked of an agent is done at once, for so long.
  void Serve(uint64_t ms) {
    for (uint64_t passed = 0; passed < ms; passed += 100) {
      TakeOver();
      for (const StreamId agent : {a, b}) {
        if (HoldOf(agent) != nullptr) bench.Say(agent, ViewHeldMessage{HoldOf(agent)->epoch});
      }
      for (const StreamId agent : {a, b}) {
        const RepairMessage* const repair = RepairOf(agent);
        if (repair == nullptr) continue;
        answered.insert({agent, repair->id});
        bench.Say(agent, RepairedMessage{repair->id, true, ""});
      }
      Pass(100);
    }
  }
  const RepairMessage* RepairOf(StreamId agent) const {
    const auto* repair = bench.Last<RepairMessage>(agent);
    return repair == nullptr || answered.contains({agent, repair->id}) ? nullptr : repair;
  }
  // The agent that was asked answers.
  void Answer(RepairKind kind, bool done = true) {
    for (const StreamId agent : {a, b}) {
      const RepairMessage* const repair = RepairOf(agent);
      if (repair == nullptr) continue;
      ASSERT_EQ(repair->order.kind, kind);
      answered.insert({agent, repair->id});
      bench.Say(agent, RepairedMessage{repair->id, done, done ? "" : "the test says no"});
      return;
    }
    ADD_FAILURE() << "nobody was asked";
  }
  // Node 3 drains, one region leaves, and the index has left it.
  void Leave() {
    Report();
    ASSERT_EQ(Wish(3, NodeWish::kDrain).code, StatusCode::kOk);
    AllHold();
    TakeOver();
    AllHold();
    Answer(RepairKind::kMoveSubtables);
    TakeOver();
  }

  MasterBench bench;
  std::vector<StreamId> nodes;
  StreamId a = 0;
  StreamId b = 0;
  StreamId tool = 0;
  std::set<std::pair<StreamId, uint64_t>> answered;
};

TEST_F(MasterShrinkTest, WhatTheOthersLackRoomForLeavesStepByStepAndIsGoneWhenItIsEmpty) {
  ASSERT_EQ(view().regions.size(), 5U);
  const std::vector<RegionPlacement> before = view().regions;
  Report();
  const uint64_t capacity = Status().status.usage->capacity_bytes;
  EXPECT_EQ(Wish(3, NodeWish::kDrain).code, StatusCode::kOk);
  EXPECT_TRUE(bench.disk.cluster.may_shrink);
  AllHold();
  EXPECT_EQ(view().leaving, 1U);
  EXPECT_EQ(Status().status.usage->capacity_bytes, capacity - kRegionBytes)
      << "nobody allocates there any more";
  EXPECT_TRUE(view().records_only);
  EXPECT_EQ(bench.disk.cluster.leaving, 1U);
  EXPECT_NE(Status().moving.find("the capacity shrinks from 80 MiB to 64 MiB"), std::string::npos)
      << Status().moving;
  TakeOver();
  AllHold();
  ASSERT_NE(RepairOf(a), nullptr);
  EXPECT_EQ(RepairOf(a)->order.kind, RepairKind::kMoveSubtables);
  EXPECT_EQ(RepairOf(a)->order.view->directory, 1U);
  EXPECT_EQ(view().directory, 0U) << "not before it is written";
  Answer(RepairKind::kMoveSubtables);
  EXPECT_EQ(view().directory, 1U);
  EXPECT_EQ(bench.disk.cluster.directory, 1U);
  EXPECT_TRUE(bench.disk.cluster.index_left);
  TakeOver();
  Answer(RepairKind::kEndRegisters);
  EXPECT_EQ(view().regions, before);
  Report();
  AllHold();
  EXPECT_EQ(view().regions.size(), 4U);
  EXPECT_EQ(view().leaving, 0U);
  EXPECT_EQ(bench.disk.regions, view().regions);
  EXPECT_TRUE(std::equal(view().regions.begin(), view().regions.end(), before.begin()));
  EXPECT_TRUE(std::any_of(bench.log.begin(), bench.log.end(), [](const std::string& line) {
    return line == "the capacity has shrunk by 1 regions from 80 MiB to 64 MiB";
  }));
  // The rest of the node moves, as in any drain.
  TakeOver();
  AllHold();
  Answer(RepairKind::kMoveRegion);
}

TEST_F(MasterShrinkTest, ADrainIsRefusedIfWhatIsInUseDoesNotFitOrIsNotKnown) {
  ReplyMessage reply = Wish(3, NodeWish::kDrain);
  EXPECT_EQ(reply.code, StatusCode::kInvalidArgument);
  EXPECT_NE(reply.reason.find("is not known yet"), std::string::npos) << reply.reason;
  Report(/*granted=*/62);
  reply = Wish(3, NodeWish::kDrain);
  EXPECT_EQ(reply.code, StatusCode::kInvalidArgument);
  EXPECT_NE(reply.reason.find("62 MiB are in use"), std::string::npos) << reply.reason;
  EXPECT_NE(reply.reason.find("would be left"), std::string::npos) << reply.reason;
  EXPECT_FALSE(bench.disk.cluster.may_shrink);
  EXPECT_EQ(bench.disk.nodes[3].wish, NodeWish::kNone);
}

TEST_F(MasterShrinkTest, NothingIsCutWhileABlockIsInUseAndOthersWalkAgain) {
  Leave();
  ASSERT_NE(RepairOf(a), nullptr);
  Answer(RepairKind::kEndRegisters);
  const uint64_t walked = bench.Last<RepairMessage>(a)->order.walk;
  Pass(1000, /*leaving=*/2);
  EXPECT_EQ(HoldOf(a), nullptr);
  EXPECT_EQ(view().regions.size(), 5U);
  EXPECT_NE(Status().moving.find("what is in 2 blocks moves first"), std::string::npos)
      << Status().moving;
  Pass(bench.options.leave_again_ms, /*leaving=*/2);
  ASSERT_NE(RepairOf(b), nullptr) << "it has blocks of its own";
  EXPECT_EQ(RepairOf(b)->order.kind, RepairKind::kEndRegisters);
  EXPECT_GT(RepairOf(b)->order.walk, walked);
  Answer(RepairKind::kEndRegisters);
  AllHold(/*leaving=*/0);
  EXPECT_EQ(view().regions.size(), 4U);
}

TEST_F(MasterShrinkTest, WhatANodeCountedUnderAnOlderViewSaysNothing) {
  Report();
  const std::vector<uint64_t> epochs(1, bench.SentEpoch(nodes[0]));
  Leave();
  Answer(RepairKind::kEndRegisters);
  for (const StreamId node : nodes) {
    RenewMessage renew;
    renew.report.node = {.blocks = 64, .granted_blocks = 1, .view_epoch = epochs[0]};
    bench.Say(node, renew);
  }
  for (int i = 0; i < 5; ++i) {
    for (const StreamId agent : {a, b}) bench.Say(agent, RenewMessage{});
    for (const StreamId node : nodes) {
      RenewMessage renew;
      renew.report.node = {.blocks = 64, .granted_blocks = 1, .view_epoch = epochs[0]};
      bench.Say(node, renew);
    }
    bench.Advance(100);
  }
  EXPECT_EQ(HoldOf(a), nullptr);
}

TEST_F(MasterShrinkTest, AMoveOfTheIndexThatFailsChangesNothing) {
  Report();
  ASSERT_EQ(Wish(3, NodeWish::kDrain).code, StatusCode::kOk);
  AllHold();
  TakeOver();
  AllHold();
  Answer(RepairKind::kMoveSubtables, /*done=*/false);
  EXPECT_EQ(view().directory, 0U);
  EXPECT_FALSE(bench.disk.cluster.index_left);
  EXPECT_EQ(HoldOf(a), nullptr);
  TakeOver();
  Pass(500);
  EXPECT_EQ(HoldOf(a), nullptr) << "not at once: all stand still for it";
  Answer(RepairKind::kEndRegisters);
  AllHold();
  Answer(RepairKind::kMoveSubtables);
  EXPECT_EQ(view().directory, 1U);
}

TEST_F(MasterShrinkTest, WhoeverKeepsTheNodeKeepsItsRegions) {
  Leave();
  EXPECT_EQ(Wish(3, NodeWish::kNone).code, StatusCode::kOk);
  if (RepairOf(a) != nullptr || RepairOf(b) != nullptr) Answer(RepairKind::kEndRegisters);
  TakeOver();
  Pass(300);
  EXPECT_EQ(view().regions.size(), 5U);
  EXPECT_EQ(view().leaving, 0U);
  EXPECT_FALSE(view().records_only);
  EXPECT_FALSE(bench.disk.cluster.may_shrink);
  EXPECT_EQ(view().directory, 1U) << "the index stays where it is";
  EXPECT_EQ(Status().moving, "");
}

// Five memory nodes of four places, which are six regions.
class MasterShrinkLossTest : public MasterShrinkTest {
 protected:
  MasterShrinkLossTest() : MasterShrinkTest(5) {}
};

// Three nodes have room for four regions. What node 3 had finds none until two have left, so their
// leaving does not wait for its copies.
TEST_F(MasterShrinkLossTest, ANodeDrainsThoughWhatAnotherHadHasNoRoomLeft) {
  ASSERT_EQ(view().regions.size(), 6U);
  bench.Break(nodes[3]);
  nodes.erase(nodes.begin() + 3);
  Serve(bench.options.replace_after_ms + 5'000);
  const auto lacks = [](const RegionPlacement& region) { return region.missing != 0; };
  ASSERT_TRUE(std::any_of(view().regions.begin(), view().regions.end(), lacks));
  ASSERT_EQ(Wish(4, NodeWish::kDrain).code, StatusCode::kOk);
  Serve(60'000);
  EXPECT_EQ(view().regions.size(), 4U) << Status().moving;
  EXPECT_TRUE(std::none_of(view().regions.begin(), view().regions.end(), lacks));
  EXPECT_EQ(Status().moving, "");
  EXPECT_EQ(Status().status.state, "serving");
}

TEST_F(MasterShrinkTest, ARestartedMasterGoesOn) {
  Leave();
  const DurableState disk = bench.disk;
  bench.Start();
  EXPECT_EQ(view().leaving, 1U);
  EXPECT_EQ(view().directory, 1U);
  EXPECT_EQ(bench.disk.cluster.leaving, disk.cluster.leaving);
  EXPECT_TRUE(bench.disk.cluster.index_left);
}

}  // namespace
}  // namespace onetrip
