// Kv on shm, one worker: what each operation answers.
#include <gtest/gtest.h>

#include <string>

#include "client_core/layout/record.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

class KvTest : public testing::TestWithParam<EngineKind> {
 protected:
  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, GetParam(), {.location_cache_bytes = 1 << 20}};
};

TEST_P(KvTest, SetThenGetReturnsTheValue) {
  EXPECT_EQ(worker_->Get("k"), "(nil)");
  ASSERT_TRUE(worker_->Set("k", "v1").ok());
  EXPECT_EQ(worker_->Get("k"), "v1");
  ASSERT_TRUE(worker_->Set("k", "another value").ok());
  EXPECT_EQ(worker_->Get("k"), "another value");
  EXPECT_EQ(worker_->CountKeys(), 1U);
}

TEST_P(KvTest, EmptyKeysAndValuesAreKeysAndValues) {
  ASSERT_TRUE(worker_->Set("", "").ok());
  EXPECT_EQ(worker_->Get(""), "");
  EXPECT_TRUE(worker_->Delete(""));
  EXPECT_EQ(worker_->Get(""), "(nil)");
}

TEST_P(KvTest, DeleteTellsWhetherTheKeyWasThere) {
  EXPECT_FALSE(worker_->Delete("k"));
  ASSERT_TRUE(worker_->Set("k", "v").ok());
  EXPECT_TRUE(worker_->Delete("k"));
  EXPECT_FALSE(worker_->Delete("k"));
  EXPECT_EQ(worker_->Get("k"), "(nil)");
  EXPECT_EQ(worker_->CountKeys(), 0U);
}

TEST_P(KvTest, ReadModifyWriteSeesWhatItReplaces) {
  for (int i = 1; i <= 100; ++i) {
    AddMutation add(3);
    ASSERT_TRUE(BlockOn(worker_.executor(), worker_->kv().ReadModifyWrite({0, "n"}, add)).ok());
    EXPECT_EQ(add.sum(), 3 * i);
  }
  EXPECT_EQ(worker_->Get("n"), "300");
}

TEST_P(KvTest, ManyKeysGrowTheIndexAndStayFound) {
  constexpr int kKeys = kSlowdown > 1 ? 15'000 : 50'000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(worker_->Set("key:" + std::to_string(i), std::to_string(i * 7)).ok()) << i;
  }
  EXPECT_EQ(worker_->CountKeys(), static_cast<uint64_t>(kKeys));
  EXPECT_GT(worker_->kv().metrics().index->splits.Value(), 4U);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(worker_->Get("key:" + std::to_string(i)), std::to_string(i * 7)) << i;
  }
  for (int i = 0; i < kKeys; i += 2) ASSERT_TRUE(worker_->Delete("key:" + std::to_string(i)));
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(worker_->Get("key:" + std::to_string(i)), i % 2 ? std::to_string(i * 7) : "(nil)");
  }
}

TEST_P(KvTest, ValuesOfEverySizeClassComeBackWhole) {
  for (uint32_t bytes = 1; bytes <= kRecordValueBytesMax; bytes = bytes * 3 / 2 + 1) {
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_TRUE(worker_->Set("big", value).ok()) << bytes;
    ASSERT_EQ(worker_->Get("big"), value) << bytes;
  }
  const std::string largest(kRecordValueBytesMax, 'z');
  ASSERT_TRUE(worker_->Set("big", largest).ok());
  EXPECT_EQ(worker_->Get("big"), largest);
  EXPECT_EQ(worker_->Set(std::string(kMaxKeyBytes + 1, 'k'), "v").code(), StatusCode::kTooLarge);
  EXPECT_TRUE(worker_->Set(std::string(kMaxKeyBytes, 'k'), "v").ok());
  EXPECT_EQ(worker_->Get(std::string(kMaxKeyBytes, 'k')), "v");
}

TEST_P(KvTest, ExpiredRecordsAreGone) {
  const uint64_t now_ms = worker_->kv().NowMs();
  ASSERT_TRUE(worker_->Set("old", "v", now_ms).ok());
  ASSERT_TRUE(worker_->Set("young", "v", now_ms + 1'000'000).ok());
  EXPECT_EQ(worker_->CountKeys(), 2U);
  EXPECT_EQ(worker_->Get("old"), "(nil)");
  EXPECT_EQ(worker_->CountKeys(), 1U);
  EXPECT_EQ(worker_->Get("young"), "v");
  ASSERT_TRUE(worker_->Set("old", "v", now_ms).ok());
  EXPECT_FALSE(worker_->Delete("old"));
  ASSERT_TRUE(worker_->Set("old", "5", now_ms).ok());
  AddMutation add(1);
  ASSERT_TRUE(BlockOn(worker_.executor(), worker_->kv().ReadModifyWrite({0, "old"}, add)).ok());
  EXPECT_EQ(add.sum(), 1);
}

