// GrpcMasterClient: joins, quiesces and views of several workers, each with an executor that the
// test turns by hand, so that nothing happens on a worker's thread that the test does not want.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/cluster/cluster_clock.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/grpc_master_client.h"
#include "client_core/control/offset_estimate.h"
#include "client_core/control/view_codec.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sync.h"
#include "tests/unit/control_fake_master.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(20);

View ViewOf(uint64_t epoch) {
  View view;
  view.cluster = FakeMaster::kCluster;
  view.epoch = Epoch{epoch};
  view.replicas = 1;
  view.node_count = 1;
  view.nodes.resize(1);
  view.regions.push_back({{NodeId{0}}, {0}});
  return view;
}

control::FromMaster Committed(uint64_t epoch) {
  control::FromMaster message;
  EncodeView(ViewOf(epoch), message.mutable_view_committed()->mutable_view());
  return message;
}

control::FromMaster HoldFor(uint64_t epoch) {
  control::FromMaster message;
  message.mutable_hold_for_view()->set_epoch(epoch);
  return message;
}

FakeMaster::Wanted Held(uint64_t epoch) {
  return [epoch](const control::FromMember& m) { return m.view_held().epoch() == epoch; };
}
FakeMaster::Wanted InForce(uint64_t epoch) {
  return [epoch](const control::FromMember& m) { return m.view_in_force().epoch() == epoch; };
}

control::FromMaster RepairOf(uint64_t id, uint64_t epoch) {
  control::FromMaster message;
  message.mutable_repair()->set_id(id);
  message.mutable_repair()->set_kind(control::Repair::RESOLVE_SLOTS);
  EncodeView(ViewOf(epoch), message.mutable_repair()->mutable_view());
  return message;
}
FakeMaster::Wanted Repaired(uint64_t id, bool done) {
  return [id, done](const control::FromMember& m) {
    return m.repaired().id() == id && m.repaired().done() == done;
  };
}

FakeMaster::Wanted Reached(uint64_t id) {
  return [id](const control::FromMember& m) { return m.reached().id() == id; };
}

// A worker that reaches the nodes that the test says, and does nothing else.
class FakeDuties final : public WorkerDuties {
 public:
  void LeaveNode(NodeId /*node*/) override {}
  void UseView(const View& /*view*/) override {}
  [[nodiscard]] bool Reaches(NodeId node) const override { return reached == node; }
  [[nodiscard]] bool quiet() const override { return is_quiet; }
  void Repair(RepairOrder /*order*/, DoneFn done) override { done(Status::Ok()); }
  std::optional<NodeId> reached;
  bool is_quiet = true;
};

Task<void> WaitWhileHeld(Quiesce* hold, uint64_t patience_ns, bool* released) {
  *released = co_await hold->Wait(hold->executor().NowNs() + patience_ns);
}

class MasterClientTest : public testing::Test {
 protected:
  // A worker without a thread: the test turns its executor.
  struct Worker {
    explicit Worker(uint64_t seed) : executor(clock, seed), hold(executor) {}
    // Turns while `undone`; false if that lasts too long.
    template <typename Predicate>
    bool TurnWhile(Predicate undone) {
      const auto end = std::chrono::steady_clock::now() + kPatience;
      // Turns that sleep are ended by a nudge, not by luck.
      while (undone() && std::chrono::steady_clock::now() < end) {
        executor.At(
            executor.NowNs() + 1'000'000, [](void*) {}, nullptr);
        executor.RunOnce();
      }
      return !undone();
    }
    SystemClock clock;
    LoopExecutor executor;
    Quiesce hold;
    Membership membership;
  };

  void Connect() {
    std::string reason;
    Result<std::unique_ptr<GrpcMasterClient>> client = GrpcMasterClient::Connect(
        master_.ClientOptions(), [this](const std::string& why) { expelled_.set_value(why); },
        &reason, [this] { ++new_views_; });
    ASSERT_TRUE(client.ok()) << reason;
    client_ = std::move(client.value());
  }

