// The parts of the index that need no memory node: hashes, the location cache, the directory's
// walk.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "client_core/base/rng.h"
#include "client_core/index/directory.h"
#include "client_core/index/key_hash.h"
#include "client_core/index/location_cache.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

TEST(KeyHashTest, TheTwoGroupsAlwaysDiffer) {
  for (uint64_t first = 0; first < kSubtableGroups; ++first) {
    for (uint64_t second = 0; second < kSubtableGroups; ++second) {
      const KeyHash hash((first << 20) | (second << 27));
      ASSERT_EQ(hash.group(0), first);
      ASSERT_LT(hash.group(1), kSubtableGroups);
      ASSERT_NE(hash.group(0), hash.group(1));
      if (first != second) {
        ASSERT_EQ(hash.group(1), second);
      }
    }
  }
}

// A field that depended on another's bits would put keys of one subtable into few buckets.
TEST(KeyHashTest, FieldsUseBitsOfTheirOwn) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bits = rng.Next();
    const KeyHash hash(bits);
    for (int bit = 0; bit < 64; ++bit) {
      const KeyHash flipped(bits ^ (1ULL << bit));
      ASSERT_EQ(flipped.suffix(kMaxDepth) != hash.suffix(kMaxDepth), bit < 16);
      ASSERT_EQ(flipped.group(0) != hash.group(0), bit >= 20 && bit < 27);
      ASSERT_EQ(flipped.side(0) != hash.side(0), bit == 34);
      ASSERT_EQ(flipped.side(1) != hash.side(1), bit == 35);
      ASSERT_EQ(flipped.fingerprint() != hash.fingerprint(), bit >= 56);
    }
  }
}

TEST(KeyHashTest, SuffixesAreTheLowBits) {
  const KeyHash hash(0xdeadbeefULL);
  EXPECT_EQ(hash.suffix(0), 0U);
  EXPECT_EQ(hash.suffix(1), 1U);
  EXPECT_EQ(hash.suffix(8), 0xefU);
  EXPECT_EQ(hash.suffix(16), 0xbeefU);
}

LocationCache::Location LocationAt(uint64_t n) {
  return {GlobalAddr(n * 16),
          SlotWord::Make(SlotKind::kObject, 1, SizeClass(0), GlobalAddr(n * 16), false)};
}

TEST(LocationCacheTest, WhatWasPutIsFound) {
  LocationCache cache(1 << 20);
  Rng rng(1);
  std::map<uint64_t, uint64_t> put;
  for (uint64_t i = 1; i <= 1000; ++i) {
    const uint64_t hash = rng.Next();
    cache.Put(KeyHash(hash), LocationAt(i));
    put[hash] = i;
  }
  size_t found = 0;
  for (const auto& [hash, i] : put) {
    LocationCache::Location location;
    if (!cache.Find(KeyHash(hash), &location)) continue;
    ++found;
    EXPECT_EQ(location.slot, LocationAt(i).slot);
    EXPECT_EQ(location.word, LocationAt(i).word);
    ASSERT_NE(cache.Peek(KeyHash(hash)), nullptr);
    EXPECT_EQ(cache.Peek(KeyHash(hash))->slot, location.slot);
  }
  EXPECT_GT(found, 900U) << "few leave before there is room for a thousand";
  // Those that had to leave come back, and it has grown for them.
  for (const auto& [hash, i] : put) cache.Put(KeyHash(hash), LocationAt(i));
  found = 0;
  for (const auto& [hash, i] : put) found += cache.Peek(KeyHash(hash)) != nullptr ? 1 : 0;
  EXPECT_GT(found, 970U);
  cache.Put(KeyHash(put.begin()->first), LocationAt(5555));
  LocationCache::Location location;
  ASSERT_TRUE(cache.Find(KeyHash(put.begin()->first), &location));
  EXPECT_EQ(location.slot, LocationAt(5555).slot);
  EXPECT_FALSE(cache.Find(KeyHash(rng.Next()), &location));
  EXPECT_EQ(cache.Peek(KeyHash(rng.Next())), nullptr);
}

