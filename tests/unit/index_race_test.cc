// Workers that meet on the same keys: inserts, deletes and updates, over many schedules of the sim
// fabric, and on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/index_worker.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

Task<void> RunAll(std::vector<Task<void>> tasks) { co_await WhenAll(std::move(tasks)); }

Task<void> OpenAll(std::vector<std::unique_ptr<IndexWorker>>* workers) {
  for (auto& worker : *workers) EXPECT_TRUE((co_await worker->Open()).ok());
}

// A simulation of some workers, near and far.
class IndexSimulation {
 public:
  IndexSimulation(uint64_t seed, size_t workers)
      : executor_(seed),
        cluster_(executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes}) {
    for (size_t i = 0; i < workers; ++i) {
      const uint64_t slow = executor_.rng().Below(3) == 0 ? 8 : 1;
      const SimFabricOptions options{
          .latency_min_ns = 100, .latency_max_ns = 1500 * slow, .step_ns = 5};
      workers_.push_back(
          std::make_unique<IndexWorker>(cluster_, executor_, MakeSim(cluster_, executor_, options),
                                        DataPathOptions{.location_cache_bytes = 4096}));
    }
    BlockOn(executor_, OpenAll(&workers_));
  }
  ~IndexSimulation() {
    for (auto& worker : workers_) worker->Leave();
  }

  SimExecutor& executor() { return executor_; }
  TestCluster& cluster() { return cluster_; }
  IndexWorker& worker(size_t index) { return *workers_[index]; }
  [[nodiscard]] size_t size() const { return workers_.size(); }
  void Run(std::vector<Task<void>> tasks) { BlockOn(executor_, RunAll(std::move(tasks))); }

 private:
  SimExecutor executor_;
  TestCluster cluster_;
  std::vector<std::unique_ptr<IndexWorker>> workers_;
};

Task<void> InsertOnce(IndexWorker* worker, std::string key, uint64_t value,
                      std::vector<uint64_t>* winners) {
  co_await worker->executor().SleepFor(worker->executor().rng().Below(4000));
  const Result<bool> inserted = co_await worker->Insert(key, value);
  EXPECT_TRUE(inserted.ok()) << inserted.status().message();
  if (inserted.ok() && inserted.value()) winners->push_back(value);
  // From now on the key is there, for every worker.
  const Result<uint64_t> found = co_await worker->Lookup(key);
  EXPECT_TRUE(found.ok());
  EXPECT_NE(found.value(), IndexWorker::kMissing);
}

Task<void> InsertBeside(IndexWorker* worker, Quiesce::InFlightGuard /*in_flight*/, Status* status) {
  *status = (co_await worker->Insert("key", 1)).status();
}

// Its owner has ended, and no resolution has come yet. What the insert takes meanwhile is one
// object or two, not one per try.
TEST(IndexRaceTest, AnInsertBesideAClaimThatHasNoEndGivesUp) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    IndexSimulation simulation(seed, 2);
    IndexWorker& other = simulation.worker(0);
    IndexWorker& inserter = simulation.worker(1);
    ASSERT_TRUE(BlockOn(simulation.executor(), other.Claim("key")).ok());
    Status status;
    simulation.Run([&] {
      std::vector<Task<void>> tasks;
      tasks.push_back(InsertBeside(&inserter, {}, &status));
      return tasks;
    }());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_LE(inserter.allocator().retired_count(), 2U);
    EXPECT_EQ(LookAtIndex(simulation.cluster()).claims, 1U);
  }
}

TEST(IndexRaceTest, SoItDoesWhenAQuiesceOfAllWaitsForIt) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    IndexSimulation simulation(seed, 2);
    SimExecutor& executor = simulation.executor();
    IndexWorker& inserter = simulation.worker(1);
    ASSERT_TRUE(BlockOn(executor, simulation.worker(0).Claim("key")).ok());
    Status status;
    Gate gate(executor);
    Quiesce& quiesce = inserter.context().quiesce;
    executor.Spawn(gate, InsertBeside(&inserter, Quiesce::InFlightGuard(quiesce), &status));
    executor.RunUntil(executor.NowNs() + 1'000'000);
    EXPECT_EQ(gate.inside(), 1U);
    bool still = false;
    quiesce.Hold(HoldKind::kAll, [&still] { still = true; });
    executor.RunUntil(executor.NowNs() + inserter.context().options.op_timeout_ms * 500'000);
    EXPECT_TRUE(still);
    EXPECT_EQ(gate.inside(), 0U);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_LE(inserter.allocator().retired_count(), 2U);
    quiesce.Release();
  }
}

