// Keys whose time has passed give their memory back though no client touches them.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

class KvExpiryTest : public testing::TestWithParam<EngineKind> {
 protected:
  static DataPathOptions Options() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 20;
    options.epoch_tick_us = 200;
    options.expiry_rest_us = 1000;
    return options;
  }
  // Lets the worker alone until `keys` keys are left, or for a long time.
  uint64_t WaitForKeys(uint64_t keys) {
    const auto wait = [](Kv* kv, Executor* executor, uint64_t wanted) -> Task<uint64_t> {
      uint64_t left = 0;
      for (int i = 0; i < 3000; ++i) {
        const Status status = co_await kv->CountKeys(0, &left);
        EXPECT_TRUE(status.ok()) << status.message();
        if (left <= wanted) break;
        co_await executor->SleepFor(10'000'000);
      }
      co_return left;
    };
    return BlockOn(worker_.executor(), wait(&worker_->kv(), &worker_.executor(), keys));
  }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_{cluster_, GetParam(), Options()};
};

TEST_P(KvExpiryTest, WhatHasHadItsTimeGoesByItselfAndNothingElse) {
  constexpr int kKeys = 6000;
  const uint64_t soon_ms = worker_->kv().NowMs() + 1;
  const uint64_t later_ms = soon_ms + 1'000'000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = std::to_string(i);
    const uint64_t deadline_ms = i % 3 == 0 ? 0 : i % 3 == 1 ? soon_ms : later_ms;
    ASSERT_TRUE(worker_->Set(key, "v", deadline_ms).ok());
  }
  // Some of the keys that are kept for ever were timed before.
  for (int i = 1; i < kKeys; i += 300) ASSERT_TRUE(worker_->Set(std::to_string(i), "w").ok());
  constexpr uint64_t kKept = kKeys / 3 * 2 + kKeys / 300;
  EXPECT_EQ(WaitForKeys(kKept), kKept);
  for (int i = 0; i < kKeys; ++i) {
    const std::string expected = i % 300 == 1 ? "w" : i % 3 == 1 ? "(nil)" : "v";
    ASSERT_EQ(worker_->Get(std::to_string(i)), expected) << i;
  }
  EXPECT_EQ(worker_->CountKeys(), kKept);
}

// More is stored, one after the other, than there is room for.
TEST_P(KvExpiryTest, ItsMemoryIsUsedAgain) {
  const std::string value(16'000, 'v');
  for (int round = 0; round < 8; ++round) {
    const uint64_t soon_ms = worker_->kv().NowMs() + 20;
    for (int i = 0; i < 1200; ++i) {
      const std::string key = std::to_string(round) + ":" + std::to_string(i);
      ASSERT_TRUE(worker_->Set(key, value, soon_ms).ok()) << round << " " << i;
    }
    EXPECT_EQ(WaitForKeys(0), 0U);
  }
}

TEST_P(KvExpiryTest, ItIsSwitchedOffAndOn) {
  Kv& kv = worker_->kv();
  kv.SetActiveExpiry(false);
  ASSERT_TRUE(worker_->Set("timed", "v", kv.NowMs() + 1).ok());
  BlockOn(worker_.executor(), [](Executor* executor) -> Task<void> {
    co_await executor->SleepFor(50'000'000);
  }(&worker_.executor()));
  EXPECT_EQ(worker_->CountKeys(), 1U);
  kv.SetActiveExpiry(true);
  EXPECT_EQ(WaitForKeys(0), 0U);
  EXPECT_EQ(kv.metrics().expired.Value(), 1U);
}

TEST_P(KvExpiryTest, ASampleTellsWhichShareHasADeadline) {
  Kv& kv = worker_->kv();
  const uint64_t later_ms = kv.NowMs() + 1'000'000;
  const auto sample = [&] {
    DeadlineSample result;
    EXPECT_TRUE(BlockOn(worker_.executor(), kv.SampleDeadlines(0, &result)).ok());
    return result;
  };
  const auto set = [&](int first, int end) {
    for (int i = first; i < end; ++i) {
      ASSERT_TRUE(worker_->Set(std::to_string(i), "v", i % 4 == 0 ? later_ms : 0).ok());
    }
  };
  set(0, 400);
  EXPECT_TRUE(sample().is_whole);
  EXPECT_EQ(sample().keys, 400U);
  EXPECT_EQ(sample().with_deadline, 100U);
  EXPECT_GT(sample().left_ms, 100 * 900'000U);
  set(400, 20'000);
  const DeadlineSample part = sample();
  EXPECT_FALSE(part.is_whole);
  EXPECT_NEAR(static_cast<double>(part.with_deadline) / static_cast<double>(part.keys), 0.25, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Engines, KvExpiryTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const auto& info) {
                           return info.param == EngineKind::kSnapshot ? "snapshot" : "swarm";
                         });

}  // namespace
}  // namespace onetrip