TEST(LocationCacheTest, ItGrowsAsKeysComeAndItsBytesAreBounded) {
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{64}, uint64_t{100}, uint64_t{4096}, uint64_t{65'536},
        uint64_t{131'072}, uint64_t{1'000'000}, uint64_t{16} << 20}) {
    LocationCache cache(bytes);
    const uint64_t first = cache.bytes();
    EXPECT_LE(first, std::min<uint64_t>(std::max<uint64_t>(bytes, 64), 65'536));
    uint64_t grown = 0;
    for (uint64_t i = 1; i <= 100'000; ++i) {
      const uint64_t before = cache.bytes();
      const bool grows = cache.Put(KeyHash(i * 0x5851f42d4c957f2dULL), LocationAt(i));
      ASSERT_EQ(grows, cache.bytes() > before);
      // Not all at once.
      ASSERT_LE(cache.bytes(), before + std::max<uint64_t>(before / 8, 64));
      grown += grows ? 1 : 0;
    }
    EXPECT_LE(cache.bytes(), std::max<uint64_t>(bytes, 64));
    EXPECT_GE(cache.bytes(), std::max<uint64_t>(std::min<uint64_t>(bytes, 8 << 20) / 2, 64));
    EXPECT_EQ(grown > 0, bytes > 65'536) << bytes;
  }
}

// A growing cache leaves behind what was forgotten.
TEST(LocationCacheTest, WhatWasClearedIsNotFoundWhenItHasGrown) {
  LocationCache cache(uint64_t{8} << 20);
  const auto hash_of = [](uint64_t i) { return KeyHash(i * 0x5851f42d4c957f2dULL); };
  for (uint64_t i = 1; i <= 500; ++i) cache.Put(hash_of(i), LocationAt(i));
  cache.Clear();
  const uint64_t before = cache.bytes();
  for (uint64_t i = 10'001; i <= 30'000; ++i) cache.Put(hash_of(i), LocationAt(i));
  EXPECT_GT(cache.bytes(), before);
  for (uint64_t i = 1; i <= 500; ++i) EXPECT_EQ(cache.Peek(hash_of(i)), nullptr);
}

TEST(LocationCacheTest, TheOlderOfTwoMakesRoom) {
  LocationCache cache(64);  // one line of two entries
  const KeyHash a(2 << 20);
  const KeyHash b(4 << 20);
  const KeyHash c(6 << 20);
  LocationCache::Location location;
  cache.Put(a, LocationAt(1));
  cache.Put(b, LocationAt(2));
  EXPECT_TRUE(cache.Find(a, &location));  // now b is the older
  cache.Put(c, LocationAt(3));
  EXPECT_TRUE(cache.Find(a, &location));
  EXPECT_TRUE(cache.Find(c, &location));
  EXPECT_FALSE(cache.Find(b, &location));
}

TEST(LocationCacheTest, AKeyThatIsMostlyInvalidIsBypassedForAWhile) {
  LocationCache cache(1 << 12);
  const KeyHash hash(12345ULL << 20);
  LocationCache::Location location;
  cache.Put(hash, LocationAt(1));
  int used = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!cache.Find(hash, &location)) continue;
    ++used;
    cache.NoteInvalid(hash);
    cache.Put(hash, LocationAt(static_cast<uint64_t>(i)));
  }
  EXPECT_GT(used, 16);
  EXPECT_LT(used, 600) << "half of the accesses at most, once the habit is known";
  // It stays valid now, and is used again.
  int found = 0;
  for (int i = 0; i < 1000; ++i) found += cache.Find(hash, &location);
  EXPECT_GT(found, 900);
  // An entry that is nowhere to be found is no one's concern.
  cache.NoteInvalid(KeyHash(999ULL << 20));
}

TEST(LocationCacheTest, AKeyThatIsSeldomInvalidIsNeverBypassed) {
  LocationCache cache(1 << 12);
  const KeyHash hash(77ULL << 20);
  LocationCache::Location location;
  cache.Put(hash, LocationAt(1));
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(cache.Find(hash, &location));
    if (i % 3 == 0) cache.NoteInvalid(hash);
  }
}

class DirectoryTest : public testing::Test {
 protected:
  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  TestWorkerBase worker_{
      cluster_, executor_,
      std::make_unique<SimFabric>(executor_, cluster_.endpoints(), SimFabricOptions())};
};

TEST_F(DirectoryTest, ParentsAndChildrenAreEachOthers) {
  for (uint32_t depth = 0; depth < kMaxDepth; ++depth) {
    for (uint32_t entry = 0; entry < (1U << depth); entry += 1 + (entry / 7)) {
      const uint32_t child = entry | (1U << depth);
      EXPECT_EQ(Directory::ParentEntry(child), entry);
      EXPECT_EQ(Directory::ChildEntry(entry, depth + 1, KeyHash(child)), child);
      // Split more than once since: still the child that took this key.
      EXPECT_EQ(Directory::ChildEntry(entry, kMaxDepth, KeyHash(child)), child);
    }
  }
}

// Random splits; the copy knows some of the subtables and their depths as of some time. Whatever it
// leads to is an ancestor of the right subtable, and with full knowledge the right one.
TEST_F(DirectoryTest, TheWalkLeadsToTheDeepestKnownSubtable) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    std::map<uint32_t, uint32_t> depths{{0, 0}};  // entry to depth: the truth
    Directory stale(worker_.context());
    Directory fresh(worker_.context());
    const auto word = [](uint32_t entry, uint32_t depth) {
      return DirectoryWord::Open(GlobalAddr(0, 3 * kBlockBytes + entry * 16), depth);
    };
    stale.Keep(0, word(0, 0));
    for (int split = 0; split < 200; ++split) {
      auto at = depths.begin();
      std::advance(at, static_cast<long>(rng.Below(depths.size())));
      const auto [entry, depth] = *at;
      if (depth == kMaxDepth) continue;
      depths[entry] = depth + 1;
      depths[entry | (1U << depth)] = depth + 1;
      if (split < 100 && stale.Knows(entry) && rng.Below(2) == 0) {
        stale.Keep(entry, word(entry, depth + 1));
        stale.Keep(entry | (1U << depth), word(entry | (1U << depth), depth + 1));
      }
    }
    for (const auto& [entry, depth] : depths) fresh.Keep(entry, word(entry, depth));
    for (int i = 0; i < 2000; ++i) {
      const KeyHash hash(rng.Next());
      uint32_t right = 0;
      for (const auto& [entry, depth] : depths) {
        if (hash.suffix(depth) == entry) right = entry;
      }
      ASSERT_EQ(fresh.Lookup(hash).entry, right) << "seed " << seed;
      ASSERT_EQ(fresh.Lookup(hash).depth, depths[right]);
      // From a stale copy, the headers' depths lead on, child by child, to the right one.
      Subtable table = stale.Lookup(hash);
      for (uint32_t hop = 0; hop <= kMaxDepth && table.entry != right; ++hop) {
        const uint32_t depth = depths[table.entry];
        ASSERT_NE(hash.suffix(depth), table.entry) << "seed " << seed;
        stale.NoteDepth(table.entry, depth);
        const uint32_t child = Directory::ChildEntry(table.entry, depth, hash);
        ASSERT_TRUE(depths.contains(child)) << "seed " << seed;
        stale.Keep(child, word(child, depths[child]));
        table = stale.At(child);
      }
      ASSERT_EQ(table.entry, right) << "seed " << seed;
    }
  }
}