TEST(IndexRaceTest, OfInsertsOfOneKeyExactlyOneSucceeds) {
  const int seeds = Scaled(60);
  constexpr uint64_t kKeys = 60;
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    IndexSimulation simulation(static_cast<uint64_t>(seed), 2 + static_cast<size_t>(seed) % 4);
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = "key " + std::to_string(i);
      std::vector<uint64_t> winners;
      std::vector<Task<void>> tasks;
      for (size_t worker = 0; worker < simulation.size(); ++worker) {
        tasks.push_back(InsertOnce(&simulation.worker(worker), key, 100 * i + worker, &winners));
      }
      simulation.Run(std::move(tasks));
      ASSERT_EQ(winners.size(), 1U) << key;
      for (size_t worker = 0; worker < simulation.size(); ++worker) {
        EXPECT_EQ(BlockOn(simulation.executor(), simulation.worker(worker).Lookup(key)).value(),
                  winners[0]);
      }
    }
    const IndexPicture picture = LookAtIndex(simulation.cluster());
    EXPECT_EQ(picture.objects, kKeys);
    EXPECT_EQ(picture.unfinished, 0U);
    EXPECT_EQ(picture.duplicates, 0U);
    EXPECT_EQ(picture.misplaced, 0U);
    EXPECT_TRUE(picture.replicas_agree);
    if (testing::Test::HasFailure()) return;
  }
}

// The history of a few keys: successful inserts less successful removes, and sums added.
struct Ledger {
  static constexpr size_t kKeys = 3;
  int64_t present[kKeys] = {};
  uint64_t successes = 0;
};

Task<void> Churn(IndexWorker* worker, int rounds, Ledger* ledger) {
  Rng& rng = worker->executor().rng();
  for (int i = 0; i < rounds; ++i) {
    const size_t at = rng.Below(Ledger::kKeys);
    const std::string key = "churned " + std::to_string(at);
    switch (rng.Below(4)) {
      case 0:
      case 1: {
        const Result<bool> inserted = co_await worker->Insert(key, rng.Below(1000));
        EXPECT_TRUE(inserted.ok()) << inserted.status().message();
        if (inserted.value()) ++ledger->present[at];
        ledger->successes += inserted.value();
        break;
      }
      case 2: {
        const Result<bool> removed = co_await worker->Remove(key);
        EXPECT_TRUE(removed.ok()) << removed.status().message();
        if (removed.value()) --ledger->present[at];
        ledger->successes += removed.value();
        break;
      }
      default: {
        const Result<uint64_t> found = co_await worker->Lookup(key);
        EXPECT_TRUE(found.ok()) << found.status().message();
        EXPECT_TRUE(found.value() == IndexWorker::kMissing || found.value() < 1000);
      }
    }
    if (rng.Below(4) == 0) co_await worker->executor().SleepFor(rng.Below(5000));
  }
}

