// Growing while serving: lookups never miss, updates are not lost, and the round trips are FUSEE's.
#include <gtest/gtest.h>

#include "tests/support/index_worker.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

#ifdef NDEBUG
constexpr int kInterleavedKeys = 200'000;
constexpr uint64_t kMillion = 1'000'000;
#else
constexpr int kInterleavedKeys = 30'000;
constexpr uint64_t kMillion = 100'000;
#endif

std::string KeyOf(uint64_t n) { return "key:" + std::to_string(n * 7919); }

Task<void> RunAll(std::vector<Task<void>> tasks) { co_await WhenAll(std::move(tasks)); }

// Keys [0, there) are there, for good.
struct Growth {
  uint64_t there = 0;
  uint64_t wanted = 0;
  uint64_t looked_up = 0;
  uint64_t added = 0;
};

Task<void> Grow(IndexWorker* worker, Growth* growth) {
  while (growth->there < growth->wanted) {
    const Result<bool> inserted = co_await worker->Insert(KeyOf(growth->there), growth->there);
    EXPECT_TRUE(inserted.ok() && inserted.value()) << inserted.status().message();
    if (!inserted.ok()) growth->wanted = 0;
    ++growth->there;
  }
}

// Everything that is there is found with its value; what is not there is not.
Task<void> LookUp(IndexWorker* worker, Growth* growth) {
  Rng& rng = worker->executor().rng();
  while (growth->there < growth->wanted) {
    // The newest keys, and any; over keys that are just moving when a split runs.
    const uint64_t there = growth->there;
    const uint64_t back = rng.Below(2) == 0 ? 20 : there;
    const uint64_t at = there == 0 ? 0 : there - 1 - rng.Below(std::min(back, there));
    if (there > 0) {
      const Result<uint64_t> found = co_await worker->Lookup(KeyOf(at));
      EXPECT_TRUE(found.ok()) << found.status().message();
      EXPECT_EQ(found.ok() ? found.value() : 0, at);
      if (!found.ok() || found.value() != at) growth->wanted = 0;
      ++growth->looked_up;
    }
    const Result<uint64_t> missing = co_await worker->Lookup("no " + KeyOf(at));
    EXPECT_TRUE(missing.ok()) << missing.status().message();
    EXPECT_EQ(missing.ok() ? missing.value() : 0, IndexWorker::kMissing);
  }
}

std::unique_ptr<IndexWorker> NewSimWorker(TestCluster& cluster, SimExecutor& executor,
                                          SimFabricOptions options) {
  auto worker =
      std::make_unique<IndexWorker>(cluster, executor, MakeSim(cluster, executor, options),
                                    DataPathOptions{.location_cache_bytes = 1 << 16});
  CHECK(BlockOn(executor, worker->Open()).ok());
  return worker;
}

// Inserts have their answers ahead of their last step.
void EndCommits(SimExecutor& executor) { executor.RunUntil(executor.NowNs() + 100'000); }

void ExpectSound(const IndexPicture& picture, uint64_t objects) {
  EXPECT_EQ(picture.objects, objects);
  EXPECT_EQ(picture.unfinished, 0U);
  EXPECT_EQ(picture.misplaced, 0U);
  EXPECT_EQ(picture.duplicates, 0U);
  EXPECT_TRUE(picture.replicas_agree);
}

TEST(IndexGrowthTest, LookupsNeverMissWhileTheIndexGrows) {
  SimExecutor executor(1);
  TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20});
  const SimFabricOptions whole{.latency_min_ns = 100, .latency_max_ns = 1500, .step_ns = 0};
  auto writer = NewSimWorker(cluster, executor, whole);
  auto reader = NewSimWorker(cluster, executor, whole);
  Growth growth;
  growth.wanted = static_cast<uint64_t>(Scaled(kInterleavedKeys));
  std::vector<Task<void>> tasks;
  tasks.push_back(Grow(writer.get(), &growth));
  tasks.push_back(LookUp(reader.get(), &growth));
  BlockOn(executor, RunAll(std::move(tasks)));
  EXPECT_GT(growth.looked_up, growth.there / 4);
  EXPECT_GE(writer->index().metrics().splits.Value(), growth.there / 5000);
  EndCommits(executor);
  ExpectSound(LookAtIndex(cluster), growth.there);
  const double filled =
      static_cast<double>(growth.there) /
      static_cast<double>(LookAtIndex(cluster).subtables * kSubtableGroups * kGroupSlots);
  RecordProperty("slots_filled_percent", static_cast<int>(filled * 100));
  EXPECT_GT(filled, 0.35);
  reader->Leave();
  writer->Leave();
}

