// A node is evicted, on every backend: what waits for it ends, what comes later is refused, the
// other nodes answer, and the node can be readmitted.
#include <future>

#include "tests/support/fabric_backends.h"

namespace onetrip {
namespace {

class FabricAsideTest : public FabricTest {};

TEST_P(FabricAsideTest, ANodeLeftAsideIsRefusedUntilItIsTakenBack) {
  // Channels may open with the first thing that is posted.
  RoundTripPtr first = fabric_->NewRoundTrip();
  first->ReadWord({kNode0, 0});
  first->ReadWord({kNode1, 0});
  ASSERT_TRUE(Post(first).ok());
  RoundTripPtr rt = fabric_->NewRoundTrip();
  rt->WriteWord({kNode0, 0}, 1);
  rt->WriteWord({kNode1, 0}, 2);
  EXPECT_TRUE(fabric_->Reaches(kNode0));
  fabric_->SetEvicted(kNode0, true);
  EXPECT_FALSE(fabric_->Reaches(kNode0));
  EXPECT_TRUE(fabric_->Reaches(kNode1));
  EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(rt->op(1).ok);
  EXPECT_EQ(node(0).word(0), 0U) << "nothing was sent";
  EXPECT_EQ(node(1).word(0), 2U);
  RoundTripPtr alone = fabric_->NewRoundTrip();
  alone->WriteWord({kNode0, 0}, 3);
  EXPECT_EQ(Post(alone).code(), StatusCode::kUnknownOutcome);
  EXPECT_EQ(node(0).word(0), 0U);
  EXPECT_EQ(BlockOn(executor(), fabric_->Control(kNode0, ControlRequest())).status().code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(BlockOn(executor(), fabric_->Control(kNode1, ControlRequest())).ok());
  EXPECT_TRUE(fabric_->settled());

  fabric_->SetEvicted(kNode0, true);
  fabric_->SetEvicted(kNode0, false);
  EXPECT_TRUE(Post(rt).ok());
  EXPECT_TRUE(fabric_->Reaches(kNode0));
  EXPECT_EQ(node(0).word(0), 1U);
  EXPECT_TRUE(BlockOn(executor(), fabric_->Control(kNode0, ControlRequest())).ok());
  EXPECT_TRUE(fabric_->settled());
}

TEST_P(FabricAsideTest, ANodeThatNobodyKnowsYetMayBeLeftAside) {
  if (std::string(GetParam().name).starts_with("sim")) return;  // has all its nodes from the start
  constexpr NodeId kUnknown{9};
  EXPECT_FALSE(fabric_->Reaches(kUnknown));
  fabric_->SetEvicted(kUnknown, true);
  RoundTripPtr rt = fabric_->NewRoundTrip();
  rt->WriteWord({kUnknown, 0}, 1);
  EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome);
  fabric_->SetEvicted(kUnknown, false);
  EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_EQ(BlockOn(executor(), fabric_->Control(kUnknown, ControlRequest())).status().code(),
            StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricAsideTest, testing::ValuesIn(kFabricBackends),
                         [](const auto& info) { return std::string(info.param.name); });

// Tests of operations that are under way when the node is evicted: on backends where one can be.
Task<void> PostAndNote(Fabric* fabric, RoundTripPtr rt, Status* status) {
  *status = co_await fabric->Post(rt);
}
Task<void> ControlAndNote(Fabric* fabric, NodeId node, Status* status) {
  const Result<ControlReply> reply = co_await fabric->Control(node, ControlRequest());
  *status = reply.status();
}
Task<void> LeaveSoon(Executor* executor, Fabric* fabric, NodeId node) {
  co_await executor->Yield();
  fabric->SetEvicted(node, true);
}

constexpr NodeId kStuck{0};
constexpr NodeId kFine{1};

TEST(SimAsideTest, WhatWaitsForThePausedNodeFailsAtOnceAndNothingIsAppliedOnceItIsTakenBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimExecutor executor(seed);
    BareEndpoint stuck(4096);
    BareEndpoint fine(4096);
    SimNetwork network(executor, {&stuck, &fine}, SimFabricOptions());
    SimFabric fabric(executor, network);
    network.PauseNode(kStuck);
    Status posted;
    Status asked;
    RoundTripPtr rt = fabric.NewRoundTrip();
    rt->Faa({kStuck, 0}, 1);
    rt->Faa({kFine, 0}, 1);
    std::vector<Task<void>> tasks;
    tasks.push_back(PostAndNote(&fabric, rt, &posted));
    tasks.push_back(ControlAndNote(&fabric, kStuck, &asked));
    tasks.push_back(LeaveSoon(&executor, &fabric, kStuck));
    BlockOn(executor, AwaitAll(std::move(tasks)));
    EXPECT_EQ(posted.code(), StatusCode::kUnknownOutcome);
    EXPECT_FALSE(asked.ok());
    EXPECT_FALSE(rt->op(0).ok);
    EXPECT_TRUE(rt->op(1).ok);
    EXPECT_TRUE(fabric.settled());
    EXPECT_EQ(stuck.word(0), 0U);
    // It answers again, and has closed the channel: what it was sent is lost.
    fabric.SetEvicted(kStuck, false);
    network.ResumeNode(kStuck);
    executor.RunUntil(executor.NowNs() + 1'000'000);
    EXPECT_EQ(stuck.word(0), 0U) << "seed " << seed;
    EXPECT_TRUE(fabric.settled());
    RoundTripPtr again = fabric.NewRoundTrip();
    again->Faa({kStuck, 0}, 1);
    EXPECT_TRUE(BlockOn(executor, PostOne(&fabric, again)).ok());
    EXPECT_EQ(stuck.word(0), 1U);
  }
}

// While the node stays evicted, what was on its way may take effect: some seed shows it.
TEST(SimAsideTest, WhatWasOnItsWayMayStillTakeEffect) {
  int applied = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SimExecutor executor(seed);
    BareEndpoint stuck(4096);
    SimNetwork network(executor, {&stuck}, SimFabricOptions());
    SimFabric fabric(executor, network);
    Status posted;
    RoundTripPtr rt = fabric.NewRoundTrip();
    rt->Faa({kStuck, 0}, 1);
    std::vector<Task<void>> tasks;
    tasks.push_back(PostAndNote(&fabric, rt, &posted));
    tasks.push_back(LeaveSoon(&executor, &fabric, kStuck));
    BlockOn(executor, AwaitAll(std::move(tasks)));
    EXPECT_EQ(posted.code(), StatusCode::kUnknownOutcome);
    executor.RunUntil(executor.NowNs() + 1'000'000);
    applied += static_cast<int>(stuck.word(0));
  }
  EXPECT_GT(applied, 0);
  EXPECT_LT(applied, 40);
}

// A memory node that hangs in a control request until it is let go.
class HangingEndpoint final : public MemoryEndpoint {
 public:
  [[nodiscard]] std::byte* base() const override { return bytes_.base(); }
  [[nodiscard]] uint64_t bytes() const override { return bytes_.bytes(); }
  ControlReply Handle(const ControlRequest& request) override {
    if (!hung_) {
      hung_ = true;
      go_on_.get_future().wait();
    }
    return {ControlReply::Outcome::kDone, request.block};
  }
  void GoOn() { go_on_.set_value(); }
  [[nodiscard]] uint64_t word(uint64_t offset) const { return bytes_.word(offset); }

