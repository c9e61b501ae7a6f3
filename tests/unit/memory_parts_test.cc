// The parts of an allocator that send nothing, each alone: who holds unnamed memory, which blocks
// are on their way, and which blocks a worker owns.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/own_blocks.h"
#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr SizeClass kClass(4);
constexpr SizeClass kOtherClass(9);
const GlobalAddr kStart(0, 3 * kBlockBytes);
const GlobalAddr kOther(1, 5 * kBlockBytes);

TEST(HoldersTest, AHolderIsWaitedForByAllThatWasNotedBeforeItEnded) {
  Holders holders;
  std::optional<Holders::Holder> before(holders);
  const uint64_t noted = holders.generation();
  for (int i = 0; i < 5; ++i) holders.Advance();
  EXPECT_FALSE(holders.HaveEndedSince(noted));
  before.reset();
  EXPECT_FALSE(holders.any());
  for (int i = 0; i < 2; ++i) holders.Advance();
  EXPECT_TRUE(holders.HaveEndedSince(noted));
}

TEST(HoldersTest, AHolderThatBeginsLaterIsNotWaitedFor) {
  Holders holders;
  const uint64_t noted = holders.generation();
  holders.Advance();
  const Holders::Holder later(holders);
  holders.Advance();
  EXPECT_TRUE(holders.HaveEndedSince(noted));
  const uint64_t anew = holders.generation();
  for (int i = 0; i < 5; ++i) holders.Advance();
  EXPECT_FALSE(holders.HaveEndedSince(anew));
}

TEST(HoldersTest, AHolderThatPausesIsNotWaitedFor) {
  Holders holders;
  Holders::Holder holder(holders);
  const uint64_t noted = holders.generation();
  holder.Pause();
  for (int i = 0; i < 2; ++i) holders.Advance();
  EXPECT_TRUE(holders.HaveEndedSince(noted));
  holder.Resume();
  EXPECT_TRUE(holders.any());
}

TEST(BlocksInTransitTest, ABlockThatComesBackIsNotToldOfAgain) {
  BlocksInTransit transit;
  transit.OpenLater({kStart, kClass});
  transit.ReturnLater({kStart, kClass, NodeId{0}});
  transit.OpenLater({kOther, kClass});
  EXPECT_TRUE(transit.IsGoing(kStart));
  EXPECT_TRUE(transit.HasComeBack(kStart));
  EXPECT_FALSE(transit.IsGoing(kStart));
  EXPECT_TRUE(transit.IsGoing(kOther));
  EXPECT_EQ(transit.return_count(), 0U);
}

TEST(BlocksInTransitTest, ABlockThatNodesAreBeingToldOfHasNotComeBack) {
  BlocksInTransit transit;
  transit.OpenLater({kStart, kClass});
  const std::vector<BlocksInTransit::Opening>& telling = transit.BeginTelling();
  ASSERT_EQ(telling.size(), 1U);
  EXPECT_FALSE(transit.HasComeBack(kStart));
  EXPECT_TRUE(transit.IsOpeningNow(kStart));
  EXPECT_TRUE(transit.OpensOneOf(kClass));
  EXPECT_FALSE(transit.OpensOneOf(kOtherClass));
  transit.EndTelling();
  EXPECT_TRUE(transit.HasComeBack(kStart));
  {
    const BlocksInTransit::Mark returning = transit.MarkReturning(kStart);
    EXPECT_TRUE(transit.HasComeBack(kStart));  // the backups have heard
    const BlocksInTransit::Mark to_backups = transit.MarkReturningToBackups(kStart);
    EXPECT_FALSE(transit.HasComeBack(kStart));
  }
  EXPECT_TRUE(transit.HasComeBack(kStart));
  EXPECT_FALSE(transit.IsGoing(kStart));
}

TEST(BlocksInTransitTest, BlocksThatWaitForAReplicaAreCountedByPrimaryAndClass) {
  BlocksInTransit transit;
  transit.ReturnLater({kStart, kClass, NodeId{0}});
  transit.ReturnLater({kOther, kClass, NodeId{1}});
  EXPECT_EQ(transit.ReturnsWaiting(NodeId{0}, kClass), 1U);
  EXPECT_EQ(transit.ReturnsWaiting(NodeId{0}, kOtherClass), 0U);
  EXPECT_TRUE(transit.DropReturn(kStart));
  EXPECT_FALSE(transit.DropReturn(kStart));
  EXPECT_EQ(transit.NextReturn().start, kOther);
}

