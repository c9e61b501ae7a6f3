#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "client_core/base/rng.h"
#include "client_core/base/sharded_map.h"

namespace onetrip {
namespace {

TEST(ShardedMap, BehavesAsAMapUnderRandomUse) {
  Rng rng(7);
  ShardedMap<uint64_t> map;
  std::map<uint64_t, uint64_t> expected;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint64_t key = rng.Below(2000) << 12;
    switch (rng.Below(4)) {
      case 0:
        EXPECT_EQ(map.Erase(key), expected.erase(key) != 0);
        break;
      case 1:
        map[key] = expected[key] = i;
        break;
      case 2:
        map[key] += i;
        expected[key] += i;
        break;
      default: {
        const auto at = expected.find(key);
        uint64_t* found = map.Find(key);
        ASSERT_EQ(found != nullptr, at != expected.end());
        EXPECT_EQ(map.Contains(key), found != nullptr);
        if (found != nullptr) {
          EXPECT_EQ(*found, at->second);
        }
      }
    }
  }
  map.EraseIf([](uint64_t value) { return value % 3 == 0; });
  std::erase_if(expected, [](const auto& entry) { return entry.second % 3 == 0; });
  std::map<uint64_t, uint64_t> visited;
  map.ForEach([&](uint64_t key, uint64_t& value) { visited[key] = value; });
  EXPECT_EQ(visited, expected);
  EXPECT_FALSE(expected.empty());
}

}  // namespace
}  // namespace onetrip