// Inserts every `stride`-th number from growth->there on; two of them share the growth of a worker.
Task<void> GrowEveryOther(IndexWorker* worker, Growth* growth, uint64_t first, uint64_t stride) {
  for (uint64_t n = first; n < growth->wanted; n += stride) {
    const Result<bool> inserted = co_await worker->Insert(KeyOf(n), n);
    EXPECT_TRUE(inserted.ok() && inserted.value()) << inserted.status().message();
    if (!inserted.ok()) growth->wanted = 0;
    ++growth->added;
  }
}

// Small but in full detail: several inserters, some of them in one worker, bulk in steps, over many
// seeds, through the first splits.
TEST(IndexGrowthTest, SplitsInEveryDetailLoseNothing) {
  for (int seed = 1; seed <= Scaled(8); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimExecutor executor(static_cast<uint64_t>(seed));
    TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20});
    std::vector<std::unique_ptr<IndexWorker>> workers;
    std::vector<Growth> growths(3);
    std::vector<Growth> extra(3);
    std::vector<Task<void>> tasks;
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t slow = executor.rng().Below(2) == 0 ? 6 : 1;
      workers.push_back(NewSimWorker(
          cluster, executor, {.latency_min_ns = 100, .latency_max_ns = 1200 * slow, .step_ns = 5}));
    }
    // Each inserts its own third of the numbers while another looks for it.
    for (uint64_t i = 0; i < 3; ++i) {
      growths[i].there = i * 1'000'000;
      growths[i].wanted = i * 1'000'000 + 2000;
    }
    const auto look_up = [](IndexWorker* worker, Growth* growth, uint64_t base) -> Task<void> {
      Rng& rng = worker->executor().rng();
      while (growth->there < growth->wanted) {
        const uint64_t there = growth->there - base;
        const uint64_t at = base + (there == 0 ? 0 : rng.Below(there));
        const Result<uint64_t> found = co_await worker->Lookup(KeyOf(at));
        EXPECT_TRUE(found.ok()) << found.status().message();
        EXPECT_TRUE(there == 0 || (found.ok() && found.value() == at)) << at;
        if (testing::Test::HasFailure()) growth->wanted = 0;
      }
    };
    for (uint64_t i = 0; i < 3; ++i) {
      tasks.push_back(Grow(workers[i].get(), &growths[i]));
      // Two more of the same worker, for numbers of their own: they meet in its splits.
      for (uint64_t j = 0; j < 2; ++j) {
        const uint64_t base = (10 + i) * 1'000'000;
        extra[i].wanted = base + 1000;
        tasks.push_back(GrowEveryOther(workers[i].get(), &extra[i], base + j, 2));
      }
      tasks.push_back(look_up(workers[(i + 1) % 3].get(), &growths[i], i * 1'000'000));
    }
    BlockOn(executor, RunAll(std::move(tasks)));
    EndCommits(executor);
    ExpectSound(LookAtIndex(cluster), 9000);
    EXPECT_GT(LookAtIndex(cluster).subtables, 2U);
    for (auto& worker : workers) worker->Leave();
    if (testing::Test::HasFailure()) return;
  }
}

Task<void> AddOften(IndexWorker* worker, Growth* growth, uint64_t keys) {
  Rng& rng = worker->executor().rng();
  while (growth->there < growth->wanted) {
    const Result<bool> added = co_await worker->Add(KeyOf(rng.Below(keys)), 1);
    EXPECT_TRUE(added.ok() && added.value()) << added.status().message();
    if (!added.ok() || !added.value()) growth->wanted = 0;
    ++growth->added;
  }
}

