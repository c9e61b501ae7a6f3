#include <gtest/gtest.h>

#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

Task<void> SleepAndRecord(Executor& executor, uint64_t delay_ns, std::vector<uint64_t>* times) {
  co_await executor.SleepFor(delay_ns);
  times->push_back(executor.NowNs());
}

TEST(SimExecutorTest, TimeJumpsToTheNextTimer) {
  SimExecutor executor(1);
  Gate gate(executor);
  std::vector<uint64_t> times;
  for (const uint64_t delay_ns : {5'000'000'000ULL, 10ULL, 700ULL}) {
    executor.Spawn(gate, SleepAndRecord(executor, delay_ns, &times));
  }
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 700, 5'000'000'000}));
}

TEST(SimExecutorTest, CallsDueTogetherKeepTheirOrder) {
  SimExecutor executor(1);
  static std::vector<int> order;
  order.clear();
  executor.At(
      100, [](void*) { order.push_back(1); }, nullptr);
  executor.At(
      50, [](void*) { order.push_back(0); }, nullptr);
  executor.At(
      100, [](void*) { order.push_back(2); }, nullptr);
  executor.At(
      100, [](void*) { order.push_back(3); }, nullptr);
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(SimExecutorTest, RunUntilStopsAtItsTime) {
  SimExecutor executor(1);
  Gate gate(executor);
  std::vector<uint64_t> times;
  executor.Spawn(gate, SleepAndRecord(executor, 100, &times));
  executor.Spawn(gate, SleepAndRecord(executor, 200, &times));
  executor.RunUntil(150);
  EXPECT_EQ(times.size(), 1U);
  EXPECT_EQ(executor.NowNs(), 150U);
  executor.RunUntil(200);
  EXPECT_EQ(times.size(), 2U);
}

TEST(SimExecutorTest, DroppingASleepingTaskCancelsItsTimer) {
  SimExecutor executor(1);
  std::vector<uint64_t> times;
  {
    Task<void> task = SleepAndRecord(executor, 100, &times);
    task.Start();
    EXPECT_EQ(executor.timers().size(), 1U);
  }
  EXPECT_TRUE(executor.timers().empty());
  EXPECT_FALSE(executor.RunOnce());
}

TEST(SimExecutorTest, CallsLeftOverAreFreedWithTheExecutor) {
  SimExecutor executor(1);
  executor.At(
      100, [](void*) { FAIL(); }, nullptr);
}

TEST(SimExecutorTest, AProgramThatNeverRestsHitsItsBound) {
  SimExecutor executor(1);
  auto forever = [](Executor& e) -> Task<void> {
    for (;;) co_await e.Yield();
  };
  Task<void> task = forever(executor);
  task.Start();
  EXPECT_FALSE(executor.RunUntilIdle(1000));
  EXPECT_EQ(executor.steps(), 1000U);
}

class CountedPoller final : public Poller {
 public:
  explicit CountedPoller(int work) : work_(work) {}
  bool Poll() override { return work_-- > 0; }

 private:
  int work_;
};

TEST(SimExecutorTest, PollersRunBeforeTimeMoves) {
  SimExecutor executor(1);
  CountedPoller poller(3);
  executor.AddPoller(&poller);
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(executor.steps(), 3U);
  executor.RemovePoller(&poller);
}

// Workers that sleep, yield and meet at random leave a trace that the seed decides.
Task<void> Wander(SimExecutor& executor, Event& event, uint64_t id, uint64_t* hash) {
  for (int i = 0; i < 50; ++i) {
    const uint64_t choice = executor.rng().Below(4);
    if (choice == 0) co_await executor.Yield();
    if (choice == 1) co_await executor.SleepFor(executor.rng().Below(100));
    if (choice == 2) event.Set();
    if (choice == 3) event.Reset();
    *hash = (*hash ^ (id + executor.NowNs() * 31)) * 0x100000001b3ULL;
  }
}

uint64_t TraceHash(uint64_t seed) {
  SimExecutor executor(seed);
  Gate gate(executor);
  Event event(executor);
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (uint64_t id = 0; id < 8; ++id) executor.Spawn(gate, Wander(executor, event, id, &hash));
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(gate.inside(), 0U);
  return hash;
}

TEST(SimExecutorTest, OneSeedOneTrace) {
  for (uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(TraceHash(seed), TraceHash(seed)) << seed;
  EXPECT_NE(TraceHash(1), TraceHash(2));
}

TEST(TimerHeapTest, RandomAddsAndCancelsFireInOrder) {
  class Probe final : public Timer {
   public:
    void Fire() override { fired->push_back(time_ns); }
    uint64_t time_ns = 0;
    std::vector<uint64_t>* fired = nullptr;
  };
  SimExecutor executor(1);
  Rng rng(7);
  std::vector<uint64_t> fired;
  std::vector<Probe> probes(500);
  for (Probe& probe : probes) {
    probe.time_ns = rng.Below(200);
    probe.fired = &fired;
    executor.timers().Add(&probe, probe.time_ns);
  }
  size_t cancelled = 0;
  for (Probe& probe : probes) {
    if (rng.Below(3) != 0) continue;
    probe.Cancel();
    ++cancelled;
  }
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(fired.size(), probes.size() - cancelled);
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
}

}  // namespace
}  // namespace onetrip
