// Operations while the cluster changes its view: they wait, for a while, and then did nothing.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client_core/base/memory_budget.h"
#include "client_core/base/planted_bug.h"
#include "client_core/fabric/sim.h"
#include "client_core/index/index_metrics.h"
#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr uint64_t kMs = 1'000'000;

class KvHoldTest : public testing::Test {
 protected:
  // A worker that the test can quiesce, on the simulated fabric.
  struct HeldWorker : TestWorkerBase {
    HeldWorker(TestCluster& cluster, SimExecutor& executor,
               std::shared_ptr<MemoryBudget> large_values = nullptr)
        : TestWorkerBase(cluster, executor, MakeSim(cluster, executor),
                         Options(std::move(large_values))),
          engine(MakeEngine(EngineKind::kSnapshot, *context_)),
          kv(*context_, *engine) {
      CHECK(BlockOn(executor, kv.Start()).ok());
    }
    // Values of some hundred bytes are large.
    static DataPathOptions Options(std::shared_ptr<MemoryBudget> large_values) {
      DataPathOptions options;
      options.op_timeout_ms = 50;
      options.location_cache_bytes = 1 << 16;
      options.record_value_bytes_max = 100;
      options.extent_bytes = 64;
      options.large_values = std::move(large_values);
      return options;
    }
    Quiesce& hold() { return hold_; }
    std::unique_ptr<Engine> engine;
    SlotStore kv;
  };

  void TearDown() override {
    worker_.hold().Release();
    EXPECT_TRUE(BlockOn(executor_, worker_.kv.Stop()).ok());
  }