TEST(IndexGrowthTest, SplitsUnderUpdatesLoseNoUpdate) {
  for (int seed = 1; seed <= Scaled(8); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SimExecutor executor(static_cast<uint64_t>(seed));
    TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20});
    std::vector<std::unique_ptr<IndexWorker>> workers;
    workers.reserve(3);
    for (int i = 0; i < 3; ++i) {
      workers.push_back(NewSimWorker(
          cluster, executor, {.latency_min_ns = 100, .latency_max_ns = 2500, .step_ns = 0}));
    }
    // A few hundred counters, made first; then others are inserted so that all of them move.
    constexpr uint64_t kCounters = 300;
    for (uint64_t i = 0; i < kCounters; ++i) {
      ASSERT_TRUE(BlockOn(executor, workers[0]->Insert(KeyOf(i), 0)).value());
    }
    Growth growth;
    growth.there = kCounters;
    growth.wanted = 6000;
    std::vector<Task<void>> tasks;
    tasks.push_back(Grow(workers[0].get(), &growth));
    for (const int i : {1, 2, 1, 2}) {
      tasks.push_back(AddOften(workers[static_cast<size_t>(i)].get(), &growth, kCounters));
    }
    BlockOn(executor, RunAll(std::move(tasks)));
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kCounters; ++i) {
      sum += BlockOn(executor, workers[2]->Lookup(KeyOf(i))).value();
    }
    EXPECT_EQ(sum, growth.added);
    EXPECT_GT(growth.added, 3000U);
    ExpectSound(LookAtIndex(cluster), growth.there);
    EXPECT_GT(LookAtIndex(cluster).subtables, 2U);
    for (auto& worker : workers) worker->Leave();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(IndexGrowthTest, AMillionKeysAreFoundAndRemoved) {
  SystemClock clock;
  TestCluster cluster(clock, {.nodes = 3, .replicas = 3, .node_bytes = 512ULL << 20});
  LoopExecutor executor(clock, 1);
  IndexWorker worker(cluster, executor, MakeShm(cluster, executor));
  ASSERT_TRUE(BlockOn(executor, worker.Open()).ok());
  const uint64_t keys = kMillion / kSlowdown;
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(BlockOn(executor, worker.Insert(KeyOf(i), i)).value()) << i;
  }
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_EQ(BlockOn(executor, worker.Lookup(KeyOf(i))).value(), i);
  }
  const uint64_t index_bytes = worker.index().metrics().subtable_bytes.Value();
  RecordProperty("index_bytes_per_key", static_cast<int>(index_bytes / keys));
  EXPECT_LT(index_bytes / keys, 24U);
  EXPECT_EQ(LookAtIndex(cluster).subtables * kSubtableBytes, index_bytes);
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(BlockOn(executor, worker.Remove(KeyOf(i))).value()) << i;
  }
  for (uint64_t i = 0; i < keys; i += 97) {
    ASSERT_EQ(BlockOn(executor, worker.Lookup(KeyOf(i))).value(), IndexWorker::kMissing);
  }
  ExpectSound(LookAtIndex(cluster), 0);
  worker.Leave();
}

// FUSEE: a lookup takes one round trip with a valid cached location, two else; a miss takes one
// unless a fingerprint happens to match.
TEST(IndexGrowthTest, LookupsTakeOneRoundTripOrTwo) {
  SimExecutor executor(1);
  TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20});
  auto writer = NewSimWorker(cluster, executor, {});
  auto reader = NewSimWorker(cluster, executor, {});
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(BlockOn(executor, writer->Insert(KeyOf(i), i)).value());
    EndCommits(executor);
    ASSERT_EQ(BlockOn(executor, reader->Lookup(KeyOf(i))).value(), i);
    EXPECT_EQ(reader->lookup_round_trips(), 2U);
    ASSERT_EQ(BlockOn(executor, reader->Lookup(KeyOf(i))).value(), i);
    EXPECT_EQ(reader->lookup_round_trips(), 1U);
    ASSERT_EQ(BlockOn(executor, writer->Lookup(KeyOf(i))).value(), i);
    EXPECT_EQ(writer->lookup_round_trips(), 1U) << "the inserter knows where it put it";
  }
  uint32_t missed = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(BlockOn(executor, reader->Lookup("no " + KeyOf(i))).value(), IndexWorker::kMissing);
    missed += reader->lookup_round_trips();
  }
  EXPECT_LT(missed, 530U);
  reader->Leave();
  writer->Leave();
}

Task<void> SplitFirst(IndexWorker* worker, Status* status) {
  *status = co_await worker->Split(worker->index().SubtableAt(0), KeyHash());
}

// One of them asks for the child's memory, for as long as it may come back. Were the others to ask
// behind it, each would wait as long again.
TEST(IndexGrowthTest, SplitsOfOneSubtableAreRefusedTogether) {
  constexpr int kSplits = 8;
  SimExecutor executor(1);
  TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20});
  IndexWorker worker(cluster, executor, MakeSim(cluster, executor),
                     DataPathOptions{.memory_wait_ms = 20});
  ASSERT_TRUE(BlockOn(executor, worker.Open()).ok());
  const SizeClass like_subtables = SizeClass::For(kSubtableBytes);
  GlobalAddr last;
  while (true) {
    const Result<GlobalAddr> addr = worker.Allocate(like_subtables);
    if (!addr.ok()) break;
    last = addr.value();
  }
  // Nor is there a reserve.
  while (BlockOn(executor, worker.allocator().AllocatePinned(like_subtables, true)).ok()) {
  }
  // Retired memory is awaited, and comes no sooner than the pin goes.
  EpochPin pin = worker.reclaimer().Pin();
  worker.allocator().Retire(last, like_subtables);

  const uint64_t began_ns = executor.NowNs();
  std::vector<Status> statuses(kSplits);
  std::vector<Task<void>> splits;
  splits.reserve(kSplits);
  for (Status& status : statuses) splits.push_back(SplitFirst(&worker, &status));
  BlockOn(executor, RunAll(std::move(splits)));
  for (const Status& status : statuses) EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_LT(executor.NowNs() - began_ns, 2 * 20'000'000U);
  pin.Release();
  worker.Leave();
}

}  // namespace
}  // namespace onetrip
