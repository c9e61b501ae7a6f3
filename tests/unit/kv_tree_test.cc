// Collections as trees in the store: on one worker, by several, with a node missing, in a full
// pool, by a reader of few pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/kv/pool_check.h"
#include "tests/support/byte_tree.h"
#include "tests/support/fabric_backends.h"
#include "tests/support/index_worker.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr TreeLimits kSmallTree{
    .leaf_bytes = 40, .inner_bytes = 90, .root_bytes = 90, .packed_bytes = 100};

class KvTreeTest : public testing::TestWithParam<EngineKind> {
 protected:
  ~KvTreeTest() override {
    for (auto& worker : workers_) worker->Stop();
  }
  TestWorker& NewWorker(uint64_t page_cache_bytes = 1 << 16, uint32_t loaded_bytes = 1 << 20) {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    options.record_value_bytes_max = 4000;
    options.extent_bytes = 1000;
    options.tree = kSmallTree;
    options.tree.loaded_bytes = loaded_bytes;
    options.page_cache_bytes = page_cache_bytes;
    workers_.push_back(std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps), GetParam(),
        options));
    workers_.back()->Start();
    return *workers_.back();
  }
  // Edits the key and the model alike.
  Status Edit(TestWorker& worker, uint64_t at, uint64_t erased, const std::string& text) {
    ByteTreeEdit edit(kSmallTree, at, erased, text);
    const Status status = BlockOn(executor_, worker.kv().ReadModifyWrite({0, "k"}, edit));
    if (!status.ok()) return status;
    model_.replace(std::min<uint64_t>(at, model_.size()), edit.erased(), text);
    return status;
  }
  void Grow(TestWorker& worker, size_t bytes) {
    while (model_.size() < bytes) {
      const uint64_t at = rng_.Below(model_.size() + 1);
      ASSERT_TRUE(Edit(worker, at, 0, Text()).ok());
    }
  }
  std::string Text() {
    std::string text(1 + rng_.Below(20), ' ');
    for (char& c : text) c = static_cast<char>('a' + rng_.Below(26));
    return text;
  }
  std::string Part(TestWorker& worker, int64_t first, int64_t last) {
    ReadResult result;
    EXPECT_TRUE(
        BlockOn(executor_, worker.kv().GetPart({0, "k"}, {.first = first, .last = last}, &result))
            .ok());
    return result.found() ? std::string(result.record().value) : "(nil)";
  }
  // All that is named, on every replica; nothing of it is wrong.
  IndexPicture Look() {
    executor_.RunUntil(executor_.NowNs() + 1'000'000);  // commits end behind their answers
    IndexPicture picture = LookAtIndex(cluster_);
    EXPECT_EQ(picture.damaged + picture.misplaced, 0U);
    EXPECT_TRUE(picture.replicas_agree);
    return picture;
  }
  PoolCounts Check(TestWorker& worker) {
    executor_.RunUntil(executor_.NowNs() + 1'000'000);
    PoolCounts counts;
    EXPECT_TRUE(BlockOn(executor_, worker.kv().CheckPool(&counts)).ok());
    EXPECT_EQ(counts.wrong(), 0U) << counts.ToText();
    return counts;
  }
  uint64_t LiveBytes(TestWorker& worker) {
    return worker.kv().metrics().allocator->live_bytes.Value();
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20}};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  Rng rng_{7};
  std::string model_;  // the key's value
};
INSTANTIATE_TEST_SUITE_P(Engines, KvTreeTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

TEST_P(KvTreeTest, ItGrowsAndShrinksUnderTwoWorkersAndNothingIsLeft) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  const size_t named = Look().named.size();
  for (int round = 0; round < 6; ++round) {
    const size_t most = 200 + rng_.Below(6000);
    for (int i = 0; i < 800; ++i) {
      const bool grows = model_.size() < most && (i < 500 || rng_.Below(3) == 0);
      const uint64_t at = rng_.Below(model_.size() + 1);
      const uint64_t erased = rng_.Below(grows ? 3 : 60);
      ASSERT_TRUE(Edit(i % 3 == 0 ? other : worker, at, erased, grows ? Text() : "").ok());
      if (i % 50 == 0) {
        ASSERT_EQ(other.Get("k"), model_.empty() ? "(nil)" : model_) << i;
      }
    }
    ASSERT_EQ(worker.Get("k"), model_.empty() ? "(nil)" : model_);
    const IndexPicture picture = Look();
    const size_t of_key = model_.empty() ? 0 : 1;
    EXPECT_EQ(picture.named.size(), named + of_key + picture.pages);
    EXPECT_EQ(Check(worker).pages, picture.pages);
  }
  worker.Delete("k");
  EXPECT_EQ(Look().named.size(), named);
  for (auto& one : workers_) one->Stop();
  EXPECT_LT(LiveBytes(worker) + LiveBytes(other), 80U * 1024) << "a subtable";
  workers_.clear();
}

