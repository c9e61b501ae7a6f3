// Slabs of one worker: where objects lie, how blocks come and go, and that the metrics add up.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "client_core/base/rng.h"
#include "tests/support/memory_worker.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

class SlabTest : public testing::Test {
 protected:
  SlabTest() { worker_.Join(); }
  ~SlabTest() override { worker_.Leave(); }

  static constexpr uint64_t kNodeBytes = 32ULL << 20;

  void ExpectMetricsAddUp() {
    const BlockTables tables = ReadBlockTables(cluster_, worker_.context().membership.id);
    const AllocatorMetrics& metrics = worker_.allocator().metrics();
    EXPECT_TRUE(tables.replicas_agree);
    EXPECT_TRUE(tables.headers_intact);
    EXPECT_EQ(metrics.owned_bytes.Value(), tables.owned_bytes);
    EXPECT_EQ(metrics.owned_bytes.Value(), tables.granted_blocks * kBlockBytes);
    EXPECT_EQ(metrics.owned_bytes.Value(),
              metrics.live_bytes.Value() + metrics.free_bytes.Value() + tables.slack_bytes);
    uint64_t granted = 0;
    for (size_t i = 0; i < cluster_.node_count(); ++i) {
      granted += cluster_.node(i).status().granted_blocks;
    }
    EXPECT_EQ(granted, tables.granted_blocks * cluster_.node_count());
  }

  // Fills an object with a byte on every replica.
  void Fill(GlobalAddr addr, SizeClass size_class, int byte) {
    for (int replica = 0; replica < 3; ++replica) {
      const RemoteAddr at = worker_.context().view().Locate(addr, replica);
      std::memset(cluster_.node(at.node.value).base() + at.offset, byte, size_class.bytes());
    }
  }

  // Everything still free of the pool, in objects of `size_class`.
  std::vector<GlobalAddr> AllocateAll(SizeClass size_class) {
    std::vector<GlobalAddr> objects;
    while (true) {
      const Result<GlobalAddr> addr = worker_.Allocate(size_class);
      if (!addr.ok()) {
        EXPECT_EQ(addr.status().code(), StatusCode::kOutOfMemory);
        return objects;
      }
      objects.push_back(addr.value());
    }
  }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = kNodeBytes}};
  LoopExecutor executor_{clock_, 1};
  MemoryWorker worker_{cluster_, executor_, MakeShm(cluster_, executor_)};
};

// Live objects by first byte.
class Extents {
 public:
  void Add(GlobalAddr addr, SizeClass size_class) {
    ASSERT_EQ(addr.bits() % kObjectAlignBytes, 0U);
    const uint64_t from = addr.bits();
    const uint64_t to = from + size_class.bytes();
    const auto after = extents_.lower_bound(from);
    ASSERT_TRUE(after == extents_.end() || after->first >= to) << "runs into the next object";
    ASSERT_TRUE(after == extents_.begin() || std::prev(after)->second <= from)
        << "begins within the last object";
    extents_[from] = to;
    // Headers of the region and of the block, and the block's end, are not the object's.
    const uint64_t in_block = from - addr.block_start().bits();
    ASSERT_GE(in_block, FirstObjectOffset(addr.block()));
    ASSERT_LE(in_block + size_class.bytes(), size_class.blocks() * kBlockBytes);
    ASSERT_TRUE(addr.region() > 0 || addr.block() >= kRootBlocks);
  }
  void Remove(GlobalAddr addr) { ASSERT_EQ(extents_.erase(addr.bits()), 1U); }

 private:
  std::map<uint64_t, uint64_t> extents_;
};

