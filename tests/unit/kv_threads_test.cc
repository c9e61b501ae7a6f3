// Several workers, each on a thread of its own, hammer the same keys through shm: real races on
// real memory. Runs under ThreadSanitizer and AddressSanitizer as well.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <charconv>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20};
constexpr int kThreads = 3;

DataPathOptions Options() {
  DataPathOptions options;
  options.location_cache_bytes = 1 << 18;
  options.epoch_tick_us = 2000;
  // The threads may outnumber the cores by far on a busy host.
  options.op_timeout_ms = 60'000;
  return options;
}

class KvThreads : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(Engines, KvThreads,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

template <typename Body>
void OnThreads(TestCluster& cluster, EngineKind engine, Body body) {
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ShmWorker worker(cluster, engine, Options(), static_cast<uint64_t>(i) + 1);
      body(worker, i);
      // Others wait for our epoch: keep ticking until all are through.
      --running;
      while (running > 0) {
        BlockOn(worker.executor(), [](Executor& executor) -> Task<void> {
          co_await executor.SleepFor(1'000'000);
        }(worker.executor()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(KvThreads, IncrementsSumExactly) {
  const SystemClock clock;
  TestCluster cluster(clock, kShape);
  const int increments = Scaled(60'000);
  OnThreads(cluster, GetParam(), [&](ShmWorker& worker, int /*thread*/) {
    for (int i = 0; i < increments; ++i) {
      AddMutation add(1);
      const std::string key = "counter" + std::to_string(i % 3);
      ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().ReadModifyWrite({0, key}, add)).ok());
    }
  });
  ShmWorker reader(cluster);
  int64_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += std::stoll(reader->Get("counter" + std::to_string(i)));
  EXPECT_EQ(sum, int64_t{kThreads} * increments);
}

// Every value is one letter, repeated as often as its key and letter demand.
TEST_P(KvThreads, ValuesAreNeverMixedOrTorn) {
  const SystemClock clock;
  TestCluster cluster(clock, kShape);
  const int rounds = Scaled(60'000);
  OnThreads(cluster, GetParam(), [&](ShmWorker& worker, int thread) {
    Rng rng(static_cast<uint64_t>(thread) + 77);
    for (int i = 0; i < rounds; ++i) {
      const auto number = static_cast<int>(rng.Below(8));
      const std::string key = "key" + std::to_string(number);
      const auto letter = static_cast<char>('a' + rng.Below(26));
      switch (rng.Below(8)) {
        case 0:
          worker->Delete(key);
          break;
        case 1:
        case 2:
        case 3:
          ASSERT_TRUE(
              worker->Set(key, std::string(20 + number * 100 + (letter - 'a') * 10, letter)).ok());
          break;
        default: {
          const std::string value = worker->Get(key);
          if (value == "(nil)") break;
          ASSERT_GE(value.size(), 20U) << value;
          const size_t expected = 20 + number * 100 + (value[0] - 'a') * 10;
          ASSERT_EQ(value, std::string(expected, value[0])) << key;
        }
      }
    }
  });
}

// Each thread counts a key of its own up by SET; no thread ever sees one of them go back.
TEST_P(KvThreads, ReadsOfAKeyNeverGoBack) {
  const SystemClock clock;
  TestCluster cluster(clock, kShape);
  const int rounds = Scaled(60'000);
  OnThreads(cluster, GetParam(), [&](ShmWorker& worker, int thread) {
    std::array<int, kThreads> seen{};
    for (int i = 1; i <= rounds; ++i) {
      ASSERT_TRUE(worker->Set("count" + std::to_string(thread), std::to_string(i)).ok());
      seen[thread] = i;
      const int other = i % kThreads;
      const std::string value = worker->Get("count" + std::to_string(other));
      const int now = value == "(nil)" ? 0 : std::stoi(value);
      ASSERT_GE(now, seen[other]) << "of thread " << other;
      if (other == thread) {
        ASSERT_EQ(now, i);
      }
      seen[other] = now;
    }
  });
}

TEST_P(KvThreads, TheIndexGrowsUnderAllOfThemAndLosesNothing) {
  const SystemClock clock;
  TestCluster cluster(clock, kShape);
  const int keys = Scaled(40'000);
  OnThreads(cluster, GetParam(), [&](ShmWorker& worker, int thread) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = std::to_string(thread) + ":" + std::to_string(i);
      ASSERT_TRUE(worker->Set(key, key).ok());
      const std::string earlier = std::to_string(thread) + ":" + std::to_string(i / 2);
      ASSERT_EQ(worker->Get(earlier), earlier);
      // All threads create the same keys, too; each once.
      AddMutation add(1);
      const std::string shared = "shared" + std::to_string(i);
      ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().ReadModifyWrite({0, shared}, add)).ok());
    }
  });
  ShmWorker reader(cluster);
  for (int i = 0; i < keys; ++i) {
    ASSERT_EQ(reader->Get("shared" + std::to_string(i)), std::to_string(kThreads)) << i;
    for (int thread = 0; thread < kThreads; ++thread) {
      const std::string key = std::to_string(thread) + ":" + std::to_string(i);
      ASSERT_EQ(reader->Get(key), key);
    }
  }
  EXPECT_EQ(reader->CountKeys(), static_cast<uint64_t>(keys) * (kThreads + 1));
}

// Each thread overwrites what others wrote: memory must find its way back to its owners.
TEST_P(KvThreads, OverwritesOfEachOthersRecordsRecycleASmallPool) {
  const SystemClock clock;
  TestCluster cluster(clock, kShape);
  const int rounds = Scaled(400'000);
  OnThreads(cluster, GetParam(), [&](ShmWorker& worker, int thread) {
    const std::string value(1000, static_cast<char>('a' + thread));
    for (int i = 0; i < rounds; ++i) {
      const Status status = worker->Set("k" + std::to_string(i % 7), value);
      ASSERT_TRUE(status.ok()) << status.message() << " in round " << i;
    }
  });
}

}  // namespace
}  // namespace onetrip
