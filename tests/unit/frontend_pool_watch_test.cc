#include <gtest/gtest.h>

#include "frontend/pool_watch.h"

namespace onetrip {
namespace {

PoolUsage Used(uint64_t percent) {
  return {.capacity_bytes = 1ULL << 40, .granted_bytes = ((1ULL << 40) / 100 + 1) * percent};
}

TEST(PoolWatch, SaysOnceThatThePoolIsAlmostFullAndOnceThatItIs) {
  PoolWatch watch;
  EXPECT_EQ(watch.Look(Used(79), false), "");
  EXPECT_TRUE(watch.Look(Used(81), false).starts_with("81 % of the pool"));
  EXPECT_EQ(watch.Look(Used(99), false), "");
  EXPECT_TRUE(watch.Look(Used(99), true).starts_with("the pool of memory nodes is full"));
  EXPECT_EQ(watch.Look(Used(99), true), "");
  EXPECT_EQ(watch.Look(Used(76), false), "");
  EXPECT_EQ(watch.Look(Used(99), true), "");
  EXPECT_EQ(watch.Look(Used(74), false), "");
  EXPECT_NE(watch.Look(Used(80), true), "");
}

TEST(PoolWatch, WarnsInInfoFromFourFifthsOn) {
  EXPECT_EQ(PoolWarning({}), "");
  EXPECT_EQ(PoolWarning(Used(79)), "");
  EXPECT_NE(PoolWarning(Used(80)), "");
}

}  // namespace
}  // namespace onetrip