class OwnBlocksTest : public testing::Test {
 protected:
  // Takes all objects of the class that are listed.
  std::vector<GlobalAddr> TakeAll(SizeClass size_class) {
    std::vector<GlobalAddr> taken;
    while (true) {
      const GlobalAddr addr = blocks_.TakeObject(size_class);
      if (addr.is_null()) return taken;
      taken.push_back(addr);
    }
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  MemoryWorker worker_{cluster_, executor_, MakeSim(cluster_, executor_)};
  AllocatorMetrics metrics_;
  Holders holders_;
  OwnBlocks blocks_{worker_.context(), metrics_, holders_};
};

TEST_F(OwnBlocksTest, ABlockGivesEachOfItsObjectsOnce) {
  const OwnBlock& block = blocks_.Adopt(kStart, kClass, kClass.index());
  const std::vector<GlobalAddr> taken = TakeAll(kClass);
  EXPECT_EQ(taken.size(), block.objects);
  EXPECT_EQ(taken.front(), ObjectAddr(kStart, kClass, 0));
  EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
  EXPECT_EQ(metrics_.live_bytes.Value(), block.objects * kClass.bytes());
  EXPECT_EQ(metrics_.free_bytes.Value(), 0U);
}

TEST_F(OwnBlocksTest, WhatWasInUseWhenABlockCameIsNotGiven) {
  std::vector<bool> named(ObjectsPerBlock(kClass, kStart.block()), true);
  named[7] = false;
  OwnBlock& block = blocks_.Adopt(kStart, kClass, kClass.index(), &named);
  EXPECT_EQ(TakeAll(kClass), std::vector<GlobalAddr>{ObjectAddr(kStart, kClass, 7)});
  blocks_.ListAgain(block, 3);
  EXPECT_EQ(TakeAll(kClass), std::vector<GlobalAddr>{ObjectAddr(kStart, kClass, 3)});
}

TEST_F(OwnBlocksTest, ABlockIsQueuedForItsNodeWhenTheLastObjectIsFree) {
  OwnBlock& block = blocks_.Adopt(kStart, kClass, kClass.index());
  EXPECT_EQ(blocks_.TakeWhollyFree(), std::vector<GlobalAddr>{kStart});
  block.queued_for_return = false;
  ASSERT_FALSE(blocks_.TakeObject(kClass).is_null());
  EXPECT_FALSE(blocks_.has_wholly_free());
  blocks_.ListAgain(block, 0);
  EXPECT_TRUE(blocks_.has_wholly_free());
  blocks_.Remove(block);
  EXPECT_EQ(blocks_.Find(kStart), nullptr);
  EXPECT_EQ(metrics_.owned_bytes.Value(), 0U);
}

TEST_F(OwnBlocksTest, NothingIsAllocatedInABlockThatIsSetAside) {
  OwnBlock& block = blocks_.Adopt(kStart, kClass, kClass.index());
  ASSERT_FALSE(blocks_.TakeObject(kClass).is_null());
  blocks_.Unlist(block);
  block.emptying = true;
  EXPECT_TRUE(blocks_.TakeObject(kClass).is_null());
  blocks_.ListAgain(block, 0);
  EXPECT_TRUE(blocks_.TakeObject(kClass).is_null());
  block.emptying = false;
  blocks_.Enlist(block);
  EXPECT_EQ(TakeAll(kClass).size(), block.objects);
}

TEST_F(OwnBlocksTest, ABufferWithAStaleLockIsListedOnlyWhenThatIsZeroed) {
  const uint32_t list = blocks_.BufferList(kClass, kStart);
  const std::vector<bool> used(ObjectsPerBlock(kClass, kStart.block()), true);
  OwnBlock& block = blocks_.Adopt(kStart, kClass, list, &used);
  block.stale_lock = used;
  blocks_.ListAgain(block, 2);
  EXPECT_FALSE(blocks_.HasBuffers(kClass, kStart, 1));
  EXPECT_EQ(block.clearing, 1U);
  const std::vector<OwnBlocks::FreeObject> to_clear = blocks_.TakeToClear();
  ASSERT_EQ(to_clear.size(), 1U);
  EXPECT_EQ(to_clear[0].index, 2);
  block.stale_lock[2] = false;
  blocks_.ListAgain(block, 2);
  EXPECT_TRUE(blocks_.HasBuffers(kClass, kStart, 1));
  EXPECT_EQ(blocks_.TakeBuffer(kClass, kStart), ObjectAddr(kStart, kClass, 2));
}

TEST_F(OwnBlocksTest, ABlockOfBuffersServesObjectsWhenNothingElseIsLeft) {
  blocks_.Adopt(kStart, kClass, blocks_.BufferList(kClass, kStart));
  EXPECT_TRUE(blocks_.TakeObject(kClass).is_null());
  EXPECT_FALSE(blocks_.MakeObjects(kOtherClass));
  EXPECT_TRUE(blocks_.MakeObjects(kClass));
  EXPECT_FALSE(blocks_.TakeObject(kClass).is_null());
}

}  // namespace
}  // namespace onetrip