TEST_F(SlabTest, ObjectsOfAllClassesNeverOverlap) {
  Rng rng(1);
  Extents extents;
  std::vector<std::pair<GlobalAddr, SizeClass>> live;
  for (int i = 0; i < Scaled(60'000); ++i) {
    // Small classes more often than large ones.
    const SizeClass size_class(static_cast<uint8_t>(rng.Below(1 + rng.Below(SizeClass::kCount))));
    if (rng.Below(5) < 3) {
      const Result<GlobalAddr> addr = worker_.Allocate(size_class);
      if (!addr.ok()) continue;
      ASSERT_NO_FATAL_FAILURE(extents.Add(addr.value(), size_class));
      live.emplace_back(addr.value(), size_class);
    } else if (!live.empty()) {
      std::swap(live[rng.Below(live.size())], live.back());
      extents.Remove(live.back().first);
      if (rng.Below(2) == 0) {
        worker_.allocator().Retire(live.back().first, live.back().second);
      } else {
        worker_.allocator().FreeUnpublished(live.back().first, live.back().second);
      }
      live.pop_back();
    }
    if (i % 500 == 0) worker_.Maintain();
    if (i % 5000 == 0) ExpectMetricsAddUp();
  }
  for (const auto& [addr, size_class] : live) worker_.allocator().Retire(addr, size_class);
  BlockOn(executor_, worker_.allocator().Drain());
  ExpectMetricsAddUp();
  EXPECT_EQ(worker_.allocator().metrics().owned_bytes.Value(), 0U);
  EXPECT_EQ(worker_.allocator().metrics().live_bytes.Value(), 0U);
  EXPECT_EQ(worker_.allocator().metrics().free_bytes.Value(), 0U);
  EXPECT_EQ(worker_.allocator().metrics().retired_bytes.Value(), 0U);
}

TEST_F(SlabTest, EveryClassFillsThePoolAndGivesItBack) {
  // But for the reserve.
  constexpr uint64_t kRegions = kNodeBytes / kRegionBytes;  // each on a node of its own
  const uint64_t pool_blocks = kRegions * (kBlocksPerRegion - 4) - kRootBlocks;
  for (uint8_t index = 0; index < SizeClass::kCount; ++index) {
    const SizeClass size_class(index);
    SCOPED_TRACE(testing::Message() << size_class.bytes() << " bytes");
    // The smallest classes make half a million objects: less of the pool will do.
    if (size_class.bytes() < 4096 && index % 9 != 8) continue;
    const std::vector<GlobalAddr> objects = AllocateAll(size_class);
    Extents extents;
    for (const GlobalAddr addr : objects) {
      ASSERT_NO_FATAL_FAILURE(extents.Add(addr, size_class));
      Fill(addr, size_class, 0xbb);
    }
    ExpectMetricsAddUp();
    const AllocatorMetrics& metrics = worker_.allocator().metrics();
    EXPECT_EQ(metrics.free_bytes.Value(), 0U);
    EXPECT_EQ(metrics.live_bytes.Value(), objects.size() * size_class.bytes());
    EXPECT_TRUE(size_class.is_span() || metrics.owned_bytes.Value() == pool_blocks * kBlockBytes);
    for (const GlobalAddr addr : objects) worker_.allocator().Retire(addr, size_class);
    BlockOn(executor_, worker_.allocator().Drain());
    EXPECT_EQ(metrics.owned_bytes.Value(), 0U);
    ExpectMetricsAddUp();
  }
}

TEST_F(SlabTest, AFullPoolRecoversByWhatIsFreed) {
  const SizeClass size_class = SizeClass::For(50'000);
  std::vector<GlobalAddr> objects = AllocateAll(size_class);
  EXPECT_EQ(worker_.allocator().metrics().exhausted.Value(), 1U);
  EXPECT_EQ(worker_.Allocate(SizeClass(0)).status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(worker_.allocator().metrics().exhausted.Value(), 2U);
  for (int i = 0; i < 50; ++i) {
    // Retired memory comes back by waiting for it, within the call.
    worker_.allocator().Retire(objects.back(), size_class);
    objects.pop_back();
    const Result<GlobalAddr> again = worker_.Allocate(size_class);
    ASSERT_TRUE(again.ok());
    objects.insert(objects.begin(), again.value());
  }
  ExpectMetricsAddUp();
  // Whole blocks change their class.
  for (const GlobalAddr addr : objects) worker_.allocator().Retire(addr, size_class);
  EXPECT_GT(AllocateAll(SizeClass(SizeClass::kSizes - 1)).size(), 15U);
  ExpectMetricsAddUp();
}

TEST_F(SlabTest, ASetAndADeleteInTurnKeepTheirBlock) {
  for (int i = 0; i < 1000; ++i) {
    const Result<GlobalAddr> addr = worker_.Allocate(SizeClass(5));
    ASSERT_TRUE(addr.ok());
    worker_.allocator().Retire(addr.value(), SizeClass(5));
    worker_.Maintain();
  }
  EXPECT_EQ(worker_.allocator().metrics().blocks_granted.Value(), 1U);
}

TEST_F(SlabTest, RetiredMemoryWaitsForItsEpochAndMaintenanceIsAskedFor) {
  const Result<GlobalAddr> addr = worker_.Allocate(SizeClass(0));
  EXPECT_FALSE(worker_.allocator().wants_maintenance());
  worker_.allocator().Retire(addr.value(), SizeClass(0));
  EXPECT_EQ(worker_.allocator().retired_count(), 1U);
  EXPECT_EQ(worker_.allocator().metrics().retired_bytes.Value(), 64U);
  for (int i = 0; i < 4; ++i) worker_.Maintain();
  EXPECT_EQ(worker_.allocator().retired_count(), 0U);
  EXPECT_EQ(worker_.allocator().metrics().retired_bytes.Value(), 0U);
  int retired = 0;
  while (!worker_.allocator().wants_maintenance()) {
    worker_.allocator().Retire(worker_.Allocate(SizeClass(0)).value(), SizeClass(0));
    ++retired;
  }
  EXPECT_LE(retired, 1000);
  worker_.Maintain();
  EXPECT_FALSE(worker_.allocator().wants_maintenance());
}

TEST_F(SlabTest, ALostNodeIsAnErrorAndNothingIsKept) {
  cluster_.node(2).SetReachable(false);
  EXPECT_EQ(worker_.Allocate(SizeClass(0)).status().code(), StatusCode::kUnavailable);
  // Few blocks are on their way back until it answers, however often they were asked for.
  EXPECT_LT(ReadBlockTables(cluster_, worker_.context().membership.id).granted_blocks, 20U);
  cluster_.node(2).SetReachable(true);
  worker_.Maintain();
  ExpectMetricsAddUp();
  EXPECT_EQ(worker_.allocator().metrics().owned_bytes.Value(), 0U);
  EXPECT_TRUE(worker_.Allocate(SizeClass(0)).ok());
}

}  // namespace
}  // namespace onetrip
