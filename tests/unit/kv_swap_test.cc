// Databases that exchange their keys: what is there, and what is counted, goes along.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/memory_worker.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

Task<void> SleepOneMs(Executor& executor) { co_await executor.SleepFor(1'000'000); }

class KvSwapTest : public testing::TestWithParam<EngineKind> {
 protected:
  Kv& kv() { return worker_->kv(); }
  Status Set(uint32_t database, const std::string& key) {
    return BlockOn(worker_.executor(), kv().Set({database, key}, {.head = key}));
  }
  bool Has(uint32_t database, std::string_view key) {
    ReadResult result;
    EXPECT_TRUE(BlockOn(worker_.executor(), kv().Get({database, key}, &result)).ok());
    return result.found();
  }
  bool Delete(uint32_t database, std::string_view key) {
    bool existed = false;
    EXPECT_TRUE(BlockOn(worker_.executor(), kv().Delete({database, key}, &existed)).ok());
    return existed;
  }
  void Swap(uint32_t first, uint32_t second) {
    ASSERT_TRUE(BlockOn(worker_.executor(), kv().Swap(first, second)).ok());
  }
  void Flush(std::optional<uint32_t> database) {
    ASSERT_TRUE(BlockOn(worker_.executor(), kv().Flush(database)).ok());
  }
  uint64_t Count(uint32_t database) { return worker_->CountKeys(database); }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, GetParam(), {.epoch_tick_us = 500, .location_cache_bytes = 1 << 20}};
};

TEST_P(KvSwapTest, KeysAndCountsGoAlong) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Set(0, "k" + std::to_string(i)).ok());
  ASSERT_TRUE(Set(3, "other").ok());
  Swap(0, 3);
  EXPECT_EQ(Count(0), 1U);
  EXPECT_EQ(Count(3), 30U);
  EXPECT_TRUE(Has(0, "other"));
  EXPECT_TRUE(Has(3, "k7"));
  EXPECT_FALSE(Has(0, "k7"));
  // Keys that come and go now count where their keyspace is now.
  EXPECT_TRUE(Delete(3, "k7"));
  EXPECT_FALSE(Delete(0, "k7"));
  ASSERT_TRUE(Set(0, "k7").ok());
  EXPECT_EQ(Count(0), 2U);
  EXPECT_EQ(Count(3), 29U);
  Swap(3, 0);
  EXPECT_EQ(Count(0), 29U);
  EXPECT_EQ(Count(3), 2U);
  Swap(0, 0);
  EXPECT_EQ(Count(0), 29U);
}

TEST_P(KvSwapTest, AHashThatAKeyKeepsCountsUnderItsKeyspaceOnly) {
  ASSERT_TRUE(Set(0, "k").ok());
  Key key{0, "k"};
  kv().PrefetchLocation(&key);
  kv().PrefetchRecord(key, KeyUse::kRead);
  const uint64_t hash = key.hash;
  Key again = key;
  kv().PrefetchLocation(&again);
  EXPECT_EQ(again.hash, hash);
  ReadResult result;
  ASSERT_TRUE(BlockOn(worker_.executor(), kv().Get(key, &result)).ok());
  EXPECT_TRUE(result.found());
  Swap(0, 1);
  ASSERT_TRUE(BlockOn(worker_.executor(), kv().Get(key, &result)).ok());
  EXPECT_FALSE(result.found());
  key.database = 1;
  ASSERT_TRUE(BlockOn(worker_.executor(), kv().Get(key, &result)).ok());
  EXPECT_TRUE(result.found());
  key.database = 0;
  kv().PrefetchLocation(&key);
  EXPECT_NE(key.hash, hash);
}

TEST_P(KvSwapTest, AFlushEmptiesTheDatabaseThatIsNamedNow) {
  ASSERT_TRUE(Set(0, "old").ok());
  ASSERT_TRUE(Set(1, "kept").ok());
  Swap(0, 1);
  Flush(1);
  EXPECT_FALSE(Has(1, "old"));
  EXPECT_TRUE(Has(0, "kept"));
  EXPECT_EQ(Count(0), 1U);
  EXPECT_EQ(Count(1), 0U);
  // The keyspace of database 0 is older than the fresh one: no worker sweeps it.
  const uint64_t swept = kv().metrics().swept.Value();
  for (int i = 0; i < 500 && kv().metrics().swept.Value() == swept; ++i) {
    BlockOn(worker_.executor(), SleepOneMs(worker_.executor()));
  }
  EXPECT_EQ(kv().metrics().swept.Value(), swept + 1) << "the flushed key alone";
  EXPECT_TRUE(Has(0, "kept"));
  ASSERT_TRUE(Set(1, "new").ok());
  Swap(1, 0);
  EXPECT_TRUE(Has(0, "new"));
  EXPECT_TRUE(Has(1, "kept"));
  EXPECT_EQ(Count(0), 1U);
  EXPECT_EQ(Count(1), 1U);
  // An older keyspace than before is counted in, too.
  ASSERT_TRUE(Set(1, "more").ok());
  EXPECT_EQ(Count(1), 2U);
}

// Words for counts are as many as databases, and each is taken again when its keyspace is gone.
TEST_P(KvSwapTest, CountsSurviveAnyOrderOfSwapsAndFlushes) {
  uint64_t expected[kMaxDatabases] = {};
  Rng rng(7);
  for (int turn = 0; turn < 400; ++turn) {
    const auto first = static_cast<uint32_t>(rng.Below(kMaxDatabases));
    const auto second = static_cast<uint32_t>(rng.Below(kMaxDatabases));
    switch (rng.Below(4)) {
      case 0:
        Swap(first, second);
        std::swap(expected[first], expected[second]);
        break;
      case 1:
        if (rng.Below(20) != 0) {
          Flush(first);
          expected[first] = 0;
          break;
        }
        Flush(std::nullopt);
        for (uint64_t& keys : expected) keys = 0;
        break;
      default:
        ASSERT_TRUE(Set(first, "t" + std::to_string(turn)).ok());
        ++expected[first];
    }
    const auto database = static_cast<uint32_t>(rng.Below(kMaxDatabases));
    ASSERT_EQ(Count(database), expected[database]) << "database " << database;
  }
  for (uint32_t database = 0; database < kMaxDatabases; ++database) {
    EXPECT_EQ(Count(database), expected[database]) << "database " << database;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, KvSwapTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

}  // namespace
}  // namespace onetrip
