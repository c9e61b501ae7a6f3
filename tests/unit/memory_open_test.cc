// Open blocks: what one worker leaves free in its blocks is there for others, once and whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "client_core/base/planted_bug.h"
#include "client_core/base/rng.h"
#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr SizeClass kClass = SizeClass::For(4096);
constexpr SizeClass kOtherClass = SizeClass::For(1000);

class OpenBlocksTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryWorker> NewWorker() {
    auto worker = std::make_unique<MemoryWorker>(cluster_, executor_, MakeSim(cluster_, executor_));
    worker->Join();
    return worker;
  }

  std::byte* At(GlobalAddr addr, int replica) {
    const RemoteAddr at = cluster_.master().view()->Locate(addr, replica);
    return cluster_.node(at.node.value).base() + at.offset;
  }
  BlockEntry Entry(GlobalAddr addr, int replica) {
    const auto* header = reinterpret_cast<RegionHeader*>(At(GlobalAddr(addr.region(), 0), replica));
    return BlockEntry(header->blocks[addr.block()]);
  }
  bool IsMarkedFree(GlobalAddr addr, SizeClass size_class, int replica) {
    const uint16_t index = ObjectIndex(addr, addr.block_start(), size_class);
    const GlobalAddr word = addr.block_start() + BitmapOffset(addr.block()) + index / 64 * 8;
    return (*reinterpret_cast<uint64_t*>(At(word, replica)) >> (index % 64) & 1) != 0;
  }

  static std::vector<GlobalAddr> Take(MemoryWorker& worker, SizeClass size_class, size_t count) {
    std::vector<GlobalAddr> objects;
    while (objects.size() < count) {
      const Result<GlobalAddr> addr = worker.Allocate(size_class);
      if (!addr.ok()) break;
      objects.push_back(addr.value());
    }
    return objects;
  }
  void Leave(std::unique_ptr<MemoryWorker> worker, const std::vector<GlobalAddr>& keep = {}) {
    EXPECT_TRUE(BlockOn(executor_, worker->allocator().Drain()));
    BlockOn(executor_, worker->allocator().OpenAllBut(keep));
    worker->Leave();
  }
  // Every worker's background work, beside what `first` does.
  static Task<void> Tick(MemoryWorker* worker, const bool* stop) {
    while (!*stop) {
      co_await worker->allocator().Maintain();
      co_await worker->context().executor.SleepFor(1'000'000);
    }
  }

  // Returns true if a buffer in a block that a worker has left open holds a lock of before.
  bool HoldsAnOldLock() {
    bool holds = false;
    auto first = NewWorker();
    const std::vector<GlobalAddr> objects = Take(*first, kClass, 20);
    for (const GlobalAddr addr : objects) {
      for (int replica = 0; replica < 3; ++replica) {
        *reinterpret_cast<uint64_t*>(At(addr, replica)) = ~uint64_t{0};
      }
    }
    // The odd ones are freed before it ends, the others by the worker that has the block then.
    for (size_t i = 1; i < objects.size(); i += 2) first->allocator().Retire(objects[i], kClass);
    Leave(std::move(first));
    auto second = NewWorker();
    std::set<GlobalAddr> buffers;
    const auto take = [&] {
      const GlobalAddr addr =
          BlockOn(executor_, second->allocator().AllocateBuffer(kClass, objects[0])).value();
      EXPECT_EQ(addr.block_start(), objects[0].block_start());
      for (int replica = 0; replica < 3; ++replica) {
        holds = holds || *reinterpret_cast<uint64_t*>(At(addr, replica)) != 0;
      }
      EXPECT_TRUE(buffers.insert(addr).second);
    };
    for (size_t i = 0; i < 10; ++i) take();
    for (size_t i = 0; i < objects.size(); i += 2) second->allocator().Retire(objects[i], kClass);
    for (int i = 0; i < 5; ++i) second->Maintain();
    while (buffers.size() < ObjectsPerBlock(kClass, objects[0].block())) take();
    for (const GlobalAddr addr : buffers) second->allocator().Retire(addr, kClass);
    Leave(std::move(second));
    EXPECT_EQ(ReadBlockTables(cluster_, kNobody).granted_blocks, 0U);
    return holds;
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
};