TEST_P(KvTest, FlushEmptiesOneDatabaseAndGivesMemoryBack) {
  const std::string value(10'000, 'v');
  for (int round = 0; round < (kSlowdown > 1 ? 3 : 20); ++round) {
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(worker_->Set(std::to_string(i), value).ok());
    ASSERT_TRUE(
        BlockOn(worker_.executor(), worker_->kv().Set({1, "other"}, {.head = "kept"})).ok());
    ASSERT_TRUE(BlockOn(worker_.executor(), worker_->kv().Flush(0)).ok());
    EXPECT_EQ(worker_->CountKeys(0), 0U);
    EXPECT_EQ(worker_->CountKeys(1), 1U);
    EXPECT_EQ(worker_->Get("1"), "(nil)");
    // The sweep runs beside us.
    for (int i = 0; i < 1000 && worker_->kv().metrics().swept.Value() < 2000U * (round + 1); ++i) {
      BlockOn(worker_.executor(), [](Executor& executor) -> Task<void> {
        co_await executor.SleepFor(1'000'000);
      }(worker_.executor()));
    }
    EXPECT_EQ(worker_->kv().metrics().swept.Value(), 2000U * (round + 1));
  }
}

TEST_P(KvTest, FullPoolAnswersOutOfMemoryAndServesOn) {
  const std::string value(60'000, 'v');
  int stored = 0;
  Status status;
  while ((status = worker_->Set("k" + std::to_string(stored), value)).ok()) ++stored;
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_GT(stored, 700);
  EXPECT_EQ(worker_->Get("k" + std::to_string(stored)), "(nil)");
  EXPECT_EQ(worker_->CountKeys(), static_cast<uint64_t>(stored));
  EXPECT_EQ(worker_->Get("k0"), value);
  for (int i = 0; i < stored; ++i) ASSERT_TRUE(worker_->Delete("k" + std::to_string(i)));
  // All of it serves another size class again.
  const std::string small(1000, 's');
  // A register has its value once more in a buffer.
  const int keys =
      GetParam() == EngineKind::kSwarm || GetParam() == EngineKind::kAbd ? 20'000 : 40'000;
  for (int i = 0; i < (kSlowdown > 1 ? 10'000 : keys); ++i)
    ASSERT_TRUE(worker_->Set(std::to_string(i), small).ok()) << i;
}

TEST_P(KvTest, OverwritesOfFewKeysRecycleASmallPool) {
  const std::string value(100, 'x');
  for (int i = 0; i < Scaled(1'000'000); ++i) {
    ASSERT_TRUE(worker_->Set("k" + std::to_string(i % 5), value).ok()) << i;
  }
  EXPECT_LT(worker_->kv().metrics().allocator->owned_bytes.Value(), 4ULL << 20);
}

Task<void> SetOrDelete(Kv* kv, std::string key, bool sets) {
  NewRecord record;
  record.head = "v";
  bool existed = false;
  Status status;
  if (sets) status = co_await kv->Set({0, key}, record);
  if (!sets) status = co_await kv->Delete({0, key}, &existed);
  EXPECT_TRUE(status.ok()) << status.message();
}

Task<void> SetOrDeleteBoth(Kv* kv, std::string key, bool sets) {
  std::vector<Task<void>> both;
  both.push_back(SetOrDelete(kv, "a" + key, sets));
  both.push_back(SetOrDelete(kv, "b" + key, sets));
  co_await WhenAll(std::move(both));
}

// The second count waits until the first is published.
TEST(KvCountTest, AWorkerCountsWhatItHasJustWritten) {
  constexpr uint64_t kKeys = 50;
  SimExecutor executor(1);
  TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20});
  TestWorker worker(cluster, executor,
                    std::make_unique<SimFabric>(executor, cluster.endpoints(), SimFabricOptions()),
                    EngineKind::kSwarm);
  worker.Start();
  for (uint64_t i = 0; i < kKeys; ++i) {
    BlockOn(executor, SetOrDeleteBoth(&worker.kv(), std::to_string(i), true));
    EXPECT_EQ(worker.CountKeys(), 2 * i + 2);
  }
  for (uint64_t i = 0; i < kKeys; ++i) {
    BlockOn(executor, SetOrDeleteBoth(&worker.kv(), std::to_string(i), false));
    EXPECT_EQ(worker.CountKeys(), 2 * (kKeys - i - 1));
  }
  worker.Stop();
}

INSTANTIATE_TEST_SUITE_P(Engines, KvTest,
                         testing::Values(EngineKind::kSwarm, EngineKind::kSnapshot,
                                         EngineKind::kRaw, EngineKind::kAbd),
                         [](const auto& info) {
                           switch (info.param) {
                             case EngineKind::kSwarm:
                               return "swarm";
                             case EngineKind::kSnapshot:
                               return "snapshot";
                             case EngineKind::kAbd:
                               return "abd";
                             case EngineKind::kRaw:
                               break;
                           }
                           return "raw";
                         });

}  // namespace
}  // namespace onetrip
