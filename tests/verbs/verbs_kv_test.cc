// The store over RDMA on a real driver.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/test_cluster.h"
#include "tests/verbs/verbs_world.h"

namespace onetrip {
namespace {

class VerbsKvTest : public testing::TestWithParam<EngineKind> {
 protected:
  // A guest may be a thousand times as slow as what it emulates.
  static constexpr uint64_t kPatienceMs = 120'000;

  struct Worker {
    Worker(VerbsKvTest& in, std::unique_ptr<VerbsFabric> made)
        : fabric(*made),
          worker(in.cluster_, in.world_.executor(), std::move(made), GetParam(),
                 {.op_timeout_ms = kPatienceMs}) {
      worker.Start();
    }
    ~Worker() { worker.Stop(); }
    VerbsFabric& fabric;
    TestWorker worker;
  };
  std::unique_ptr<Worker> NewWorker() {
    return std::make_unique<Worker>(*this, world_.NewVerbsFabric(cluster_.endpoints()));
  }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20}};
  VerbsWorld world_{1};
};

TEST_P(VerbsKvTest, KeysAreSetReadChangedAndDeleted) {
  const auto one = NewWorker();
  const auto other = NewWorker();
  constexpr int kKeys = 300;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key:" + std::to_string(i);
    ASSERT_TRUE(one->worker.Set(key, std::string(static_cast<size_t>(i), 'a')).ok());
    ASSERT_EQ(other->worker.Get(key), std::string(static_cast<size_t>(i), 'a'));
    ASSERT_TRUE(other->worker.Set(key, "of the other").ok());
    ASSERT_EQ(one->worker.Get(key), "of the other");
  }
  EXPECT_EQ(one->worker.CountKeys(), static_cast<uint64_t>(kKeys));
  for (int i = 0; i < kKeys; i += 2) {
    ASSERT_TRUE(one->worker.Delete("key:" + std::to_string(i)));
    ASSERT_EQ(other->worker.Get("key:" + std::to_string(i)), "(nil)");
  }
  EXPECT_EQ(other->worker.CountKeys(), static_cast<uint64_t>(kKeys / 2));
}

Task<void> Increment(Kv* kv, int times) {
  for (int i = 0; i < times; ++i) {
    AddMutation add(1);
    const Status status = co_await kv->ReadModifyWrite({0, "counter"}, add);
    EXPECT_TRUE(status.ok());
  }
}

TEST_P(VerbsKvTest, IncrementsOfTwoWorkersAreAllCounted) {
  const auto one = NewWorker();
  const auto other = NewWorker();
  constexpr int kTimes = 100;
  std::vector<Task<void>> tasks;
  for (TestWorker* worker : {&one->worker, &other->worker}) {
    for (int client = 0; client < 3; ++client) tasks.push_back(Increment(&worker->kv(), kTimes));
  }
  BlockOn(world_.executor(), AwaitAllInATurn(&world_.executor(), std::move(tasks)));
  EXPECT_EQ(one->worker.Get("counter"), std::to_string(6 * kTimes));
}

Task<void> SetAndRead(TestWorker* worker, std::string key, char value, int times) {
  for (int i = 0; i < times; ++i) {
    const std::string text(static_cast<size_t>(20 + i), value);
    NewRecord record;
    record.head = text;
    EXPECT_TRUE((co_await worker->kv().StartSet({0, key}, record)).ok());
  }
}

TEST_P(VerbsKvTest, WritersOfOneKeyLeaveOneOfTheirValues) {
  const auto one = NewWorker();
  const auto other = NewWorker();
  constexpr int kTimes = 60;
  std::vector<Task<void>> tasks;
  tasks.push_back(SetAndRead(&one->worker, "shared", 'a', kTimes));
  tasks.push_back(SetAndRead(&other->worker, "shared", 'b', kTimes));
  BlockOn(world_.executor(), AwaitAllInATurn(&world_.executor(), std::move(tasks)));
  const std::string last = one->worker.Get("shared");
  EXPECT_EQ(last, std::string(20 + kTimes - 1, last[0]));
  EXPECT_EQ(other->worker.Get("shared"), last);
}

// Each of its batches is one chain per node with one completion (VerbsFabricTest).
TEST_P(VerbsKvTest, AKnownKeyIsReadAndSetInOneRoundTrip) {
  if (GetParam() != EngineKind::kSwarm) GTEST_SKIP() << "only registers take one";
  const auto worker = NewWorker();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker->worker.Set("k", "value").ok());
  ASSERT_EQ(worker->worker.Get("k"), "value");
  StoreMetrics& metrics = worker->worker.kv().metrics();
  metrics.get_round_trips.Reset();
  metrics.set_round_trips.Reset();
  const RdmaMetrics& posted = *worker->fabric.rdma_metrics();
  const uint64_t before = posted.doorbells.Value();
  constexpr uint64_t kTimes = 20;
  for (uint64_t i = 0; i < kTimes; ++i) ASSERT_TRUE(worker->worker.Set("k", "another").ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), kTimes);
  // The copies in place are written behind the last one's answer, and a read that meets one that is
  // still under way takes another round trip; once they are there none does.
  uint64_t in_a_row = 0;
  for (int i = 0; i < 500 && in_a_row < kTimes; ++i) {
    metrics.get_round_trips.Reset();
    ASSERT_EQ(worker->worker.Get("k"), "another");
    in_a_row = metrics.get_round_trips.Sum() == 1 ? in_a_row + 1 : 0;
  }
  EXPECT_EQ(in_a_row, kTimes);
  EXPECT_EQ(posted.flushed.Value(), 0U);
  // Stragglers and what goes behind an answer may be under way.
  EXPECT_LE(posted.doorbells.Value() - posted.completions.Value(), 8U);
  EXPECT_GE(posted.doorbells.Value() - before, kTimes * (3 + 2));
}

INSTANTIATE_TEST_SUITE_P(Engines, VerbsKvTest,
                         testing::Values(EngineKind::kSwarm, EngineKind::kSnapshot),
                         [](const auto& info) {
                           return std::string(info.param == EngineKind::kSwarm ? "swarm"
                                                                               : "snapshot");
                         });

}  // namespace
}  // namespace onetrip