TEST_P(KvTreeTest, PartsAreReadAsGetRangeCounts) {
  TestWorker& worker = NewWorker();
  Grow(worker, 900);
  const auto size = static_cast<int64_t>(model_.size());
  for (int64_t first = 0; first < size; first += 17) {
    for (const int64_t last : {first - 1, first, first + 35, first + 400, int64_t{-1}}) {
      const int64_t end = last == -1 ? size : std::min(last + 1, size);
      const size_t count = end <= first ? 0 : static_cast<size_t>(end - first);
      if (first == 0 && last == -1 && count == 0) continue;
      ASSERT_EQ(Part(worker, first, last), model_.substr(first, count)) << first << " " << last;
    }
  }
}

TEST_P(KvTreeTest, WhatReplacesItGivesAllItsPagesBack) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  ASSERT_TRUE(worker.Set("k", "short").ok());
  const size_t named = Look().named.size();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(worker.Delete("k"));
    model_.clear();
    Grow(worker, 1500);
    TestWorker& one = i % 2 == 0 ? worker : other;
    if (i < 2) {
      ASSERT_TRUE(one.Set("k", "short").ok());
    } else if (i < 4) {
      ASSERT_TRUE(one.Set("k", "short", worker.kv().NowMs() + 1).ok());
      executor_.RunUntil(executor_.NowNs() + 5'000'000);
      EXPECT_EQ(worker.Get("k"), "(nil)");
      ASSERT_TRUE(one.Set("k", "short").ok());
    } else {
      ASSERT_TRUE(one.Set("k", std::string(9000, 'x')).ok()) << "in extents";
      ASSERT_TRUE(one.Set("k", "short").ok());
    }
    EXPECT_EQ(Look().named.size(), named) << i;
  }
}

