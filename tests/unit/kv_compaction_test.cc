// Memory that hardly anything lives in changes its size class (PROTOCOLS, "Compaction").
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/base/rng.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

// A pool of its own, with workers.
class Pool {
 public:
  explicit Pool(int workers, EngineKind engine) : engine_(engine) {
    for (int i = 0; i < workers; ++i) AddWorker();
  }
  ~Pool() {
    for (auto& worker : workers_) worker->Stop();
  }
  TestWorker& AddWorker() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    options.memory_wait_ms = 50;
    options.compaction_rest_us = 1000;
    options.account_rest_us = 2000;
    workers_.push_back(std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps), engine_,
        options));
    workers_.back()->Start();
    return *workers_.back();
  }
  TestWorker& worker(size_t i) { return *workers_.at(i); }
  void StopWorker(size_t i) {
    workers_.at(i)->Stop();
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  Status Set(TestWorker& worker, const std::string& key, size_t value_bytes) {
    const std::string value(value_bytes, static_cast<char>('a' + model_.size() % 26));
    const Status status = worker.Set(key, value);
    if (status.ok()) model_[key] = value;
    return status;
  }
  // Sets keys of `prefix` until one is refused.
  size_t Fill(TestWorker& worker, const std::string& prefix, size_t value_bytes) {
    for (size_t i = 0;; ++i) {
      const Status status = Set(worker, prefix + std::to_string(i), value_bytes);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
        return i;
      }
    }
  }
  void DeleteMost(TestWorker& worker, uint32_t percent) {
    Rng rng(7);
    for (auto it = model_.begin(); it != model_.end();) {
      if (rng.Below(100) >= percent) {
        ++it;
        continue;
      }
      EXPECT_TRUE(worker.Delete(it->first));
      it = model_.erase(it);
    }
  }
  // Free blocks that a node lacks of its reserve, all nodes together.
  uint64_t LackOfReserve() {
    BlockOn(executor_, [](SimExecutor* executor) -> Task<void> {
      co_await executor->SleepFor(50'000'000);
    }(&executor_));
    uint64_t lack = 0;
    for (size_t i = 0; i < cluster_.node_count(); ++i) {
      const NodeUsage usage = cluster_.node(i).Usage();
      const uint64_t free = usage.blocks - usage.granted_blocks;
      lack += usage.reserve_blocks - std::min<uint64_t>(usage.reserve_blocks, free);
    }
    return lack;
  }
  void ExpectAll(TestWorker& worker) {
    for (const auto& [key, value] : model_) ASSERT_EQ(worker.Get(key), value) << key;
  }

 private:
  const EngineKind engine_;
  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::map<std::string, std::string> model_;
};

constexpr size_t kSmall = kSlowdown > 1 ? 480 : 64;

class KvCompactionTest : public testing::TestWithParam<EngineKind> {};

TEST_P(KvCompactionTest, SmallValuesMakeRoomForLargeOnes) {
  size_t fresh = 0;
  {
    Pool pool(2, GetParam());
    fresh = pool.Fill(pool.worker(0), "large", 4096);
  }
  // By itself, then by another worker; for a sanitizer one has to do.
  for (size_t filler = kSlowdown > 1 ? 1 : 0; filler < 2; ++filler) {
    Pool pool(2, GetParam());
    pool.Fill(pool.worker(filler), "small", kSmall);
    pool.DeleteMost(pool.worker(filler), 90);
    const size_t now = pool.Fill(pool.worker(0), "large", 4096);
    // A tenth of it is still used by small ones, and they may have to lie in blocks of their own.
    EXPECT_GE(now * 100, fresh * 75);
    pool.ExpectAll(pool.worker(1));
  }
}

TEST_P(KvCompactionTest, SoDoThoseInBlocksThatAreNobodys) {
  size_t fresh = 0;
  {
    Pool pool(1, GetParam());
    fresh = pool.Fill(pool.worker(0), "large", 4096);
  }
  Pool pool(2, GetParam());
  pool.Fill(pool.worker(0), "small", kSmall);
  pool.DeleteMost(pool.worker(0), 90);
  pool.StopWorker(0);
  const size_t now = pool.Fill(pool.worker(0), "large", 4096);
  // Objects that words of the worker that left still name stay in blocks that no worker takes over
  // here.
  EXPECT_GE(now * 100, fresh * 70);
  pool.ExpectAll(pool.worker(0));
}

// A few of every size class keep a block each: those of which hardly anything lives move in with
// somewhat larger ones.
TEST_P(KvCompactionTest, WhatIsLeftOfManyClassesSharesBlocks) {
  size_t fresh = 0;
  {
    Pool pool(1, GetParam());
    fresh = pool.Fill(pool.worker(0), "large", 20000);
  }
  Pool pool(1, GetParam());
  TestWorker& worker = pool.worker(0);
  for (size_t bytes = 32; bytes < 1000; bytes += bytes / 4) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(pool.Set(worker, std::to_string(bytes) + "/" + std::to_string(i), bytes).ok());
    }
  }
  const size_t now = pool.Fill(worker, "large", 20000);
  // A register needs two places on its way.
  EXPECT_GE(now * 100, fresh * (GetParam() == EngineKind::kSwarm ? 80 : 90));
  pool.ExpectAll(worker);
}

// Compaction makes records of the registers in a block; one that it cannot empty in time serves new
// keys again. So it takes none of the reserve, which new keys then would have.
uint64_t LackBehindCompaction() {
  Pool pool(2, EngineKind::kSwarm);
  uint64_t lack = 0;
  for (size_t i = 0; i < 2; ++i) {
    pool.Fill(pool.worker(i), "a" + std::to_string(i), 2900);
    lack = std::max(lack, pool.LackOfReserve());
  }
  for (uint32_t percent : {30, 50, 80}) {
    pool.DeleteMost(pool.worker(percent % 2), percent);
    for (size_t i = 0; i < 2; ++i) {
      pool.Fill(pool.worker(i), std::to_string(percent) + "/" + std::to_string(i), 40 * percent);
      lack = std::max(lack, pool.LackOfReserve());
    }
  }
  pool.ExpectAll(pool.worker(0));
  return lack;
}

TEST(KvCompactionReserveTest, CompactionLeavesTheReserve) {
  if (kSlowdown > 1) GTEST_SKIP() << "too many keys for a sanitizer";
  EXPECT_EQ(LackBehindCompaction(), 0U);
}

#ifdef ONETRIP_PLANTED_BUGS
TEST(KvCompactionReserveTest, PlantedBugCompactionTakesReserveIsFound) {
  TEST_planted_bug = Bug::kCompactionTakesReserve;
  EXPECT_GT(LackBehindCompaction(), 0U);
  TEST_planted_bug = Bug::kNone;
}
#endif

// To a sanitizer, which takes minutes, one is as good as the other.
INSTANTIATE_TEST_SUITE_P(
    Engines, KvCompactionTest,
    testing::ValuesIn(kSlowdown > 1 ? std::vector{EngineKind::kSwarm}
                                    : std::vector{EngineKind::kSnapshot, EngineKind::kSwarm}),
    [](const auto& param) { return param.param == EngineKind::kSwarm ? "swarm" : "snapshot"; });

}  // namespace
}  // namespace onetrip
