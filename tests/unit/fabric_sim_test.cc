// The sim fabric adds to the contract: faults on demand, and an observer that sees all.
#include <gtest/gtest.h>

#include <vector>

#include "client_core/coro/sync.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {
namespace {

constexpr NodeId kNode0{0};

Task<void> PostAndNote(Fabric* fabric, RoundTripPtr rt, std::vector<Status>* answers) {
  answers->push_back(co_await fabric->Post(rt));
}

class FabricSimTest : public testing::Test {
 protected:
  // A batch of one increment of word 0, in the background.
  void Increment(SimFabric& fabric, SimProcess& process) {
    RoundTripPtr rt = fabric.NewRoundTrip();
    rt->Faa({kNode0, 0}, 1);
    process.Spawn(gate_, PostAndNote(&fabric, std::move(rt), &answers_));
  }

  SimExecutor world_{7};
  BareEndpoint node_{4096};
  SimNetwork network_{world_, {&node_}, SimFabricOptions()};
  SimProcess process_{world_, 1};
  Gate gate_{world_};
  std::vector<Status> answers_;
};

TEST_F(FabricSimTest, ABrokenChannelFailsAtOnceAndSettlesLater) {
  SimFabric fabric(process_, network_);
  network_.SetSlowness(kNode0, 1000);
  Increment(fabric, process_);
  EXPECT_TRUE(fabric.settled());
  fabric.BreakChannel(kNode0);
  EXPECT_FALSE(fabric.settled());
  world_.RunUntil(network_.options().failure_ns);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(fabric.settled());
  EXPECT_EQ(node_.word(0), 0U);
  // Broken again, it fails nothing twice.
  fabric.BreakChannel(kNode0);
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_TRUE(fabric.settled());
  EXPECT_EQ(answers_.size(), 1U);
}

TEST_F(FabricSimTest, ABrokenChannelAppliesAPrefixAndFailsAll) {
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  for (int round = 0; round < 50; ++round) {
    SimFabric fabric(process_, network_);
    node_.set_word(0, 0);
    answers_.clear();
    for (int i = 0; i < 10; ++i) Increment(fabric, process_);
    fabric.BreakChannel(kNode0);
    EXPECT_TRUE(world_.RunUntilIdle());
    ASSERT_EQ(answers_.size(), 10U);
    for (const Status& answer : answers_) {
      EXPECT_EQ(answer.code(), StatusCode::kUnknownOutcome);
    }
    least = std::min(least, node_.word(0));
    most = std::max(most, node_.word(0));
    // A round trip that is posted from then on travels on a new connection.
    Increment(fabric, process_);
    EXPECT_TRUE(world_.RunUntilIdle());
    EXPECT_TRUE(answers_.back().ok());
  }
  EXPECT_LE(least, 1U);
  EXPECT_GE(most, 9U);
}

TEST_F(FabricSimTest, AFencedWorkerChangesNothingMore) {
  SimFabric fabric(process_, network_);
  SimFabric other(process_, network_);
  Increment(fabric, process_);
  fabric.Fence(kNode0);
  Increment(fabric, process_);
  Increment(other, process_);
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_EQ(node_.word(0), 1U);
  ASSERT_EQ(answers_.size(), 3U);
  EXPECT_EQ(std::count_if(answers_.begin(), answers_.end(),
                          [](const Status& status) { return status.ok(); }),
            1);
}

TEST_F(FabricSimTest, APausedNodeAnswersWhenItIsResumed) {
  SimFabric fabric(process_, network_);
  network_.PauseNode(kNode0);
  Increment(fabric, process_);
  world_.RunUntil(1'000'000);
  EXPECT_EQ(node_.word(0), 0U);
  EXPECT_TRUE(answers_.empty());
  network_.ResumeNode(kNode0);
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_EQ(node_.word(0), 1U);
  EXPECT_EQ(answers_.size(), 1U);
}

TEST_F(FabricSimTest, WhatADeadWorkerPostedStillTakesEffect) {
  SimFabric fabric(process_, network_);
  Increment(fabric, process_);
  process_.Kill();
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_EQ(node_.word(0), 1U);
  EXPECT_TRUE(answers_.empty());
  process_.DropBackground();
}

TEST_F(FabricSimTest, ASlowNodeTakesAsManyTimesAsLong) {
  SimFabric fabric(process_, network_);
  network_.SetSlowness(kNode0, 10);
  Increment(fabric, process_);
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_GE(world_.NowNs(), 2 * 10 * network_.options().latency_min_ns);
}

TEST_F(FabricSimTest, TheObserverSeesEveryStepInOrder) {
  struct Note final : SimObserver {
    void Posted(const SimFabric&, NodeId, const RoundTrip& rt, uint64_t ops) override {
      text += "post " + std::to_string(rt.size()) + "/" + std::to_string(ops) + " ";
    }
    void Applied(const SimFabric&, NodeId, const FabricOp& op) override {
      text += op.kind == FabricOpKind::kFaa ? "faa " : "read ";
    }
    void Answered(const SimFabric&, NodeId, bool ok) override { text += ok ? "ok " : "lost "; }
    std::string text;
  } note;
  network_.set_observer(&note);
  SimFabric fabric(process_, network_);
  RoundTripPtr rt = fabric.NewRoundTrip();
  rt->Faa({kNode0, 0}, 1);
  rt->Read({kNode0, 8}, 256);
  process_.Spawn(gate_, PostAndNote(&fabric, std::move(rt), &answers_));
  EXPECT_TRUE(world_.RunUntilIdle());
  EXPECT_EQ(note.text, "post 2/3 faa read ok ");
  network_.set_observer(nullptr);
}

}  // namespace
}  // namespace onetrip
