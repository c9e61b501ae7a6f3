// Timestamp locks: READ and WRITE never both get one guess, whatever the schedule.
#include <gtest/gtest.h>

#include "client_core/replication/timestamp_lock.h"
#include "tests/support/register_fixture.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr size_t kNodeBytes = size_t{40} * 1024;

class TimestampLockTest : public testing::Test {
 protected:
  TimestampLockTest()
      : cluster_(3, kNodeBytes),
        executor_(1),
        network_(executor_, cluster_.endpoints(), SimFabricOptions{}),
        worker_(executor_, network_, cluster_.master(), 1),
        ref_(cluster_.CreateRegister({}, 0, Ticks{1'000'000})),
        handle_(ref_, worker_.guess_clock),
        buffer_(cluster_.NewBuffer(ref_.shape).addr) {}

  // Stragglers end before what they use.
  void TearDown() override { EXPECT_TRUE(executor_.RunUntilIdle()); }

  Result<bool> TryLock(RegisterTime time, LockMode mode, uint32_t* round_trips = nullptr) {
    RegisterOperation operation;
    const Result<bool> locked =
        BlockOn(executor_, worker_.safe_guess.timestamp_lock().TryLock(
                               operation, handle_, MetaWord(time, buffer_), mode));
    if (round_trips != nullptr) *round_trips = operation.round_trips;
    EXPECT_TRUE(executor_.RunUntilIdle());
    return locked;
  }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterWorker worker_;
  RegisterRef ref_;
  RegisterHandle handle_;
  GlobalAddr buffer_;
};

TEST_F(TimestampLockTest, TheFirstModeHasTheGuessForGood) {
  uint32_t round_trips = 0;
  EXPECT_TRUE(TryLock(10, LockMode::kRead, &round_trips).value());
  EXPECT_EQ(round_trips, 1U);
  EXPECT_FALSE(TryLock(10, LockMode::kWrite).value());
  EXPECT_TRUE(TryLock(10, LockMode::kRead).value()) << "readers share it";
  EXPECT_FALSE(TryLock(10, LockMode::kWrite).value());
}

TEST_F(TimestampLockTest, AnEarlierUseOfTheBufferReadsAsUnlocked) {
  ASSERT_TRUE(TryLock(10, LockMode::kWrite).value());
  uint32_t round_trips = 0;
  EXPECT_TRUE(TryLock(11, LockMode::kRead, &round_trips).value());
  EXPECT_EQ(round_trips, 2U) << "one to learn the old word";
  EXPECT_FALSE(TryLock(10, LockMode::kWrite).value()) << "a later write uses the buffer";
  EXPECT_FALSE(TryLock(10, LockMode::kRead).value());
}

TEST_F(TimestampLockTest, LockWordsLieAtTheHeadOfTheBufferInAbsoluteTime) {
  ASSERT_TRUE(TryLock(10, LockMode::kWrite).value());
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(cluster_.Word(buffer_, replica), (1'000'010U << 2) | 2U);
  }
}

TEST_F(TimestampLockTest, AMajorityIsEnoughAndNeeded) {
  cluster_.node(0).SetReachable(false);
  EXPECT_TRUE(TryLock(10, LockMode::kWrite).value());
  EXPECT_FALSE(TryLock(10, LockMode::kRead).value());
  cluster_.node(1).SetReachable(false);
  EXPECT_EQ(TryLock(11, LockMode::kWrite).status().code(), StatusCode::kUnavailable);
}

TEST_F(TimestampLockTest, AnAddressThatIsNowhereIsNoLock) {
  RegisterOperation operation;
  const Result<bool> locked = BlockOn(
      executor_, worker_.safe_guess.timestamp_lock().TryLock(
                     operation, handle_, MetaWord(10, GlobalAddr(99, 64)), LockMode::kRead));
  EXPECT_EQ(locked.status().code(), StatusCode::kUnavailable);
}

struct Attempt {
  RegisterTime time = 0;
  LockMode mode = LockMode::kRead;
  Result<bool> locked{false};
};

Task<void> LockAfter(RegisterWorker* worker, RegisterRef ref, GlobalAddr buffer, uint64_t delay_ns,
                     Attempt* attempt) {
  co_await worker->executor.SleepFor(delay_ns);
  RegisterOperation operation;
  const RegisterHandle handle(ref, worker->guess_clock);
  attempt->locked = co_await worker->safe_guess.timestamp_lock().TryLock(
      operation, handle, MetaWord(attempt->time, buffer), attempt->mode);
}

// Appendix B: true exclusion, true safety, and every attempt ends, with a node lost at any time.
TEST(TimestampLockSchedules, NeverBothModesOfOneGuess) {
  const int seeds = Scaled(6000);
  uint64_t both_failed = 0;
  uint64_t won = 0;
  LittleCluster cluster(3, kNodeBytes);
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    cluster.Clear();
    SimExecutor executor(static_cast<uint64_t>(seed));
    Rng& rng = executor.rng();
    SimNetwork network(executor, cluster.endpoints(),
                       {.latency_min_ns = 100, .latency_max_ns = 3000, .tail_permille = 100});
    const RegisterRef ref = cluster.CreateRegister({}, 0, Ticks{1'000'000});
    const GlobalAddr buffer = cluster.NewBuffer(ref.shape).addr;
    std::vector<std::unique_ptr<RegisterWorker>> workers;
    std::vector<Attempt> attempts(2 + rng.Below(4));
    std::vector<Task<void>> tasks;
    for (Attempt& attempt : attempts) {
      workers.push_back(std::make_unique<RegisterWorker>(
          executor, network, cluster.master(), static_cast<uint32_t>(workers.size() + 1)));
      attempt.time = rng.Below(8) == 0 ? 11 : 10;
      attempt.mode = rng.Below(2) == 0 ? LockMode::kRead : LockMode::kWrite;
      tasks.push_back(LockAfter(workers.back().get(), ref, buffer, rng.Below(3000), &attempt));
    }
    if (rng.Below(3) == 0) {
      executor.At(
          rng.Below(6000), [](void* node) { static_cast<LittleNode*>(node)->SetReachable(false); },
          &cluster.node(static_cast<int>(rng.Below(3))));
    }
    for (Task<void>& task : tasks) task.Start();
    ASSERT_TRUE(executor.RunUntilIdle(100'000));
    bool got_read = false;
    bool got_write = false;
    bool contended = false;
    for (size_t i = 0; i < attempts.size(); ++i) {
      ASSERT_TRUE(tasks[i].done());
      const Attempt& attempt = attempts[i];
      ASSERT_TRUE(attempt.locked.ok()) << attempt.locked.status().message();
      contended |= attempt.time != attempts[0].time || attempt.mode != attempts[0].mode;
      if (attempt.time != 10 || !attempt.locked.value()) continue;
      (attempt.mode == LockMode::kRead ? got_read : got_write) = true;
    }
    EXPECT_FALSE(got_read && got_write);
    if (!contended) {
      for (const Attempt& attempt : attempts) EXPECT_TRUE(attempt.locked.value());
    }
    both_failed += contended && !got_read && !got_write ? 1 : 0;
    won += got_read || got_write ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(both_failed, 0U);
  EXPECT_GT(won, both_failed);
}

}  // namespace
}  // namespace onetrip