TEST_F(OpenBlocksTest, WhoEndsLeavesThemOpenOnAllReplicas) {
  auto worker = NewWorker();
  const std::vector<GlobalAddr> used = Take(*worker, kClass, 10);
  const GlobalAddr freed = worker->Allocate(kClass).value();
  worker->allocator().Retire(freed, kClass);
  Leave(std::move(worker));
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_TRUE(Entry(freed, replica).is_open());
    EXPECT_EQ(Entry(freed, replica).size_class(), kClass);
    EXPECT_TRUE(IsMarkedFree(freed, kClass, replica));
    for (const GlobalAddr addr : used) EXPECT_FALSE(IsMarkedFree(addr, kClass, replica));
  }
}

TEST_F(OpenBlocksTest, LivesOneAfterTheOtherTakeNoMoreMemoryThanOne) {
  std::set<GlobalAddr> used;
  for (int life = 0; life < 40; ++life) {
    auto worker = NewWorker();
    for (const SizeClass size_class : {kClass, kOtherClass}) {
      for (const GlobalAddr addr : Take(*worker, size_class, 1)) {
        EXPECT_TRUE(used.insert(addr).second) << "an object was handed out twice";
      }
    }
    Leave(std::move(worker));
  }
  EXPECT_EQ(used.size(), 80U);
  // A worker asks any of the three nodes first.
  EXPECT_LE(ReadBlockTables(cluster_, kNobody).granted_blocks, 6U);
}

TEST_F(OpenBlocksTest, WhatIsToBeLookedAtStaysItsOwners) {
  auto worker = NewWorker();
  const GlobalAddr kept = worker->Allocate(kClass).value();
  const GlobalAddr other = worker->Allocate(kOtherClass).value();
  const WorkerId id = worker->context().membership.id;
  Leave(std::move(worker), {kept});
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(Entry(kept, replica).owner(), id);
    EXPECT_TRUE(Entry(other, replica).is_open());
  }
}

TEST_F(OpenBlocksTest, AWhollyFreeOneServesEveryClass) {
  auto filler = NewWorker();
  auto other = NewWorker();
  const std::vector<GlobalAddr> objects = Take(*filler, kClass, ~size_t{0});
  Leave(std::move(filler));
  EXPECT_EQ(other->Allocate(kOtherClass).status().code(), StatusCode::kOutOfMemory);
  for (const GlobalAddr addr : objects) other->allocator().Retire(addr, kClass);
  const std::vector<GlobalAddr> now = Take(*other, kOtherClass, ~size_t{0});
  EXPECT_GE(now.size() * kOtherClass.bytes(), objects.size() * kClass.bytes() * 95 / 100);
  for (const GlobalAddr addr : now) {
    for (int replica = 1; replica < 3; ++replica) {
      ASSERT_EQ(Entry(addr, replica).bits(), Entry(addr, 0).bits());
    }
  }
  for (const GlobalAddr addr : now) other->allocator().Retire(addr, kOtherClass);
  BlockOn(executor_, other->allocator().Drain());
  EXPECT_EQ(ReadBlockTables(cluster_, kNobody).granted_blocks, 0U);
  other->Leave();
}

// One worker has filled the pool, another one frees nine tenths of it, here and there.
TEST_F(OpenBlocksTest, WhatAnotherWorkerHasTooMuchComesToWhoIsShort) {
  auto filler = NewWorker();
  auto other = NewWorker();
  const std::vector<GlobalAddr> objects = Take(*filler, kClass, ~size_t{0});
  Rng rng(1);
  std::set<GlobalAddr> live;
  for (const GlobalAddr addr : objects) {
    if (rng.Below(10) == 0) {
      live.insert(addr);
    } else {
      other->allocator().Retire(addr, kClass);
    }
  }
  bool stop = false;
  Gate gate(executor_);
  executor_.Spawn(gate, Tick(filler.get(), &stop));
  const std::vector<GlobalAddr> now = Take(*other, kClass, ~size_t{0});
  stop = true;
  BlockOn(executor_, [](Gate* all) -> Task<void> { co_await all->Close(); }(&gate));
  // One block stays with the worker that had it.
  EXPECT_GE(now.size() + live.size() + 64, objects.size());
  for (const GlobalAddr addr : now) {
    ASSERT_TRUE(live.insert(addr).second) << "an object was handed out that is in use";
  }
  // Everything comes back in the end.
  for (const GlobalAddr addr : live) other->allocator().Retire(addr, kClass);
  for (int i = 0; i < 5; ++i) {
    other->Maintain();
    filler->Maintain();
  }
  Leave(std::move(filler));
  Leave(std::move(other));
  auto last = NewWorker();
  EXPECT_EQ(Take(*last, kClass, ~size_t{0}).size(), objects.size());
  Leave(std::move(last));
}

