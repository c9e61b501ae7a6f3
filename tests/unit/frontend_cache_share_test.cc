// How the agent's memory for what it remembers of keys is shared.
#include <gtest/gtest.h>

#include "frontend/storage/data_path.h"

namespace onetrip {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

AgentOptions OptionsOf(const char* engine, uint64_t threads, uint64_t cache_bytes) {
  AgentOptions options = DefaultAgentOptions();
  options.engine = engine;
  options.threads = threads;
  options.cache_bytes = cache_bytes;
  return options;
}

TEST(CacheShareTest, ByDefaultItIsAnEighthOfTheHost) {
  const CacheShare share = CacheShareOf(OptionsOf("swarm", 1, 0), 16 * kGiB);
  EXPECT_EQ(share.location_bytes, kGiB / 4);
  EXPECT_EQ(share.registers, (kGiB - kGiB / 8) / 370);
  EXPECT_EQ(share.resting, (kGiB - kGiB / 8) / 64);
}

TEST(CacheShareTest, WorkersShareItEvenly) {
  const CacheShare one = CacheShareOf(OptionsOf("abd", 1, kGiB), 16 * kGiB);
  const CacheShare of_four = CacheShareOf(OptionsOf("abd", 4, 4 * kGiB), 16 * kGiB);
  EXPECT_EQ(one.location_bytes, of_four.location_bytes);
  EXPECT_EQ(one.registers, of_four.registers);
  EXPECT_EQ(one.resting, of_four.resting);
}

// In a cluster whose other agents write registers it reads them.
TEST(CacheShareTest, EngineSnapshotKnowsRegistersToo) {
  const CacheShare share = CacheShareOf(OptionsOf("snapshot", 2, kGiB), kGiB);
  EXPECT_EQ(share.location_bytes, kGiB / 4);
  EXPECT_EQ(share.registers, kGiB / 8 / 370);
}

TEST(CacheShareTest, WithoutRegistersLocationsHaveAll) {
  EXPECT_EQ(CacheShareOf(OptionsOf("raw", 1, kGiB), kGiB).location_bytes, kGiB);
}

TEST(CacheShareTest, OneRegisterIsKnownHoweverLittleItIs) {
  const CacheShare share = CacheShareOf(OptionsOf("swarm", 64, 1), kGiB);
  EXPECT_EQ(share.location_bytes, 0U);
  EXPECT_EQ(share.registers, 1U);
}

}  // namespace
}  // namespace onetrip