TEST_P(KvTreeTest, WritersAtTheSameTimeAreAllCounted) {
  TestWorker& worker = NewWorker();
  TestWorker& other = NewWorker();
  Grow(worker, 300);
  constexpr int kClients = 4;
  constexpr int kEdits = 40;
  const auto insert = [](TestWorker* by, uint64_t at, int times) -> Task<void> {
    for (int i = 0; i < times; ++i) {
      ByteTreeEdit edit(kSmallTree, at + static_cast<uint64_t>(i), 0, "+");
      const Status status = co_await by->kv().ReadModifyWrite({0, "k"}, edit);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  };
  std::vector<Task<void>> tasks;
  for (int client = 0; client < kClients; ++client) {
    tasks.push_back(insert(&worker, client * 60, kEdits));
    tasks.push_back(insert(&other, client * 50 + 11, kEdits));
  }
  BlockOn(executor_, AwaitAllInATurn(&executor_, std::move(tasks)));
  std::string value = worker.Get("k");
  EXPECT_EQ(std::count(value.begin(), value.end(), '+'), 2 * kClients * kEdits);
  std::erase(value, '+');
  EXPECT_EQ(value, model_);
  const IndexPicture picture = Look();
  EXPECT_EQ(picture.named.size(), 1 + picture.subtables + picture.pages);
}

TEST_P(KvTreeTest, ANodeThatIsOutIsNotMissed) {
  TestWorker& worker = NewWorker();
  Grow(worker, 1000);
  const auto out = NodeId{0};
  cluster_.node(0).SetReachable(false);
  worker.fabric().SetEvicted(out, true);
  cluster_.TakeOut(out);
  EXPECT_EQ(worker.Get("k"), model_);
  Grow(worker, 2000);
  cluster_.node(0).SetReachable(true);
  worker.fabric().SetEvicted(out, false);
  cluster_.BringBack(out);
  EXPECT_EQ(worker.Get("k"), model_);
  Look();
}

TEST_P(KvTreeTest, AFullPoolRefusesAndKeepsNothing) {
  TestWorker& worker = NewWorker();
  Grow(worker, 3000);
  int keys = 0;
  while (worker.Set("k" + std::to_string(keys), std::string(3000, 'x')).ok()) ++keys;
  while (worker.Set("k" + std::to_string(keys), std::string(40, 'x')).ok()) ++keys;
  Status status;
  while (status.ok()) {
    const uint64_t at = rng_.Below(model_.size());
    status = Edit(worker, at, 0, Text());
  }
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(worker.Get("k"), model_);
  Look();
  ASSERT_TRUE(worker.Delete("k"));
  EXPECT_EQ(worker.Get("k"), "(nil)");
  // Whole blocks, which serve any size.
  for (int i = 0; i < keys; ++i) worker.Delete("k" + std::to_string(i));
  model_.clear();
  Grow(worker, 2000);
  EXPECT_EQ(worker.Get("k"), model_);
}

// Few pages of the pool are free then, and in the end none.
TEST_P(KvTreeTest, InAFullPoolATreeCanBeMadeSmaller) {
  TestWorker& worker = NewWorker();
  Grow(worker, 6000);
  int keys = 0;
  for (const size_t bytes : {3000, 400, 40}) {
    while (worker.Set("k" + std::to_string(keys), std::string(bytes, 'x')).ok()) ++keys;
  }
  Status status;
  while (status.ok()) status = Edit(worker, rng_.Below(model_.size()), 0, Text());
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  while (!model_.empty()) {
    const uint64_t at = rng_.Below(model_.size());
    status = Edit(worker, at, 1 + rng_.Below(30), "");
    ASSERT_TRUE(status.ok()) << status.message() << " with " << model_.size() << " bytes left";
  }
  EXPECT_EQ(worker.Get("k"), "(nil)");
  Look();
}

// Counts bytes up to a place, and looks at one of them.
class ByteReader final : public TreeReader {
 public:
  explicit ByteReader(uint64_t at) : at_(at) {}
  void Read(const RecordView& record, Tree& tree) override {
    bytes_ = record.value_bytes;
    ++reads_;
    LeafPlace place;
    if (tree.Seek(0, at_, &place)) found_ = place.bytes[at_ - place.before];
  }
  [[nodiscard]] char found() const { return found_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int reads() const { return reads_; }

 private:
  const uint64_t at_;
  char found_ = 0;
  uint64_t bytes_ = 0;
  int reads_ = 0;
};

TEST_P(KvTreeTest, AReaderOfOneElementReadsAPageOfEachLevel) {
  TestWorker& writer = NewWorker();
  Grow(writer, 20'000);
  TestWorker& worker = NewWorker(/*page_cache_bytes=*/0);
  for (uint64_t at = 3; at < model_.size(); at += 977) {
    ByteReader reader(at);
    ReadResult result;
    ValueRange range;
    range.reader = &reader;
    ASSERT_TRUE(BlockOn(executor_, worker.kv().GetPart({0, "k"}, range, &result)).ok());
    ASSERT_TRUE(result.found());
    EXPECT_EQ(reader.found(), model_[at]);
    EXPECT_EQ(reader.bytes(), model_.size());
    EXPECT_GE(reader.reads(), 3) << "of several levels";
    EXPECT_LE(reader.reads(), 8);
    // The writer has kept the pages that it has written.
    ByteReader warm(at);
    range.reader = &warm;
    ASSERT_TRUE(BlockOn(executor_, writer.kv().GetPart({0, "k"}, range, &result)).ok());
    EXPECT_EQ(warm.found(), model_[at]);
    EXPECT_LE(warm.reads(), reader.reads());
  }
}

TEST_P(KvTreeTest, WhoWouldNeedTooManyPagesSeesTheWholeValue) {
  TestWorker& writer = NewWorker();
  Grow(writer, 3000);
  TestWorker& worker = NewWorker(/*page_cache_bytes=*/0, /*loaded_bytes=*/100);
  ByteReader reader(1500);
  ReadResult result;
  ValueRange range;
  range.reader = &reader;
  ASSERT_TRUE(BlockOn(executor_, worker.kv().GetPart({0, "k"}, range, &result)).ok());
  ASSERT_TRUE(result.found());
  EXPECT_EQ(result.record().value, model_);
  for (int i = 0; i < 20; ++i) {
    const std::string text = Text();
    const uint64_t at = rng_.Below(model_.size());
    ASSERT_TRUE(Edit(worker, at, 0, text).ok());
    ASSERT_EQ(writer.Get("k"), model_);
    ASSERT_TRUE(Edit(writer, at, 0, text).ok());
  }
  EXPECT_EQ(Check(worker).pages, Look().pages);
}

// With the pages on the way kept: the root is read as a record is, and the pages take one more.
TEST_P(KvTreeTest, AChangeTakesARoundTripMoreThanThatOfARecord) {
  TestWorker& worker = NewWorker(/*page_cache_bytes=*/1 << 20);
  Grow(worker, 20'000);
  Histogram& trips = worker.kv().metrics().rmw_round_trips;
  const auto trips_of = [&](const char* key, uint64_t at) {
    trips.Reset();
    ByteTreeEdit edit(kSmallTree, at, 1, "x");
    EXPECT_TRUE(BlockOn(executor_, worker.kv().ReadModifyWrite({0, key}, edit)).ok());
    return trips.Sum();
  };
  // A record, no register, and no one that the worker remembers.
  TestWorker& other = NewWorker();
  for (int i = 0; i < 4; ++i) {
    ByteTreeEdit edit(kSmallTree, 0, 1, "y");
    ASSERT_TRUE(BlockOn(executor_, other.kv().ReadModifyWrite({0, "short"}, edit)).ok());
  }
  ASSERT_EQ(worker.Get("short"), "y");
  ASSERT_EQ(worker.Get("k"), model_);
  const uint64_t of_record = trips_of("short", 0);
  const uint64_t of_tree = trips_of("k", 10'000);
  EXPECT_EQ(of_tree, of_record + 1);
}

TEST_P(KvTreeTest, AReadTakesOneRoundTripMoreThanThatOfARecordOncePagesAreKept) {
  TestWorker& writer = NewWorker();
  Grow(writer, 20'000);
  TestWorker& worker = NewWorker(/*page_cache_bytes=*/1 << 20);
  Histogram& trips = worker.kv().metrics().get_round_trips;
  const auto read = [&](uint64_t at) {
    ByteReader reader(at);
    ReadResult result;
    ValueRange range;
    range.reader = &reader;
    trips.Reset();
    EXPECT_TRUE(BlockOn(executor_, worker.kv().GetPart({0, "k"}, range, &result)).ok());
    EXPECT_EQ(reader.found(), model_[at]);
    return trips.Sum();
  };
  for (uint64_t at = 0; at < model_.size(); at += 3) read(at);
  // The leaf is new, the inner pages on the way are, too; others are kept.
  EXPECT_EQ(read(5000), 1U) << "all are kept";
  ASSERT_TRUE(Edit(writer, 5000, 1, "x").ok());
  EXPECT_EQ(read(12'000), 2U) << "the root is elsewhere, and found there; no page is read";
  const uint64_t changed = read(5000);
  EXPECT_GE(changed, 2U);
  EXPECT_LE(changed, 8U) << "a page of each level";
}

}  // namespace
}  // namespace onetrip
