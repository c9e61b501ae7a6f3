// Epochs and the map: whose entry in the epoch table counts.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr SizeClass kClass(4);

class SeatsTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryWorker> NewWorker() {
    return std::make_unique<MemoryWorker>(cluster_, executor_, MakeSim(cluster_, executor_));
  }
  void Retire(MemoryWorker& owner) {
    owner.allocator().Retire(owner.Allocate(kClass).value(), kClass);
  }
  static void MaintainOften(MemoryWorker& worker) {
    for (int i = 0; i < 10; ++i) worker.Maintain();
  }
  // Acts as the master does when a worker that said no goodbye is fenced on every node.
  void Expel(MemoryWorker& worker) {
    EXPECT_TRUE(BlockOn(executor_, cluster_.master().Leave(worker.context().quiesce,
                                                           worker.context().membership))
                    .ok());
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
};

TEST_F(SeatsTest, ADeadWorkersEpochHoldsNobodyBackOnceItsSeatIsFree) {
  auto owner = NewWorker();
  owner->Join();
  auto dead = NewWorker();
  dead->Join();
  Retire(*owner);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  Expel(*dead);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 0U);
  owner->Leave();
}

TEST_F(SeatsTest, WhoTakesADeadWorkersSeatOverwritesItsEntry) {
  auto owner = NewWorker();
  owner->Join();
  auto dead = NewWorker();
  dead->Join();
  const WorkerIndex seat = dead->context().membership.index;
  Expel(*dead);
  // Epochs go on without it.
  for (int round = 0; round < 5; ++round) {
    Retire(*owner);
    MaintainOften(*owner);
    ASSERT_EQ(owner->allocator().retired_count(), 0U) << "round " << round;
  }
  auto heir = NewWorker();
  ASSERT_EQ(heir->context().membership.index, seat);
  // The seat lives, and what is in it is the dead worker's: it may hold back, never hurry.
  Retire(*owner);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  heir->Join();
  EXPECT_GE(heir->reclaimer().current_epoch() + 1, owner->reclaimer().current_epoch());
  for (int i = 0; i < 5; ++i) {
    owner->Maintain();
    heir->Maintain();
  }
  EXPECT_EQ(owner->allocator().retired_count(), 0U);
  // It is waited for like any other worker.
  EpochPin pin = heir->reclaimer().Pin();
  Retire(*owner);
  for (int i = 0; i < 10; ++i) {
    owner->Maintain();
    heir->Maintain();
  }
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  pin.Release();
  heir->Leave();
  owner->Leave();
}

}  // namespace
}  // namespace onetrip
