// Records that a worker writes again and again: the next write takes no search, as long as nothing
// can have come in between unseen (PROTOCOLS, "Hot records").
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20};
constexpr uint64_t kEpochUs = 1'000'000;

DataPathOptions Options() {
  DataPathOptions options;
  options.epoch_tick_us = kEpochUs;
  return options;
}

// Writes `value` if the key is missing.
class IfMissing final : public Mutation {
 public:
  explicit IfMissing(std::string value) : value_(std::move(value)) {}
  Change Apply(const RecordView* current) override {
    wrote_ = current == nullptr;
    return wrote_ ? Change::Write({.head = value_}) : Change::Keep();
  }
  [[nodiscard]] bool wrote() const { return wrote_; }

 private:
  const std::string value_;
  bool wrote_ = false;
};

// Writes what no record can hold if the value is `value`, else "fits".
class TooLargeFor final : public Mutation {
 public:
  explicit TooLargeFor(std::string value) : value_(std::move(value)) {}
  Change Apply(const RecordView* current) override {
    ++applied_;
    const bool is_it = current != nullptr && current->value == value_;
    return is_it ? Change::Write({.gap_bytes = uint64_t{1} << 40})
                 : Change::Write({.head = "fits"});
  }
  [[nodiscard]] int applied() const { return applied_; }

 private:
  const std::string value_;
  int applied_ = 0;
};

// Writes more than the pool holds.
class Endless final : public Mutation {
 public:
  Change Apply(const RecordView* /*current*/) override {
    return Change::Write({.gap_bytes = 4 * kShape.node_bytes});
  }
};

class HotRecordsTest : public testing::Test {
 protected:
  HotRecordsTest() : executor_(1), cluster_(executor_.clock(), kShape) {
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<TestWorker>(
          cluster_, executor_,
          std::make_unique<SimFabric>(executor_, cluster_.endpoints(), SimFabricOptions()),
          EngineKind::kSwarm, Options()));
      workers_.back()->Start();
    }
  }
  ~HotRecordsTest() override {
    for (auto& worker : workers_) worker->Stop();
  }

  TestWorker& a() { return *workers_[0]; }
  TestWorker& b() { return *workers_[1]; }
  void LetEpochsPass() { executor_.RunUntil(executor_.NowNs() + 100 * kEpochUs * 1000); }

  int64_t Incr(TestWorker& worker, std::string_view key = "k") {
    worker.kv().metrics().rmw_round_trips.Reset();
    AddMutation add(1);
    CHECK(BlockOn(executor_, worker.kv().ReadModifyWrite({0, key}, add)).ok());
    return add.sum();
  }
  static uint64_t TripsOfIncr(TestWorker& worker) {
    return worker.kv().metrics().rmw_round_trips.Sum();
  }
  static uint64_t HotWrites(TestWorker& worker) { return worker.kv().metrics().hot_writes.Value(); }
  // Returns what it costs.
  uint64_t SetEx(TestWorker& worker, std::string_view value) {
    worker.kv().metrics().set_round_trips.Reset();
    CHECK(worker.Set("k", value, worker.context().clock.NowMs() + 1'000'000).ok());
    return worker.kv().metrics().set_round_trips.Sum();
  }
  void MakeHot() {
    for (int i = 1; i <= 5; ++i) ASSERT_EQ(Incr(a()), i);
    ASSERT_EQ(TripsOfIncr(a()), 2U);
  }

  SimExecutor executor_;
  TestCluster cluster_;
  std::vector<std::unique_ptr<TestWorker>> workers_;
};

TEST_F(HotRecordsTest, TakeTwoRoundTrips) {
  MakeHot();
  EXPECT_EQ(HotWrites(a()), 1U);
  for (int i = 0; i < 5; ++i) SetEx(a(), "value");
  EXPECT_EQ(SetEx(a(), "last"), 2U);
  EXPECT_EQ(a().Get("k"), "last");
  EXPECT_EQ(b().Get("k"), "last");
}

TEST_F(HotRecordsTest, AreSearchedForOnceTheEpochHasPassed) {
  MakeHot();
  LetEpochsPass();
  EXPECT_EQ(Incr(a()), 6);
  EXPECT_EQ(TripsOfIncr(a()), 3U);
  EXPECT_EQ(Incr(a()), 7);
  EXPECT_EQ(TripsOfIncr(a()), 2U) << "it is in this epoch by now";
}

TEST_F(HotRecordsTest, AreSearchedForUnderANewView) {
  MakeHot();
  a().context().quiesce.duties()->UseView(*cluster_.master().view());
  EXPECT_EQ(Incr(a()), 6);
  EXPECT_EQ(TripsOfIncr(a()), 3U);
}

TEST_F(HotRecordsTest, OfWhichAnotherWorkerChangedOneAreNotBelieved) {
  MakeHot();
  EXPECT_EQ(Incr(b()), 6);
  EXPECT_EQ(Incr(a()), 7);
  EXPECT_EQ(Incr(b()), 8);
  EXPECT_EQ(Incr(a()), 9);
  EXPECT_EQ(TripsOfIncr(a()), 4U) << "the streak has ended: it is looked for at once";
}

TEST_F(HotRecordsTest, SayNothingToAMutationThatKeepsThem) {
  MakeHot();
  ASSERT_TRUE(b().Delete("k"));
  IfMissing set("new");
  ASSERT_TRUE(BlockOn(executor_, a().kv().ReadModifyWrite({0, "k"}, set)).ok());
  EXPECT_TRUE(set.wrote());
  EXPECT_EQ(b().Get("k"), "new");
}

TEST_F(HotRecordsTest, ABlindWriteThatLosesIsWrittenEvenSo) {
  for (int i = 0; i < 5; ++i) SetEx(a(), "a");
  SetEx(b(), "b");
  SetEx(a(), "last");
  EXPECT_EQ(b().Get("k"), "last");
}

TEST_F(HotRecordsTest, ARegisterIsNone) {
  MakeHot();
  ASSERT_TRUE(a().Set("k", "9").ok()) << "it stays a record, for now";
  ASSERT_TRUE(a().Set("k", "10").ok());
  EXPECT_EQ(Incr(a()), 11);
  EXPECT_EQ(TripsOfIncr(a()), 4U);
}

TEST_F(HotRecordsTest, OfWhichAnotherWorkerMadeARegisterAreNotBelieved) {
  MakeHot();
  ASSERT_TRUE(b().Delete("k"));
  ASSERT_TRUE(b().Set("k", "7").ok());
  EXPECT_EQ(Incr(a()), 8);
}

// The value that a change would be too large for may be no more.
TEST_F(HotRecordsTest, AChangeThatDoesNotFitIsTriedOnWhatIsThere) {
  MakeHot();
  ASSERT_TRUE(b().Delete("k"));
  ASSERT_EQ(Incr(b()), 1);
  TooLargeFor change("5");
  EXPECT_TRUE(BlockOn(executor_, a().kv().ReadModifyWrite({0, "k"}, change)).ok());
  EXPECT_EQ(change.applied(), 2) << "to what is remembered, and to what is there";
  EXPECT_EQ(a().Get("k"), "fits");
}

// The extents that were begun are given up, and the change is tried once more on what a search
// finds.
TEST_F(HotRecordsTest, AChangeForWhichThereIsNoMemoryIsRefused) {
  MakeHot();
  Endless endless;
  const Status status = BlockOn(executor_, a().kv().ReadModifyWrite({0, "k"}, endless));
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
  EXPECT_EQ(Incr(a()), 6);
}

}  // namespace
}  // namespace onetrip
