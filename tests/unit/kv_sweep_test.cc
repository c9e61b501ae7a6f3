// Entries that a flush leaves without a database are removed, whenever it comes and whoever ends.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/support/index_worker.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// A sweep ends when it has found nothing for this time.
constexpr uint64_t kQuietMs = 200;

class SweepTest : public testing::TestWithParam<EngineKind> {
 protected:
  std::unique_ptr<TestWorker> NewWorker() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    auto worker = std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps), GetParam(),
        options);
    worker->Start();
    return worker;
  }
  void Sleep(uint64_t ms) {
    BlockOn(executor_, [](SimExecutor& executor, uint64_t ns) -> Task<void> {
      co_await executor.SleepFor(ns);
    }(executor_, ms * kNsPerMs));
  }
  void SetSome(TestWorker& worker) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(worker.Set("key" + std::to_string(i), std::string(100, 'x')).ok());
    }
  }
  void Flush(TestWorker& worker) { ASSERT_TRUE(BlockOn(executor_, worker.kv().Flush(0)).ok()); }
  // Keys that are left by flushes at moments around the end of the sweep before them.
  uint64_t LeftOfFlushesBehindSweeps() {
    auto worker = NewWorker();
    uint64_t left = 0;
    for (uint64_t ms = kQuietMs - 20; ms < kQuietMs + 20; ms += 4) {
      SetSome(*worker);
      Flush(*worker);
      Sleep(ms);
      SetSome(*worker);
      Flush(*worker);
      Sleep(3 * kQuietMs);
      left += LookAtIndex(cluster_).objects;
    }
    worker->Stop();
    return left;
  }
  // Keys that are left of a worker's flush when it has ended behind it and another took over.
  uint64_t LeftOfAnEndedWorker() {
    auto other = NewWorker();
    auto flusher = NewWorker();
    SetSome(*flusher);
    Flush(*flusher);
    flusher->Stop();
    flusher.reset();
    EXPECT_GT(LookAtIndex(cluster_).objects, 0U) << "it has lived to sweep";
    RepairOrder order;
    order.kind = RepairKind::kTakeOverBlocks;
    order.view = cluster_.master().view();
    order.living.ids.push_back(other->context().membership.id);
    order.living.next = WorkerId{1000};
    bool ended = false;
    other->context().quiesce.duties()->Repair(order, [&](Status status) {
      EXPECT_TRUE(status.ok()) << status.message();
      ended = true;
    });
    for (int i = 0; i < 100 && !ended; ++i) Sleep(20);
    Sleep(3 * kQuietMs);
    const uint64_t left = LookAtIndex(cluster_).objects;
    other->Stop();
    return left;
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(),
                       ClusterShape{.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20}};
};
INSTANTIATE_TEST_SUITE_P(Engines, SweepTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

TEST_P(SweepTest, AFlushAtTheEndOfASweepIsSweptToo) { EXPECT_EQ(LeftOfFlushesBehindSweeps(), 0U); }

TEST_P(SweepTest, AnotherWorkerEndsTheSweepOfOneThatHasEnded) {
  EXPECT_EQ(LeftOfAnEndedWorker(), 0U);
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_P(SweepTest, PlantedBugFlushBehindSweepLostIsFound) {
  TEST_planted_bug = Bug::kFlushBehindSweepLost;
  EXPECT_GT(LeftOfFlushesBehindSweeps(), 0U);
  TEST_planted_bug = Bug::kNone;
}

TEST_P(SweepTest, PlantedBugSweepEndsWithWorkerIsFound) {
  TEST_planted_bug = Bug::kSweepEndsWithWorker;
  EXPECT_GT(LeftOfAnEndedWorker(), 0U);
  TEST_planted_bug = Bug::kNone;
}
#endif

}  // namespace
}  // namespace onetrip
