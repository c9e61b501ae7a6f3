#include <gtest/gtest.h>

#include "client_core/cluster/pool_text.h"
#include "frontend/pool_watch.h"

namespace onetrip {
namespace {

PoolUsage Used(uint64_t percent) {
  return {.capacity_bytes = 1ULL << 40, .granted_bytes = ((1ULL << 40) / 100 + 1) * percent};
}

TEST(PoolWatch, SaysOnceThatThePoolIsAlmostFull) {
  PoolWatch watch;
  EXPECT_EQ(watch.Look(Used(79), 0, 0), "");
  EXPECT_TRUE(watch.Look(Used(81), 0, 0).starts_with("81 % of the memory is used"));
  EXPECT_EQ(watch.Look(Used(94), 0, 0), "");
  EXPECT_TRUE(watch.Look(Used(95), 0, 0).starts_with("95 % of the memory is used"));
  EXPECT_EQ(watch.Look(Used(99), 0, 0), "");
  // Over only when it is clearly less.
  EXPECT_EQ(watch.Look(Used(79), 0, 0), "");
  EXPECT_EQ(watch.Look(Used(80), 0, 0), "");
  EXPECT_EQ(watch.Look(Used(78), 0, 0), "");
  EXPECT_NE(watch.Look(Used(80), 0, 0), "");
}

TEST(PoolWatch, SaysOfRefusalsWhyFromTimeToTime) {
  PoolWatch watch;
  const uint64_t later_ns = PoolWatch::kRefusalEveryNs;
  EXPECT_TRUE(watch.Look(Used(99), 64, 1).starts_with("writes are refused with -OOM: 99 %"));
  EXPECT_EQ(watch.Look(Used(99), 64, later_ns), "");
  EXPECT_EQ(watch.Look(Used(99), 0, later_ns + 2), "");
  EXPECT_NE(watch.Look(Used(99), 64, later_ns + 2), "");
}

TEST(PoolTextTest, NamesWhatIsFreeWhenItServesOtherSizesOnly) {
  PoolUsage usage = Used(40);
  usage.refused_bytes = 4096;
  const std::string why = WhyShortOfMemory(usage);
  EXPECT_TRUE(why.starts_with("writes that take 4.0 KiB are refused with -OOM")) << why;
  EXPECT_NE(why.find("40 % of the memory is used"), std::string::npos) << why;
  EXPECT_NE(why.find("onetrip node add"), std::string::npos) << why;
}

TEST(PoolTextTest, WarnsFromFourFifthsOn) {
  EXPECT_EQ(WhyShortOfMemory({}), "");
  EXPECT_EQ(WhyShortOfMemory(Used(79)), "");
  EXPECT_NE(WhyShortOfMemory(Used(80)), "");
}

TEST(PoolUsageTest, UsedIsWhatIsNeitherFreeNorComesBack) {
  PoolUsage usage;
  NodeUsage node{.blocks = 10, .granted_blocks = 4, .reserve_blocks = 2};
  node.free_bytes[3] = 1000;
  usage.Add(node);
  WorkerUsage workers{.retired_bytes = 50};
  workers.free_bytes[3] = 500;
  usage.Add(workers);
  usage.SetBlocks(10);
  EXPECT_EQ(usage.capacity_bytes, 8 * kBlockBytes);
  EXPECT_EQ(usage.used_bytes(), 4 * kBlockBytes - 1550);
  EXPECT_EQ(usage.free_block_bytes(), 4 * kBlockBytes);
  EXPECT_EQ(usage.used_percent(), 49U);
}

// Reports are of different moments.
TEST(PoolUsageTest, NothingIsLessThanNothingOrMoreThanAll) {
  PoolUsage usage;
  WorkerUsage workers{.retired_bytes = 50};
  usage.Add(workers);
  usage.SetBlocks(1);
  EXPECT_EQ(usage.used_bytes(), 0U);
  usage.Add(NodeUsage{.blocks = 1, .granted_blocks = 7});
  usage.SetBlocks(1);
  EXPECT_EQ(usage.used_bytes(), kBlockBytes);
  EXPECT_EQ(usage.used_percent(), 100U);
}

}  // namespace
}  // namespace onetrip