// A worker's last block of a class otherwise stays with it, however little of it is used.
TEST_F(OpenBlocksTest, TheLastOneGoesToWhoHasRoomForWhatIsInIt) {
  auto giver = NewWorker();
  auto taker = NewWorker();
  const std::vector<GlobalAddr> sparse = Take(*giver, kClass, 10);
  const size_t many = ObjectsPerBlock(kOtherClass, 1) * 3 / 4;
  const std::vector<GlobalAddr> dense = Take(*giver, kOtherClass, many);
  giver->allocator().opener().CloseSparse();
  EXPECT_TRUE(giver->allocator().transit().TakeTrade().gave);
  const auto ticks = [&] {
    for (int i = 0; i < 20; ++i) {
      giver->Maintain();
      taker->Maintain();
      BlockOn(executor_, [](SimExecutor* executor) -> Task<void> {
        co_await executor->SleepFor(1'000'000);
      }(&executor_));
    }
  };
  ticks();
  EXPECT_FALSE(giver->allocator().Owns(sparse[0]));
  EXPECT_TRUE(giver->allocator().Owns(dense[0]));
  EXPECT_TRUE(BlockOn(executor_, taker->allocator().grants().AcquireSparse()));
  EXPECT_TRUE(taker->allocator().Owns(sparse[0]));
  EXPECT_FALSE(BlockOn(executor_, taker->allocator().grants().AcquireSparse()));
  for (const GlobalAddr addr : sparse) taker->allocator().Retire(addr, kClass);
  for (const GlobalAddr addr : dense) giver->allocator().Retire(addr, kOtherClass);
  ticks();
  Leave(std::move(giver));
  Leave(std::move(taker));
  EXPECT_EQ(ReadBlockTables(cluster_, kNobody).granted_blocks, 0U);
}

TEST_F(OpenBlocksTest, ABlockInWhichSomebodyHoldsSomethingIsNotOpened) {
  auto owner = NewWorker();
  auto other = NewWorker();
  const std::vector<GlobalAddr> objects = Take(*owner, kClass, ~size_t{0});
  GlobalAddr held;
  {
    const Allocator::Holder holder(owner->allocator());
    for (const GlobalAddr addr : objects) owner->allocator().FreeUnpublished(addr, kClass);
    held = owner->allocator().TryAllocate(kClass);
    // It is not the fullest one that stays with its owner.
    const GlobalAddr more = owner->allocator().TryAllocate(kClass);
    EXPECT_EQ(more.block_start(), held.block_start());
    bool stop = false;
    Gate gate(executor_);
    executor_.Spawn(gate, Tick(owner.get(), &stop));
    (void)Take(*other, kClass, 1);
    (void)BlockOn(executor_, other->allocator().Allocate(kClass));
    stop = true;
    BlockOn(executor_, [](Gate* all) -> Task<void> { co_await all->Close(); }(&gate));
    for (int replica = 0; replica < 3; ++replica) {
      EXPECT_EQ(Entry(held, replica).owner(), owner->context().membership.id);
    }
  }
  Leave(std::move(other));
  Leave(std::move(owner));
}

TEST_F(OpenBlocksTest, BuffersFromThemHaveNoLocks) { EXPECT_FALSE(HoldsAnOldLock()); }

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(OpenBlocksTest, PlantedBugLocksNotClearedIsFound) {
  TEST_planted_bug = Bug::kLocksNotCleared;
  EXPECT_TRUE(HoldsAnOldLock());
  TEST_planted_bug = Bug::kNone;
}
#endif

}  // namespace
}  // namespace onetrip
