// A region's way to a node that lacks it.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "client_core/memory/copy_region.h"
#include "client_core/memory/format_regions.h"
#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

class CopyRegionTest : public testing::Test {
 protected:
  static constexpr uint64_t kNodeBytes = 32ULL << 20;

  std::byte* Region(int replica) {
    const RemoteAddr at = view_.Locate(GlobalAddr(1, 0), replica);
    return cluster_.node(at.node.value).base() + at.offset;
  }
  const RegionHeader& Header(int replica) {
    return *reinterpret_cast<const RegionHeader*>(Region(replica));
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = kNodeBytes}};
  MemoryWorker worker_{cluster_, executor_, MakeSim(cluster_, executor_)};
  View view_ = *cluster_.master().view();
};

TEST_F(CopyRegionTest, BringsWhatIsGrantedAndTheBlockTable) {
  worker_.Join();
  // Some objects and a span in region 1, each with content of its own.
  Rng rng(7);
  std::vector<GlobalAddr> addrs;
  for (const uint64_t bytes : {64UL, 4096UL, 700'000UL}) {
    for (int i = 0; i < 60 && addrs.size() < 6; ++i) {
      const Result<GlobalAddr> addr = worker_.Allocate(SizeClass::For(bytes));
      ASSERT_TRUE(addr.ok());
      if (addr->region() != 1) continue;
      addrs.push_back(*addr);
      for (uint64_t at = 0; at + 8 <= bytes; at += 8) {
        const uint64_t word = rng.Next();
        std::memcpy(Region(0) + addr->offset() + at, &word, 8);
      }
    }
  }
  view_.regions[1].missing = 1;
  // The target holds what it held in an earlier life.
  std::memset(Region(2), 0x5a, kRegionBytes);
  ASSERT_TRUE(BlockOn(executor_, CopyRegion(executor_, worker_.fabric(), view_, 1)).ok());
  EXPECT_EQ(std::memcmp(Region(0), Region(2), sizeof(RegionHeader)), 0);
  uint32_t used = 0;
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    if (BlockEntry(Header(0).blocks[block]).use() == BlockEntry::Use::kFree) continue;
    ++used;
    const uint64_t at = block * kBlockBytes;
    EXPECT_EQ(std::memcmp(Region(0) + at, Region(2) + at, kBlockBytes), 0) << "block " << block;
  }
  EXPECT_GE(used, addrs.empty() ? 0U : 1U);
  // Live replicas were only read.
  EXPECT_NE(Region(1)[kRegionBytes - 1], std::byte{0x5a});
}

Task<void> CountTurns(Executor* executor, const bool* done, int* turns) {
  for (; !*done; ++*turns) co_await executor->Yield();
}

Task<Status> CopyAndSaySo(Executor* executor, Fabric* fabric, const View* view, bool* done) {
  const Status status = co_await CopyRegion(*executor, *fabric, *view, 1);
  *done = true;
  co_return status;
}

// On the nodes' host a copy of a large region takes long, and the agent's clients and the master
// are not to wait for it.
TEST_F(CopyRegionTest, OthersGoOnMeanwhileThoughOperationsCompleteInline) {
  worker_.Join();
  MemoryWorker on_host(cluster_, executor_, MakeShm(cluster_, executor_));
  constexpr uint32_t kBlocks = 5;
  auto* header = reinterpret_cast<RegionHeader*>(Region(0));
  for (uint32_t block = 0; block < kBlocks; ++block) {
    header->blocks[kBlocksPerRegion - 1 - block] =
        BlockEntry(BlockEntry::Use::kOwned, WorkerId{1}, SizeClass::For(64)).bits();
  }
  view_.regions[1].missing = 1;
  bool done = false;
  int turns = 0;
  Gate gate(executor_);
  executor_.Spawn(gate, CountTurns(&executor_, &done, &turns));
  ASSERT_TRUE(BlockOn(executor_, CopyAndSaySo(&executor_, &on_host.fabric(), &view_, &done)).ok());
  EXPECT_GE(turns, static_cast<int>(kBlocks));
  EXPECT_TRUE(executor_.RunUntilIdle());
}