TEST(IndexRaceTest, InsertsAndRemovesOfAFewKeysAlternate) {
  for (int seed = 1; seed <= Scaled(80); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    IndexSimulation simulation(static_cast<uint64_t>(seed), 2 + static_cast<size_t>(seed) % 3);
    Ledger ledger;
    std::vector<Task<void>> tasks;
    for (size_t worker = 0; worker < simulation.size(); ++worker) {
      tasks.push_back(Churn(&simulation.worker(worker), 60, &ledger));
    }
    simulation.Run(std::move(tasks));
    uint64_t present = 0;
    for (size_t at = 0; at < Ledger::kKeys; ++at) {
      ASSERT_TRUE(ledger.present[at] == 0 || ledger.present[at] == 1) << ledger.present[at];
      const auto found = BlockOn(simulation.executor(),
                                 simulation.worker(0).Lookup("churned " + std::to_string(at)));
      EXPECT_EQ(found.value() != IndexWorker::kMissing, ledger.present[at] == 1);
      present += static_cast<uint64_t>(ledger.present[at]);
    }
    const IndexPicture picture = LookAtIndex(simulation.cluster());
    EXPECT_EQ(picture.objects, present);
    EXPECT_EQ(picture.unfinished, 0U);
    EXPECT_EQ(picture.duplicates, 0U);
    EXPECT_TRUE(picture.replicas_agree);
    EXPECT_GT(ledger.successes, 20U);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(IndexRaceTest, AllWorkersMayOpenTheIndexAtOnce) {
  for (int seed = 1; seed <= Scaled(100); ++seed) {
    SimExecutor executor(static_cast<uint64_t>(seed));
    TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes});
    std::vector<std::unique_ptr<IndexWorker>> workers;
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      workers.push_back(
          std::make_unique<IndexWorker>(cluster, executor, MakeSim(cluster, executor),
                                        DataPathOptions{.location_cache_bytes = 4096}));
      tasks.push_back([](IndexWorker* worker) -> Task<void> {
        co_await worker->executor().SleepFor(worker->executor().rng().Below(10'000));
        EXPECT_TRUE((co_await worker->Open()).ok());
      }(workers.back().get()));
    }
    BlockOn(executor, RunAll(std::move(tasks)));
    EXPECT_EQ(LookAtIndex(cluster).subtables, 1U) << "seed " << seed;
    EXPECT_TRUE(LookAtIndex(cluster).replicas_agree) << "seed " << seed;
    EXPECT_TRUE(BlockOn(executor, workers[3]->Insert("key", 1)).value());
    EXPECT_EQ(BlockOn(executor, workers[0]->Lookup("key")).value(), 1U) << "seed " << seed;
    for (auto& worker : workers) worker->Leave();
  }
}

// On shm, with threads: the same keys inserted by all; each success counted; all of them split.
TEST(IndexRaceTest, ThreadsInsertTheSameKeysOnceAndAddWithoutLoss) {
  constexpr size_t kThreads = 4;
  const auto keys = static_cast<uint64_t>(Scaled(30'000));
  SystemClock clock;
  TestCluster cluster(clock, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20});
  std::atomic<uint64_t> inserted{0};
  std::atomic<uint64_t> added{0};
  std::atomic<size_t> done{0};
  const auto run = [&](size_t id) {
    SystemClock own_clock;
    LoopExecutor executor(own_clock, id + 1);
    IndexWorker worker(cluster, executor, MakeShm(cluster, executor),
                       DataPathOptions{.location_cache_bytes = 1 << 16});
    EXPECT_TRUE(BlockOn(executor, worker.Open()).ok());
    Rng rng(id);
    for (uint64_t i = 0; i < keys; ++i) {
      const Result<bool> is_new = BlockOn(executor, worker.Insert("k" + std::to_string(i), 0));
      EXPECT_TRUE(is_new.ok()) << is_new.status().message();
      if (is_new.ok() && is_new.value()) ++inserted;
      const std::string key = "k" + std::to_string(i - rng.Below(std::min<uint64_t>(i + 1, 50)));
      const Result<bool> was_there = BlockOn(executor, worker.Add(key, 1));
      EXPECT_TRUE(was_there.ok()) << was_there.status().message();
      EXPECT_TRUE(was_there.ok() && was_there.value()) << key;
      if (was_there.ok() && was_there.value()) ++added;
      if (testing::Test::HasFailure()) break;
    }
    for (++done; done.load() < kThreads; std::this_thread::yield()) worker.Maintain();
    worker.Leave();
  };
  std::vector<std::thread> threads;
  for (size_t id = 0; id < kThreads; ++id) threads.emplace_back(run, id);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(inserted.load(), keys);
  LoopExecutor executor(clock, 1);
  IndexWorker reader(cluster, executor, MakeShm(cluster, executor));
  EXPECT_TRUE(BlockOn(executor, reader.Open()).ok());
  uint64_t sum = 0;
  for (uint64_t i = 0; i < keys; ++i) {
    const Result<uint64_t> value = BlockOn(executor, reader.Lookup("k" + std::to_string(i)));
    ASSERT_TRUE(value.ok() && value.value() != IndexWorker::kMissing) << i;
    sum += value.value();
  }
  EXPECT_EQ(sum, added.load());
  const IndexPicture picture = LookAtIndex(cluster);
  EXPECT_EQ(picture.objects, keys);
  EXPECT_EQ(picture.unfinished, 0U);
  EXPECT_EQ(picture.duplicates, 0U);
  EXPECT_EQ(picture.misplaced, 0U);
  EXPECT_TRUE(picture.replicas_agree);
  reader.Leave();
}

}  // namespace
}  // namespace onetrip