  Worker& Join() {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>(workers_.size() + 1));
    Result<Membership> joined = BlockOn(worker.executor, client_->Join(worker.hold));
    CHECK(joined.ok());
    worker.membership = joined.value();
    return worker;
  }

  // The session thread has handled what the master had sent before: it answers in order.
  void Barrier() {
    std::promise<bool> done;
    client_->TEST_Ask([&done](bool answered) { done.set_value(answered); });
    EXPECT_TRUE(done.get_future().get());
  }

  FakeMaster master_;
  std::promise<std::string> expelled_;
  std::atomic<int> new_views_{0};
  std::unique_ptr<GrpcMasterClient> client_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(MasterClientTest, WorkersJoinAndLeaveOnTheirOwnThreads) {
  Connect();
  Worker& first = Join();
  Worker& second = Join();
  EXPECT_EQ(first.membership.id.value, 1U);
  EXPECT_EQ(second.membership.index.value, 1U);
  // Without its thread a worker learns of nothing.
  Task<Status> leave = client_->Leave(first.hold, first.membership);
  ASSERT_FALSE(leave.Start());
  ASSERT_TRUE(master_.Await([](const auto& m) { return m.request().has_leave_worker(); }));
  Barrier();
  EXPECT_FALSE(leave.done());
  EXPECT_TRUE(first.TurnWhile([&] { return !leave.done(); }));
  EXPECT_TRUE(leave.TakeResult().ok());
  // One is left: this process must not say goodbye.
  client_->Stop();
  EXPECT_EQ(master_.Count([](const auto& m) { return m.request().has_leave(); }), 0U);
}

TEST_F(MasterClientTest, WhoHasNoWorkerLeftSaysGoodbye) {
  Connect();
  Worker& worker = Join();
  EXPECT_TRUE(BlockOn(worker.executor, client_->Leave(worker.hold, worker.membership)).ok());
  client_->Stop();
  EXPECT_EQ(master_.Count([](const auto& m) { return m.request().has_leave(); }), 1U);
}

TEST_F(MasterClientTest, AHoldIsAcknowledgedOnlyWhenEveryWorkerStandsStill) {
  Connect();
  Worker& quick = Join();
  Worker& slow = Join();
  master_.Send(HoldFor(7));
  Barrier();
  EXPECT_TRUE(quick.TurnWhile([&] { return !quick.hold.held(); }));
  Barrier();
  EXPECT_FALSE(slow.hold.held());
  EXPECT_EQ(master_.Count(Held(7)), 0U);
  EXPECT_TRUE(slow.TurnWhile([&] { return !slow.hold.held(); }));
  EXPECT_TRUE(master_.Await(Held(7)));
  EXPECT_EQ(client_->view_version(), 0U);
}

