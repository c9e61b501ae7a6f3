// Values in extents: on one worker, by several, with a node missing, in a full pool, after a death.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/index_worker.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

// Small ones: some hundred bytes are several.
DataPathOptions SmallExtents() {
  DataPathOptions options;
  options.location_cache_bytes = 1 << 18;
  options.epoch_tick_us = 100;
  options.record_value_bytes_max = 100;
  options.extent_bytes = 64;
  return options;
}

std::string Value(size_t bytes, char seed = 0) {
  std::string value(bytes, ' ');
  for (size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>('a' + (seed + i * i / 7) % 26);
  return value;
}

class AppendMutation final : public Mutation {
 public:
  explicit AppendMutation(std::string_view tail) : tail_(tail) {}
  Change Apply(const RecordView* current) override {
    return Change::Write({.head = current == nullptr ? "" : current->value, .tail = tail_});
  }

 private:
  std::string_view tail_;
};

class ExtentsTest : public testing::TestWithParam<EngineKind> {
 protected:
  ~ExtentsTest() override {
    for (auto& worker : workers_) worker->Stop();
  }
  TestWorker& NewWorker() {
    workers_.push_back(std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps), GetParam(),
        SmallExtents()));
    workers_.back()->Start();
    return *workers_.back();
  }
  std::string Part(TestWorker& worker, int64_t first, int64_t last) {
    ReadResult result;
    EXPECT_TRUE(
        BlockOn(executor_, worker.kv().GetPart({0, "k"}, {.first = first, .last = last}, &result))
            .ok());
    bytes_ = result.found() ? result.record().value_bytes : 0;
    return result.found() ? std::string(result.record().value) : "(nil)";
  }
  Status Append(TestWorker& worker, std::string_view tail) {
    AppendMutation append(tail);
    return BlockOn(executor_, worker.kv().ReadModifyWrite({0, "k"}, append));
  }
  // Objects that slots, roots and registers name, as the memory of the nodes has it.
  size_t NamedObjects() {
    executor_.RunUntil(executor_.NowNs() + 1'000'000);  // commits end behind their answers
    const IndexPicture picture = LookAtIndex(cluster_.endpoints(), *cluster_.master().view());
    EXPECT_EQ(picture.damaged + picture.misplaced, 0U);
    EXPECT_TRUE(picture.replicas_agree);
    return picture.named.size();
  }
  uint64_t LiveBytes(TestWorker& worker) {
    return worker.kv().metrics().allocator->live_bytes.Value();
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20}};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  uint64_t bytes_ = 0;  // the value's, as the last Part() told
};
INSTANTIATE_TEST_SUITE_P(Engines, ExtentsTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

TEST_P(ExtentsTest, ValuesOfEveryLengthComeBackWhole) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  for (size_t bytes = 90; bytes < 1000; bytes += bytes < 140 || bytes % 64 < 3 ? 1 : 7) {
    ASSERT_TRUE(worker.Set("k", Value(bytes)).ok()) << bytes;
    ASSERT_EQ(worker.Get("k"), Value(bytes));
    ASSERT_EQ(other.Get("k"), Value(bytes));
  }
  EXPECT_EQ(worker.CountKeys(), 1U);
  EXPECT_TRUE(other.Delete("k"));
  EXPECT_EQ(worker.Get("k"), "(nil)");
}

TEST_P(ExtentsTest, PartsAreReadAsGetRangeCounts) {
  TestWorker& worker = NewWorker();
  EXPECT_EQ(Part(worker, 0, -1), "(nil)");
  for (const size_t bytes : {5U, 100U, 101U, 640U, 700U}) {
    const std::string value = Value(bytes);
    ASSERT_TRUE(worker.Set("k", value).ok());
    EXPECT_EQ(Part(worker, 0, -1), value);
    EXPECT_EQ(Part(worker, 1, 0), "");
    EXPECT_EQ(bytes_, bytes);
    EXPECT_EQ(Part(worker, -3, -1), value.substr(bytes - 3));
    EXPECT_EQ(Part(worker, 2, 3), value.substr(2, 2));
    EXPECT_EQ(Part(worker, 1, 1'000'000), value.substr(1));
    EXPECT_EQ(Part(worker, 1'000'000, 2'000'000), "");
  }
  for (int64_t first = 60; first < 70; ++first) {
    for (int64_t last = 120; last < 200; ++last) {
      ASSERT_EQ(Part(worker, first, last), Value(700).substr(first, last - first + 1));
    }
  }
}

TEST_P(ExtentsTest, AValueGrowsFromRecordToExtentsAndShrinksAgain) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  std::string model;
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(Append(i % 2 == 0 ? worker : other, Value(11, static_cast<char>(i))).ok());
    model += Value(11, static_cast<char>(i));
    ASSERT_EQ(worker.Get("k"), model);
  }
  ASSERT_TRUE(other.Set("k", "short").ok());
  EXPECT_EQ(worker.Get("k"), "short");
  ASSERT_TRUE(worker.Set("k", Value(400)).ok());
  EXPECT_EQ(other.Get("k"), Value(400));
}