TEST_F(DirectoryTest, DepthsAreNotUnlearned) {
  Directory directory(worker_.context());
  const GlobalAddr start(0, 3 * kBlockBytes);
  directory.Keep(0, DirectoryWord::Open(start, 0));
  directory.NoteDepth(0, 2);
  EXPECT_EQ(directory.At(0).depth, 2U);
  directory.NoteDepth(0, 1);
  directory.Keep(0, DirectoryWord::Splitting(start, 1, WorkerIndex{0}));
  EXPECT_EQ(directory.At(0).depth, 2U);
  EXPECT_EQ(directory.At(0).start, start);
}

TEST_F(DirectoryTest, WordsThatPointOutsideThePoolAreNotBelieved) {
  Directory directory(worker_.context());
  auto* words = reinterpret_cast<uint64_t*>(cluster_.node(0).base() + DirectoryAddr(0, 0).offset());
  words[5] = DirectoryWord::Open(GlobalAddr(1'000'000, 0), 1).bits();
  words[6] = DirectoryWord::Open(GlobalAddr(0, kBlockBytes), kMaxDepth + 1).bits();
  Operation operation;
  for (const uint32_t entry : {5U, 6U}) {
    const auto word = BlockOn(executor_, directory.Refresh(operation, entry));
    EXPECT_EQ(word.status().code(), StatusCode::kCorrupt);
    EXPECT_FALSE(directory.Knows(entry));
  }
  EXPECT_TRUE(BlockOn(executor_, directory.Refresh(operation, 7)).ok());
  EXPECT_FALSE(directory.Knows(7));
}

}  // namespace
}  // namespace onetrip