 private:
  BareEndpoint bytes_{4096};
  bool hung_ = false;  // by the server's thread
  std::promise<void> go_on_;
};

TEST(TcpAsideTest, WhatWaitsForAHangingNodeFailsAtOnceAndANewChannelIsMadeLater) {
  SystemClock clock;
  LoopExecutor executor(clock, 1);
  HangingEndpoint hanging;
  std::string reason;
  auto server = TcpServer::Start(hanging, Secret(), {.cluster = 7, .node = kStuck}, &reason);
  ASSERT_TRUE(server.ok()) << reason;
  TcpFabric fabric(executor, {.cluster = 7, .worker = WorkerId{1}}, Secret(),
                   {.reply_timeout_ms = 600'000});
  ASSERT_TRUE(fabric.SetNode(kStuck, "127.0.0.1", (*server)->port(), &reason).ok());
  ASSERT_TRUE(BlockOn(executor, fabric.Connected(kStuck, executor.NowNs() + 60'000'000'000)).ok());
  Status posted;
  Status asked;
  RoundTripPtr rt = fabric.NewRoundTrip();
  rt->Faa({kStuck, 0}, 1);
  std::vector<Task<void>> tasks;
  tasks.push_back(ControlAndNote(&fabric, kStuck, &asked));
  tasks.push_back(PostAndNote(&fabric, rt, &posted));
  tasks.push_back(LeaveSoon(&executor, &fabric, kStuck));
  BlockOn(executor, AwaitAll(std::move(tasks)));
  EXPECT_FALSE(asked.ok());
  EXPECT_EQ(posted.code(), StatusCode::kUnknownOutcome);
  EXPECT_TRUE(fabric.settled());
  // No process connects meanwhile, not even when the address is told again.
  ASSERT_TRUE(fabric.SetNode(kStuck, "127.0.0.1", (*server)->port(), &reason).ok());
  EXPECT_EQ(BlockOn(executor, fabric.Connected(kStuck, 0)).code(), StatusCode::kUnavailable);

  hanging.GoOn();
  fabric.SetEvicted(kStuck, false);
  RoundTripPtr again = fabric.NewRoundTrip();
  again->WriteWord({kStuck, 8}, 5);
  EXPECT_TRUE(BlockOn(executor, PostOne(&fabric, again)).ok());
  EXPECT_EQ(hanging.word(8), 5U);
  EXPECT_EQ(fabric.stats().connections, 2U);
}

}  // namespace
}  // namespace onetrip