TEST_P(ExtentsTest, WhatIsReplacedComesBackWithAllItsExtents) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  ASSERT_TRUE(worker.Set("k", Value(150)).ok());
  const size_t named = NamedObjects();
  for (int i = 0; i < 1000; ++i) {
    TestWorker& one = i % 2 == 0 ? worker : other;
    ASSERT_TRUE(one.Set("k", Value(6000, static_cast<char>(i))).ok()) << i;
    if (i % 5 == 0) {
      ASSERT_TRUE(Append(one, "more").ok()) << i;
    }
    if (i % 7 == 0) {
      ASSERT_TRUE(one.Delete("k"));
    }
  }
  ASSERT_TRUE(worker.Set("k", Value(150)).ok());
  EXPECT_EQ(NamedObjects(), named);
  for (auto& one : workers_) one->Stop();
  // A subtable, a root, three extents.
  EXPECT_LT(LiveBytes(worker) + LiveBytes(other), 80U * 1024);
  workers_.clear();
}

TEST_P(ExtentsTest, AnExpiredValueGivesItsExtentsBack) {
  TestWorker& worker = NewWorker();
  ASSERT_TRUE(worker.Set("k", "short").ok());
  const size_t named = NamedObjects();
  ASSERT_TRUE(worker.Set("old", Value(2000), worker.kv().NowMs()).ok());
  EXPECT_EQ(NamedObjects(), named + 1 + (2000 + 63) / 64);
  EXPECT_EQ(worker.Get("old"), "(nil)");
  EXPECT_EQ(NamedObjects(), named);
}

TEST_P(ExtentsTest, AFullPoolRefusesAndKeepsNothing) {
  TestWorker& worker = NewWorker();
  ASSERT_TRUE(worker.Set("k", "kept").ok());
  const Status never =
      BlockOn(executor_, worker.kv().Set({0, "k"}, {.gap_bytes = uint64_t{kExtentsMax} * 64 + 1}));
  EXPECT_EQ(never.code(), StatusCode::kTooLarge) << "more extents than a root lists";
  constexpr int kPads = 200;
  for (int i = 0; i < kPads; ++i) ASSERT_TRUE(worker.Set("pad" + std::to_string(i), "p").ok());
  int keys = 0;
  while (worker.Set("k" + std::to_string(keys), Value(30'000)).ok()) ++keys;
  ASSERT_GT(keys, 20);
  // The index may have been what had no room to grow.
  int pads = 0;
  while (pads < kPads && worker.Set("pad" + std::to_string(pads), Value(2000)).ok()) ++pads;
  ASSERT_LT(pads, kPads);
  const size_t named = NamedObjects();
  EXPECT_EQ(worker.Set("k", Value(30'000)).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Append(worker, Value(30'000)).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(worker.Get("k"), "kept");
  EXPECT_LE(NamedObjects(), named + 1) << "a register may have become a record, which names it";
  // The room that the last of them had is there again, all of it.
  ASSERT_TRUE(worker.Delete("k0"));
  EXPECT_TRUE(worker.Set("k", Value(30'000)).ok());
  EXPECT_TRUE(worker.Get("k") == Value(30'000));
}

TEST_P(ExtentsTest, ANodeThatIsOutIsNotMissed) {
  TestWorker& worker = NewWorker();
  ASSERT_TRUE(worker.Set("k", Value(3000)).ok());
  const auto out = NodeId{0};
  cluster_.node(0).SetReachable(false);
  worker.fabric().SetEvicted(out, true);
  cluster_.TakeOut(out);
  EXPECT_EQ(worker.Get("k"), Value(3000));
  ASSERT_TRUE(Append(worker, "tail").ok());
  ASSERT_TRUE(worker.Set("new", Value(500)).ok());
  cluster_.node(0).SetReachable(true);
  worker.fabric().SetEvicted(out, false);
  cluster_.BringBack(out);
  EXPECT_EQ(worker.Get("k"), Value(3000) + "tail");
  EXPECT_EQ(worker.Get("new"), Value(500));
  NamedObjects();
}

// Real sizes, on a fabric that completes inline.
TEST(LargeExtentsTest, ValuesOfSomeMegabytesComeBackWhole) {
  SystemClock clock;
  TestCluster cluster(clock, {.nodes = 2, .replicas = 2, .node_bytes = 128ULL << 20});
  ShmWorker worker(cluster, EngineKind::kSwarm, {.location_cache_bytes = 1 << 18});
  for (const size_t bytes : {size_t{kRecordValueBytesMax} + 1, size_t{2} * kExtentBytesMax,
                             size_t{2} * kExtentBytesMax + 1, size_t{20} << 20}) {
    const std::string value = Value(bytes, 3);
    ASSERT_TRUE(worker->Set("k", value).ok()) << bytes;
    ASSERT_TRUE(worker->Get("k") == value) << bytes;
    const std::string long_key(kMaxKeyBytes, 'k');
    ASSERT_TRUE(worker->Set(long_key, value).ok());
    ASSERT_TRUE(worker->Get(long_key) == value);
    ASSERT_TRUE(worker->Delete(long_key));
  }
  EXPECT_EQ(
      BlockOn(worker.executor(), worker->kv().Set({0, "k"}, {.gap_bytes = 200ULL << 20})).code(),
      StatusCode::kOutOfMemory);
  EXPECT_EQ(worker->Get("k").size(), size_t{20} << 20);
}

}  // namespace
}  // namespace onetrip