  static Task<void> Get(Kv* kv, Status* status, bool* done) {
    ReadResult result;
    *status = co_await kv->Get({0, "key"}, &result);
    *done = true;
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  HeldWorker worker_{cluster_, executor_};
  Gate gate_{executor_};
};

TEST_F(KvHoldTest, AnOperationWaitsForTheEndOfAHold) {
  worker_.hold().Hold();
  Status status;
  bool done = false;
  executor_.Spawn(gate_, Get(&worker_.kv, &status, &done));
  executor_.RunUntil(executor_.NowNs() + 40 * kMs);
  EXPECT_FALSE(done);
  worker_.hold().Release();
  executor_.RunUntil(executor_.NowNs() + 5 * kMs);
  EXPECT_TRUE(done);
  EXPECT_TRUE(status.ok());
}

TEST_F(KvHoldTest, AnOperationIsUnavailableWhenAHoldOutlivesItsTime) {
  EXPECT_TRUE(BlockOn(executor_, worker_.kv.Set({0, "key"}, {.head = "old"})).ok());
  worker_.hold().Hold();
  const uint64_t before_ns = executor_.NowNs();
  EXPECT_EQ(BlockOn(executor_, worker_.kv.Set({0, "key"}, {.head = "new"})).code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(executor_.NowNs(), before_ns + 50 * kMs);
  bool existed = false;
  EXPECT_EQ(BlockOn(executor_, worker_.kv.Delete({0, "key"}, &existed)).code(),
            StatusCode::kUnavailable);
  AddMutation add(1);
  EXPECT_EQ(BlockOn(executor_, worker_.kv.ReadModifyWrite({0, "key"}, add)).code(),
            StatusCode::kUnavailable);
  uint64_t keys = 0;
  EXPECT_EQ(BlockOn(executor_, worker_.kv.CountKeys(0, &keys)).code(), StatusCode::kUnavailable);
  worker_.hold().Release();
  ReadResult result;
  EXPECT_TRUE(BlockOn(executor_, worker_.kv.Get({0, "key"}, &result)).ok());
  EXPECT_EQ(result.record().value, "old");
}

TEST_F(KvHoldTest, AReadThatHasWaitedForRoomBeginsAnewOnlyBehindTheHold) {
  constexpr uint64_t kBytes = 1000;
  const auto budget = std::make_shared<MemoryBudget>(kBytes);
  HeldWorker worker(cluster_, executor_, budget);
  const std::string value(500, 'v');
  EXPECT_TRUE(BlockOn(executor_, worker.kv.Set({0, "key"}, {.head = value})).ok());
  MemoryBudget::Share all;
  ASSERT_TRUE(MemoryBudget::Ticket(budget, kBytes).Take(&all));
  Status status;
  bool done = false;
  executor_.Spawn(gate_, Get(&worker.kv, &status, &done));
  executor_.RunUntil(executor_.NowNs() + 5 * kMs);
  EXPECT_EQ(budget->waiting(), 1U);
  worker.hold().Hold();
  all = {};
  executor_.RunUntil(executor_.NowNs() + 45 * kMs);
  EXPECT_FALSE(done);
  executor_.RunUntil(executor_.NowNs() + 10 * kMs);
  EXPECT_TRUE(done);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  worker.hold().Release();
  ReadResult result;
  EXPECT_TRUE(BlockOn(executor_, worker.kv.Get({0, "key"}, &result)).ok());
  EXPECT_EQ(result.record().value, value);
  result = ReadResult();
  EXPECT_TRUE(BlockOn(executor_, worker.kv.Stop()).ok());
}

TEST_F(KvHoldTest, WhatHasStartedGoesOnAndWhatWaitsGoesOnInOrder) {
  Status first;
  bool first_done = false;
  executor_.Spawn(gate_, Get(&worker_.kv, &first, &first_done));
  worker_.hold().Hold();
  Status second;
  bool second_done = false;
  executor_.Spawn(gate_, Get(&worker_.kv, &second, &second_done));
  executor_.RunUntil(executor_.NowNs() + 20 * kMs);
  EXPECT_TRUE(first_done);
  EXPECT_FALSE(second_done);
  // Released and quiesced again before any coroutine has run: the worker stays quiesced.
  worker_.hold().Release();
  worker_.hold().Hold();
  executor_.RunUntil(executor_.NowNs() + 20 * kMs);
  EXPECT_FALSE(second_done);
  worker_.hold().Release();
  executor_.RunUntil(executor_.NowNs() + 20 * kMs);
  EXPECT_TRUE(second_done);
  EXPECT_TRUE(second.ok());
}

// A region of the directory may move while all agents are quiesced.
TEST_F(KvHoldTest, AHoldOfAllWaitsForAWalksReadOfTheDirectory) {
  std::optional<Status> walked;
  RepairOrder order;
  order.kind = RepairKind::kScrubRegisters;
  order.view = cluster_.master().view();
  worker_.hold().duties()->Repair(order, [&](Status status) { walked = status; });
  bool still = false;
  worker_.hold().Hold(HoldKind::kAll, [&] { still = true; });
  EXPECT_FALSE(still);
  executor_.RunUntil(executor_.NowNs() + 5 * kMs);
  EXPECT_TRUE(still);
  ASSERT_TRUE(walked.has_value());
  EXPECT_FALSE(walked->ok()) << "somebody begins again";
}

TEST_F(KvHoldTest, ADestroyedWaiterLeavesTheHold) {
  worker_.hold().Hold();
  Status status;
  bool done = false;
  executor_.Spawn(gate_, Get(&worker_.kv, &status, &done));
  executor_.DropBackground();
  worker_.hold().Release();
  executor_.RunUntil(executor_.NowNs() + 20 * kMs);
  EXPECT_FALSE(done);
}

// Holds that wait for what is under way; keys are registers.
class KvStillTest : public testing::Test {
 protected:
  struct HeldWorker : TestWorkerBase {
    HeldWorker(TestCluster& cluster, SimExecutor& executor)
        : TestWorkerBase(cluster, executor, MakeSim(cluster, executor),
                         {.op_timeout_ms = 50, .location_cache_bytes = 1 << 16}),
          engine(MakeEngine(EngineKind::kSwarm, *context_)),
          kv(*context_, *engine) {
      CHECK(BlockOn(executor, kv.Start()).ok());
    }
    Quiesce& hold() { return hold_; }
    std::unique_ptr<Engine> engine;
    SlotStore kv;
  };

  void SetUp() override {
    ASSERT_TRUE(BlockOn(executor_, worker_.kv.Set({0, "known"}, {.head = "old"})).ok());
    // A worker that waits for memory is not at the slots.
    AddMutation add(1);
    ASSERT_TRUE(BlockOn(executor_, worker_.kv.ReadModifyWrite({0, "number"}, add)).ok());
    // An insert is at the slots for a moment longer than its client waits.
    Run(kMs);
  }
  void TearDown() override {
    worker_.hold().Release();
    EXPECT_TRUE(BlockOn(executor_, worker_.kv.Stop()).ok());
  }
  static Task<void> Get(Kv* kv, std::string key, Status* status, bool* done) {
    ReadResult result;
    *status = co_await kv->Get({0, key}, &result);
    *done = true;
  }
  static Task<void> Set(Kv* kv, std::string key, Status* status, bool* done) {
    *status = co_await kv->Set({0, key}, {.head = "new"});
    *done = true;
  }
  static Task<void> Add(Kv* kv, std::string key, Status* status, bool* done) {
    AddMutation add(1);
    *status = co_await kv->ReadModifyWrite({0, key}, add);
    *done = true;
  }
  void Run(uint64_t ns) { executor_.RunUntil(executor_.NowNs() + ns); }
  // Enough that the index has some subtables.
  void WriteManyKeys() {
    for (int i = 0; i < 4000; ++i) {
      const std::string key = "k" + std::to_string(i);
      ASSERT_TRUE(BlockOn(executor_, worker_.kv.Set({0, key}, {.head = "v"})).ok());
    }
  }
  void BeginWalk(uint64_t number) {
    RepairOrder order;
    order.kind = RepairKind::kScrubRegisters;
    order.view = cluster_.master().view();
    order.walk = number;
    walked_.reset();
    worker_.hold().duties()->Repair(order, [this](Status status) { walked_ = status; });
  }
  // How long that takes.
  uint64_t WalkToTheEnd(uint64_t number) {
    const uint64_t began_ns = executor_.NowNs();
    BeginWalk(number);
    while (!walked_.has_value()) CHECK(executor_.RunOnce());
    EXPECT_TRUE(walked_->ok()) << walked_->message();
    return executor_.NowNs() - began_ns;
  }
  // After three quarters of what a whole one takes.
  void CutWalkShort(uint64_t number, uint64_t whole_ns) {
    BeginWalk(number);
    Run(whole_ns * 3 / 4);
    worker_.hold().Hold(HoldKind::kSlots);
    Run(whole_ns / 2);
    ASSERT_TRUE(walked_.has_value());
    EXPECT_FALSE(walked_->ok());
    worker_.hold().Release();
  }

  std::optional<Status> walked_;
  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  HeldWorker worker_{cluster_, executor_};
  Gate gate_{executor_};
  Status status_;
  bool done_ = false;
  bool still_ = false;
};

TEST_F(KvStillTest, RegistersGoOnWhileSlotsAreHeld) {
  worker_.hold().Hold(HoldKind::kSlots, [this] { still_ = true; });
  EXPECT_TRUE(still_);
  for (const bool writes : {true, false}) {
    executor_.Spawn(gate_, writes ? Set(&worker_.kv, "known", &status_, &done_)
                                  : Get(&worker_.kv, "known", &status_, &done_));
    Run(kMs);
    EXPECT_TRUE(std::exchange(done_, false));
    EXPECT_TRUE(status_.ok());
  }
  // Operations that need the index wait: another key, and an increment of this one.
  bool other_done = false;
  Status other;
  executor_.Spawn(gate_, Set(&worker_.kv, "other", &other, &other_done));
  executor_.Spawn(gate_, Add(&worker_.kv, "number", &status_, &done_));
  Run(40 * kMs);
  EXPECT_FALSE(other_done);
  EXPECT_FALSE(done_);
  worker_.hold().Release();
  Run(5 * kMs);
  EXPECT_TRUE(other_done && other.ok());
  EXPECT_TRUE(done_ && status_.ok());
}

TEST_F(KvStillTest, AHoldOfSlotsWaitsForThoseWhoAreAtThem) {
  executor_.Spawn(gate_, Add(&worker_.kv, "number", &status_, &done_));
  worker_.hold().Hold(HoldKind::kSlots, [&] {
    EXPECT_TRUE(done_);
    still_ = true;
  });
  EXPECT_FALSE(still_);
  Run(5 * kMs);
  EXPECT_TRUE(still_);
  EXPECT_TRUE(status_.ok());
}

TEST_F(KvStillTest, AHoldOfSlotsDoesNotWaitForRegisters) {
  executor_.Spawn(gate_, Set(&worker_.kv, "known", &status_, &done_));
  worker_.hold().Hold(HoldKind::kSlots, [this] { still_ = true; });
  EXPECT_TRUE(still_);
  EXPECT_FALSE(done_);
  Run(kMs);
  EXPECT_TRUE(done_);
}

TEST_F(KvStillTest, AHoldOfAllWaitsForEverythingAndHoldsRegistersToo) {
  executor_.Spawn(gate_, Set(&worker_.kv, "known", &status_, &done_));
  worker_.hold().Hold(HoldKind::kAll, [&] {
    EXPECT_TRUE(done_);
    still_ = true;
  });
  EXPECT_FALSE(still_);
  Run(5 * kMs);
  EXPECT_TRUE(still_);
  done_ = false;
  executor_.Spawn(gate_, Get(&worker_.kv, "known", &status_, &done_));
  Run(20 * kMs);
  EXPECT_FALSE(done_);
  worker_.hold().Release();
  Run(kMs);
  EXPECT_TRUE(done_ && status_.ok());
}

// Entries of a split whose round a lost node has cut short wait for the end of the quiesce, away
// from the slots; so does whoever waits for them there.
TEST_F(KvStillTest, AHoldOfSlotsWaitsForNoSplitThatALostNodeHasCutShort) {
  const IndexMetrics& index = *worker_.kv.metrics().index;
  WriteManyKeys();
  uint32_t cut_short = 0;
  for (int i = 4000; i < 20000 && cut_short < 5; ++i) {
    const uint64_t subtables = index.subtable_bytes.Value();
    const std::string key = "k" + std::to_string(i);
    done_ = false;
    executor_.Spawn(gate_, Set(&worker_.kv, key, &status_, &done_));
    while (!done_ && index.subtable_bytes.Value() == subtables) ASSERT_TRUE(executor_.RunOnce());
    if (index.subtable_bytes.Value() == subtables) continue;
    Run(2'000 * ++cut_short);  // to where entries move
    still_ = false;
    worker_.hold().Hold(HoldKind::kSlots, [this] { still_ = true; });
    worker_.hold().duties()->LeaveNode(NodeId{2});
    Run(kMs);
    EXPECT_TRUE(still_) << "the split that is cut short as number " << cut_short;
    worker_.hold().duties()->UseView(*cluster_.master().view());
    worker_.hold().Release();
    Run(20 * kMs);
    EXPECT_TRUE(done_);
  }
  EXPECT_EQ(cut_short, 5U);
}

TEST_F(KvStillTest, AReleasedHoldIsForgotten) {
  executor_.Spawn(gate_, Add(&worker_.kv, "number", &status_, &done_));
  worker_.hold().Hold(HoldKind::kAll, [this] { still_ = true; });
  worker_.hold().Release();
  Run(20 * kMs);
  EXPECT_TRUE(done_);
  EXPECT_FALSE(still_);
}

// Virtual time tells how much of the walk was done anew.
TEST_F(KvStillTest, AWalkThatAHoldHasCutShortGoesOnIfItIsTheSameOne) {
  WriteManyKeys();
  const uint64_t whole_ns = WalkToTheEnd(1);
  CutWalkShort(2, whole_ns);
  EXPECT_LT(WalkToTheEnd(2), whole_ns / 2);
  CutWalkShort(2, whole_ns);
  EXPECT_GT(WalkToTheEnd(3), whole_ns * 3 / 4);
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(KvStillTest, PlantedBugWalkResumedAnywayIsFound) {
  WriteManyKeys();
  const uint64_t whole_ns = WalkToTheEnd(1);
  CutWalkShort(2, whole_ns);
  TEST_planted_bug = Bug::kWalkResumedAnyway;
  const uint64_t rest_ns = WalkToTheEnd(3);
  TEST_planted_bug = Bug::kNone;
  EXPECT_LT(rest_ns, whole_ns * 3 / 4);
}
#endif

}  // namespace
}  // namespace onetrip