TEST_F(MasterClientTest, AViewIsInForceOnlyWhenEveryWorkerGoesOnUnderIt) {
  Connect();
  Worker& quick = Join();
  Worker& slow = Join();
  master_.Send(HoldFor(7));
  for (Worker* worker : {&quick, &slow}) {
    ASSERT_TRUE(worker->TurnWhile([&] { return !worker->hold.held(); }));
  }
  ASSERT_TRUE(master_.Await(Held(7)));
  bool released = false;
  Gate gate(quick.executor);
  quick.executor.Spawn(gate, WaitWhileHeld(&quick.hold, 60'000'000'000, &released));
  master_.Send(Committed(7));
  Barrier();
  EXPECT_EQ(client_->view_version(), 7U);
  EXPECT_EQ(client_->view()->regions.size(), 1U);
  EXPECT_EQ(new_views_.load(), 1);
  EXPECT_TRUE(quick.TurnWhile([&] { return gate.inside() > 0; }));
  EXPECT_TRUE(released);
  Barrier();
  EXPECT_TRUE(slow.hold.held());
  EXPECT_EQ(master_.Count(InForce(7)), 0U);
  EXPECT_TRUE(slow.TurnWhile([&] { return slow.hold.held(); }));
  EXPECT_TRUE(master_.Await(InForce(7)));
}

TEST_F(MasterClientTest, ANodeIsReachedWhenEveryWorkerReachesIt) {
  Connect();
  Worker& first = Join();
  Worker& second = Join();
  FakeDuties duties;
  second.hold.SetDuties(&duties);
  control::FromMaster message;
  message.mutable_reach()->set_id(31);
  message.mutable_reach()->set_node(4);
  master_.Send(message);
  Barrier();
  const auto turn = [&](Worker& worker) {
    for (int i = 0; i < 3; ++i) {
      bool slept = false;
      worker.executor.At(
          worker.executor.NowNs() + 2'000'000, [](void* flag) { *static_cast<bool*>(flag) = true; },
          &slept);
      ASSERT_TRUE(worker.TurnWhile([&] { return !slept; }));
    }
    Barrier();
  };
  turn(first);
  turn(second);
  EXPECT_EQ(master_.Count(Reached(31)), 0U);
  duties.reached = NodeId{4};
  turn(second);
  EXPECT_EQ(master_.Count(Reached(31)), 0U) << "the first has not started yet";
  first.hold.SetDuties(&duties);
  turn(first);
  EXPECT_EQ(master_.Count(Reached(31)), 1U);

  // A worker that ends will never reach it, nor use it.
  message.mutable_reach()->set_id(32);
  message.mutable_reach()->set_node(5);
  master_.Send(message);
  Barrier();
  turn(first);
  turn(second);
  EXPECT_EQ(master_.Count(Reached(32)), 0U);
  first.hold.SetDuties(nullptr);
  second.hold.SetDuties(nullptr);
  Barrier();
  EXPECT_EQ(master_.Count(Reached(32)), 1U);
}

TEST_F(MasterClientTest, AHoldOutlivesItsStreamAndAnOlderView) {
  Connect();
  Worker& worker = Join();
  master_.Send(HoldFor(7));
  ASSERT_TRUE(worker.TurnWhile([&] { return !worker.hold.held(); }));
  ASSERT_TRUE(master_.Await(Held(7)));
  master_.Stop();
  master_.Start();
  ASSERT_TRUE(master_.AwaitStreams(2));
  // A view from before the quiesce, as on any new stream: the commit may still come.
  master_.Send(Committed(6));
  ASSERT_TRUE(worker.TurnWhile([&] { return master_.Count(InForce(6)) == 0; }));
  EXPECT_TRUE(worker.hold.held());
  EXPECT_EQ(client_->view_version(), 6U);
  master_.Send(Committed(8));
  EXPECT_TRUE(worker.TurnWhile([&] { return worker.hold.held(); }));
  EXPECT_TRUE(master_.Await(InForce(8)));
}

TEST_F(MasterClientTest, AHoldThatIsAskedForAgainIsNotAcknowledgedBeforeTheWorkerIsStill) {
  Connect();
  Worker& worker = Join();
  FakeDuties duties;
  duties.is_quiet = false;
  worker.hold.SetDuties(&duties);
  control::FromMaster hold = HoldFor(7);
  hold.mutable_hold_for_view()->set_kind(control::HoldForView::ALL);
  master_.Send(hold);
  ASSERT_TRUE(worker.TurnWhile([&] { return !worker.hold.held(); }));
  master_.Stop();
  master_.Start();
  ASSERT_TRUE(master_.AwaitStreams(2));
  master_.Send(hold);
  Barrier();
  bool turned = false;
  worker.executor.Post([&] { turned = true; });
  ASSERT_TRUE(worker.TurnWhile([&] { return !turned; }));
  Barrier();
  EXPECT_EQ(master_.Count(Held(7)), 0U) << "something of the worker is still under way";
  duties.is_quiet = true;
  EXPECT_TRUE(worker.TurnWhile([&] { return master_.Count(Held(7)) == 0; }));
  EXPECT_EQ(master_.Count(Held(7)), 1U);
  worker.hold.SetDuties(nullptr);
}

TEST_F(MasterClientTest, WhoJoinsDuringAHoldIsHeldFromItsFirstTurn) {
  Connect();
  master_.Send(HoldFor(3));
  // There is no worker to quiesce.
  ASSERT_TRUE(master_.Await(Held(3)));
  Worker& worker = Join();
  EXPECT_TRUE(worker.TurnWhile([&] { return !worker.hold.held(); }));
  master_.Send(Committed(3));
  EXPECT_TRUE(worker.TurnWhile([&] { return worker.hold.held(); }));
}

TEST_F(MasterClientTest, AWorkerThatDiesIsNotWaitedFor) {
  Connect();
  Worker& stays = Join();
  Join();
  master_.Send(HoldFor(7));
  Barrier();
  ASSERT_TRUE(stays.TurnWhile([&] { return !stays.hold.held(); }));
  EXPECT_EQ(master_.Count(Held(7)), 0U);
  workers_.pop_back();  // with what was posted to it
  EXPECT_TRUE(master_.Await(Held(7)));
  master_.Send(Committed(7));
  ASSERT_TRUE(stays.TurnWhile([&] { return stays.hold.held(); }));
  EXPECT_TRUE(master_.Await(InForce(7)));
}

TEST_F(MasterClientTest, ARepairOfAWorkerThatDiesBeforeItBeginsIsAnswered) {
  Connect();
  Join();
  Worker& stays = Join();
  master_.Send(HoldFor(7));
  master_.Send(RepairOf(4, 7));
  Barrier();
  workers_.erase(workers_.begin());  // with what was posted to it
  EXPECT_TRUE(master_.Await(Repaired(4, false)));
  // It is gone, and was not told to the master: what comes next is answered, too.
  master_.Send(RepairOf(5, 7));
  EXPECT_TRUE(master_.Await(Repaired(5, false)));
  EXPECT_TRUE(stays.TurnWhile([&] { return !stays.hold.held(); }));
  master_.Send(Committed(7));
  EXPECT_TRUE(stays.TurnWhile([&] { return client_->view_version() != 7 || stays.hold.held(); }));
  EXPECT_TRUE(master_.Await(InForce(7)));
}

TEST_F(MasterClientTest, AWorkerDoesARepairAndTheViewComesAfterIt) {
  Connect();
  Worker& worker = Join();
  FakeDuties duties;
  worker.hold.SetDuties(&duties);
  master_.Send(HoldFor(7));
  master_.Send(RepairOf(4, 7));
  master_.Send(Committed(7));
  Barrier();
  EXPECT_EQ(client_->view_version(), 0U);
  EXPECT_TRUE(worker.TurnWhile([&] { return client_->view_version() != 7 || worker.hold.held(); }));
  EXPECT_TRUE(master_.Await(InForce(7)));
  EXPECT_EQ(master_.Count(Repaired(4, true)), 1U);
  worker.hold.SetDuties(nullptr);
}

TEST_F(MasterClientTest, AViewThatMakesNoSenseIsNotTaken) {
  Connect();
  master_.Send(Committed(2));
  ASSERT_TRUE(master_.Await(InForce(2)));
  control::FromMaster bad = Committed(3);
  bad.mutable_view_committed()->mutable_view()->mutable_regions(0)->set_nodes(0, 9);
  master_.Send(bad);
  Barrier();
  EXPECT_EQ(client_->view_version(), 2U);
  EXPECT_EQ(master_.Count(InForce(3)), 0U);
}

TEST_F(MasterClientTest, RegionsAreAddedAndThoseThatDoNotLeaveNeverGoAway) {
  Connect();
  Worker& worker = Join();
  control::FromMaster grown;
  View view = ViewOf(2);
  view.regions.push_back({{NodeId{0}}, {kRegionBytes}});
  EncodeView(view, grown.mutable_view_committed()->mutable_view());
  master_.Send(grown);
  const auto goes_on = [&](uint64_t epoch) {
    return worker.TurnWhile([&] { return client_->view_version() < epoch; });
  };
  ASSERT_TRUE(goes_on(2));
  EXPECT_EQ(client_->view()->regions.size(), 2U);
  master_.Send(Committed(3));
  view.epoch = Epoch{4};
  control::FromMaster again;
  EncodeView(view, again.mutable_view_committed()->mutable_view());
  master_.Send(again);
  ASSERT_TRUE(goes_on(4));
  EXPECT_EQ(client_->view()->regions.size(), 2U) << "view 3 was not taken";
  view.epoch = Epoch{5};
  view.leaving = 1;
  control::FromMaster leaving;
  EncodeView(view, leaving.mutable_view_committed()->mutable_view());
  master_.Send(leaving);
  ASSERT_TRUE(goes_on(5));
  master_.Send(Committed(6));
  ASSERT_TRUE(goes_on(6));
  EXPECT_EQ(client_->view()->regions.size(), 1U);
}

TEST_F(MasterClientTest, AFlushThatTheMasterNeverAnswersHasAnUnknownOutcome) {
  Connect();
  Worker& worker = Join();
  Task<Status> flush = client_->FlushKeyspaces(worker.hold, 3);
  ASSERT_FALSE(flush.Start());
  ASSERT_TRUE(master_.Await([](const auto& m) {
    return m.request().has_flush() && m.request().flush().database() == 3 &&
           !m.request().flush().all();
  }));
  master_.Stop();
  ASSERT_TRUE(worker.TurnWhile([&] { return !flush.done(); }));
  EXPECT_EQ(flush.TakeResult().code(), StatusCode::kUnknownOutcome);
  EXPECT_THAT(client_->last_error(), HasSubstr("broke"));
}

TEST_F(MasterClientTest, TheProcessHearsThatItWasExpelled) {
  Connect();
  control::FromMaster message;
  message.mutable_expelled()->set_reason("silence");
  master_.Send(message);
  EXPECT_EQ(expelled_.get_future().get(), "silence");
}

TEST_F(MasterClientTest, TheClusterClockIsTheMasters) {
  Connect();
  Worker& worker = Join();
  const ClusterClock clock(worker.executor.clock(), client_->clock_offset_us());
  const uint64_t before_us = worker.executor.clock().UnixUs();
  // The fake's time is this host's wall clock; the bound is that of a very slow host.
  EXPECT_NEAR(static_cast<double>(clock.NowUs()), static_cast<double>(before_us), 2'000'000);
}

TEST(OffsetEstimateTest, TheShortestRoundTripCountsUntilTheClockIsUsed) {
  OffsetEstimate estimate;
  // Truth: 5'000'000 us. A long way there makes the first sample wrong by half of it.
  estimate.Add(5'000'000 + 1000, 0, 1'000'000);
  EXPECT_EQ(estimate.offset_us(), 5'000'500);
  estimate.Add(5'000'000 + 2005, 2'000'000, 2'010'000);
  EXPECT_EQ(estimate.offset_us(), 5'000'000);
  estimate.Add(5'000'000 + 3900, 3'000'000, 3'900'000);
  EXPECT_EQ(estimate.offset_us(), 5'000'000);
}

TEST(OffsetEstimateTest, TheTimeThatAJoinTellsIsSoonForgotten) {
  OffsetEstimate estimate;
  estimate.AtLeast(5'000'000, 0);
  EXPECT_EQ(estimate.offset_us(), 5'000'000);
  estimate.Use();
  // The first answer after it counts, however long its way was.
  estimate.Add(4'000'000 + 2'000'000, 1'000'000'000, 3'000'000'000);
  EXPECT_LT(estimate.offset_us(), 5'000'000);
}

TEST(OffsetEstimateTest, AClockInUseIsMovedSlowlyBothWays) {
  OffsetEstimate estimate;
  estimate.Add(1'000'000, 0, 0);
  estimate.Use();
  uint64_t now_ns = 0;
  // The offset after `answers` answers of a master that is `goal_us` ahead; no step is larger.
  const auto after = [&](int answers, int64_t goal_us, int64_t step_us) {
    for (int i = 0; i < answers; ++i) {
      const int64_t before_us = estimate.offset_us();
      now_ns += 250'000'000;
      estimate.Add(static_cast<uint64_t>(goal_us) + now_ns / 1000, now_ns, now_ns);
      EXPECT_LE(std::abs(estimate.offset_us() - before_us), step_us);
    }
    return estimate.offset_us();
  };
  // An eighth of a millisecond in a quarter of a second; older samples are forgotten in time.
  EXPECT_LT(after(20, 1'005'000, 125), 1'005'000);
  EXPECT_EQ(after(60, 1'005'000, 125), 1'005'000);
  EXPECT_GT(after(20, 1'000'000, 125), 1'000'000);
  EXPECT_EQ(after(60, 1'000'000, 125), 1'000'000);
  // Far off it goes faster, and never further than the goal.
  EXPECT_EQ(after(400, 3'000'000, 12'500), 3'000'000);
}

}  // namespace
}  // namespace onetrip