TEST_F(CopyRegionTest, RefusesARegionThatIsWholeAndAPrimaryWithoutHeader) {
  EXPECT_EQ(BlockOn(executor_, CopyRegion(executor_, worker_.fabric(), view_, 1)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(BlockOn(executor_, CopyRegion(executor_, worker_.fabric(), view_, 99)).code(),
            StatusCode::kInvalidArgument);
  view_.regions[1].missing = 1;
  std::memset(Region(0), 0, sizeof(RegionHeader));
  EXPECT_EQ(BlockOn(executor_, CopyRegion(executor_, worker_.fabric(), view_, 1)).code(),
            StatusCode::kCorrupt);
}

TEST_F(CopyRegionTest, AMoveBringsWhatTheSourceHasWhateverTheOthersHave) {
  worker_.Join();
  Result<GlobalAddr> addr = worker_.Allocate(SizeClass::For(4096));
  while (addr.ok() && addr->region() != 1) addr = worker_.Allocate(SizeClass::For(700'000));
  ASSERT_TRUE(addr.ok());
  const uint64_t block = uint64_t{addr->block()} * kBlockBytes;
  std::memset(Region(1) + block + 100, 0x31, 1000);
  // Where the other region has a replica, on a third node.
  const NodeId source = view_.regions[1].nodes[1];
  int replica = 0;
  while (view_.regions[0].nodes[replica] == source) ++replica;
  const RemoteAddr target = view_.Locate(GlobalAddr(0, 0), replica);
  const std::byte* moved = cluster_.node(target.node.value).base() + target.offset;
  const std::vector<std::byte> primary(Region(0), Region(0) + kRegionBytes);
  ASSERT_TRUE(
      BlockOn(executor_, MoveRegion(executor_, worker_.fabric(), view_, 1, source, target)).ok());
  EXPECT_EQ(std::memcmp(moved, Region(1), sizeof(RegionHeader)), 0);
  EXPECT_EQ(std::memcmp(moved + block, Region(1) + block, kBlockBytes), 0);
  EXPECT_EQ(moved[block + 100], std::byte{0x31});
  EXPECT_EQ(std::memcmp(primary.data(), Region(0), kRegionBytes), 0);

  const auto move = [&](uint32_t region, NodeId from) {
    return BlockOn(executor_, MoveRegion(executor_, worker_.fabric(), view_, region, from, target))
        .code();
  };
  EXPECT_EQ(move(1, NodeId{9}), StatusCode::kInvalidArgument);
  EXPECT_EQ(move(99, source), StatusCode::kInvalidArgument);
  view_.regions[1].missing = 2;
  EXPECT_EQ(move(1, source), StatusCode::kInvalidArgument) << "it is not there";
  view_.regions[1].missing = 0;
  std::memset(Region(1), 0, sizeof(RegionHeader));
  EXPECT_EQ(move(1, source), StatusCode::kCorrupt);
}

TEST_F(CopyRegionTest, RegionsThatAreAddedGetEmptyHeadersWhateverLayThere) {
  worker_.Join();
  View grown = view_;
  // Where region 1 lies now, as after it has moved away.
  grown.regions[1].nodes = {NodeId{7}, NodeId{8}, NodeId{9}};
  grown.regions.push_back(view_.regions[1]);
  for (int replica = 0; replica < 3; ++replica) std::memset(Region(replica), 0x5a, kRegionBytes);
  const auto make = [&](uint32_t first) {
    return BlockOn(executor_, FormatRegions(worker_.fabric(), grown, first)).code();
  };
  EXPECT_EQ(make(0), StatusCode::kInvalidArgument) << "it has the root area";
  EXPECT_EQ(make(3), StatusCode::kInvalidArgument);
  EXPECT_EQ(Header(0).magic, 0x5a5a5a5a5a5a5a5a);
  ASSERT_EQ(make(2), StatusCode::kOk);
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(Header(replica).magic, kRegionMagic);
    EXPECT_EQ(Header(replica).layout_version, kLayoutVersion);
    EXPECT_EQ(Header(replica).region, 2U);
    for (const uint64_t block : Header(replica).blocks) EXPECT_EQ(block, 0U);
    EXPECT_EQ(Region(replica)[sizeof(RegionHeader)], std::byte{0x5a}) << "and that is all";
  }
  grown.regions[2].missing = 1;
  EXPECT_EQ(make(2), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace onetrip
