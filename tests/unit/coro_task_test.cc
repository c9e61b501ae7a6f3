#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <type_traits>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/task.h"

namespace onetrip {
namespace {

Task<int> Immediate(int value) { co_return value; }

Task<void> SetWhenRun(bool* ran) {
  *ran = true;
  co_return;
}

Task<int64_t> SumInline(int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += co_await Immediate(1);
  co_return sum;
}

Task<int> Nested(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await Nested(depth - 1);
}

Task<int> YieldingLeaf(Executor& executor, int value) {
  co_await executor.Yield();
  co_return value;
}

Task<int> NestedYielding(Executor& executor, int depth) {
  if (depth == 0) co_return co_await YieldingLeaf(executor, 7);
  co_return co_await NestedYielding(executor, depth - 1);
}

Task<std::unique_ptr<int>> MakeOwned() { co_return std::make_unique<int>(5); }

Task<int> UseOwned() {
  const std::unique_ptr<int> owned = co_await MakeOwned();
  co_return *owned;
}

struct CountsLives {
  explicit CountsLives(int* count) : count(count) { ++*count; }
  CountsLives(const CountsLives& other) : count(other.count) { ++*count; }
  ~CountsLives() { --*count; }
  int* count;
};

Task<void> HoldsParameter(CountsLives, Executor& executor) { co_await executor.Yield(); }

static_assert(!std::is_copy_constructible_v<Task<int>>);
static_assert(std::is_nothrow_move_constructible_v<Task<int>>);

TEST(TaskTest, NothingRunsBeforeItIsAwaited) {
  bool ran = false;
  Task<void> task = SetWhenRun(&ran);
  EXPECT_FALSE(ran);
  SimExecutor executor(1);
  BlockOn(executor, std::move(task));
  EXPECT_TRUE(ran);
}

TEST(TaskTest, AnUnstartedTaskFreesItsParameters) {
  SimExecutor executor(1);
  int lives = 0;
  {
    const Task<void> task = HoldsParameter(CountsLives(&lives), executor);
    EXPECT_EQ(lives, 1);
  }
  EXPECT_EQ(lives, 0);
}

TEST(TaskTest, ASuspendedTaskFreesItsFrameWhenDropped) {
  SimExecutor executor(1);
  int lives = 0;
  {
    Task<void> task = HoldsParameter(CountsLives(&lives), executor);
    EXPECT_FALSE(task.Start());
    // Let the ready queue forget the handle: it is resumed, and the task ends.
    EXPECT_TRUE(executor.RunUntilIdle());
    EXPECT_TRUE(task.done());
  }
  EXPECT_EQ(lives, 0);
}

TEST(TaskTest, TenMillionInlineAwaitsDoNotGrowTheStack) {
  SimExecutor executor(1);
  EXPECT_EQ(BlockOn(executor, SumInline(10'000'000)), 10'000'000);
}

TEST(TaskTest, AMillionSuspendingAwaitsDoNotGrowTheStack) {
  SimExecutor executor(1);
  auto loop = [](Executor& e) -> Task<int64_t> {
    int64_t sum = 0;
    for (int i = 0; i < 1'000'000; ++i) sum += co_await YieldingLeaf(e, 1);
    co_return sum;
  };
  EXPECT_EQ(BlockOn(executor, loop(executor)), 1'000'000);
}

TEST(TaskTest, ResultsPassThroughManyLevels) {
  SimExecutor executor(1);
  EXPECT_EQ(BlockOn(executor, Nested(1000)), 1000);
  EXPECT_EQ(BlockOn(executor, NestedYielding(executor, 1000)), 7);
}

TEST(TaskTest, MoveOnlyResultsAreMovedOut) {
  SimExecutor executor(1);
  EXPECT_EQ(BlockOn(executor, UseOwned()), 5);
}

TEST(TaskTest, AMovedTaskIsAwaitedOnce) {
  SimExecutor executor(1);
  Task<int> first = Immediate(3);
  Task<int> second = std::move(first);
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(BlockOn(executor, std::move(second)), 3);
}

TEST(FramePoolTest, AFrameMayBeFreedOnAnotherThread) {
  void* memory = AllocateFrame(200);
  std::thread([memory] {
    ReleaseFrame(memory, 200);
    TrimThreadFrames();
  }).join();
  void* other = AllocateFrame(200);
  ReleaseFrame(other, 200);
  TrimThreadFrames();
}

TEST(FramePoolTest, FramesOfOneClassAreReused) {
  if (!kPoolFrames) GTEST_SKIP() << "sanitizers see every frame as its own malloc";
  void* first = AllocateFrame(130);
  ReleaseFrame(first, 130);
  EXPECT_EQ(AllocateFrame(190), first) << "both sizes belong to the 192-byte class";
  ReleaseFrame(first, 190);
}

}  // namespace
}  // namespace onetrip
