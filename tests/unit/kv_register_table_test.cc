#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/kv/core/register_table.h"

namespace onetrip {
namespace {

// Never looked into.
CachedRegister* EntryOf(uint64_t number) {
  static std::array<std::byte, 1 << 17> places;
  return reinterpret_cast<CachedRegister*>(&places.at(number));
}

RegisterPlace PlaceOf(uint64_t hash, uint64_t number) {
  RegisterPlace place;
  place.hash = KeyHash(hash);
  place.entry = EntryOf(number);
  place.addr = GlobalAddr(number);
  return place;
}

TEST(RegisterTable, FindsWhatWasPutAndNothingElse) {
  RegisterTable table;
  EXPECT_EQ(table.Find(KeyHash(0)), nullptr);
  table.Put(PlaceOf(0, 1));
  table.Put(PlaceOf(7, 2));
  ASSERT_NE(table.Find(KeyHash(0)), nullptr);
  EXPECT_EQ(table.Find(KeyHash(0))->entry, EntryOf(1));
  EXPECT_EQ(table.Find(KeyHash(7))->addr, GlobalAddr(2));
  EXPECT_EQ(table.Find(KeyHash(8)), nullptr);
  table.Erase(KeyHash(8));
  table.Erase(KeyHash(0));
  EXPECT_EQ(table.Find(KeyHash(0)), nullptr);
  EXPECT_NE(table.Find(KeyHash(7)), nullptr);
}

TEST(RegisterTable, APlaceOfTheSameHashIsReplaced) {
  RegisterTable table;
  table.Put(PlaceOf(7, 1));
  table.Put(PlaceOf(7, 2));
  EXPECT_EQ(table.Find(KeyHash(7))->entry, EntryOf(2));
  table.Erase(KeyHash(7));
  EXPECT_EQ(table.Find(KeyHash(7)), nullptr);
}

// Few distinct hashes make long runs, whose ends wrap; more and more of them make the table grow.
TEST(RegisterTable, AgreesWithAMapWhateverIsPutAndErased) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    RegisterTable table;
    std::map<uint64_t, uint64_t> expected;
    const uint64_t hashes = 20 + rng.Below(rng.Below(2) == 0 ? 400 : 8000);
    // Hashes that the table's multiplication keeps close together: equal but for their last bits.
    const uint64_t base = rng.Below(2) == 0 ? 0 : rng.Next() << 12;
    for (uint64_t step = 0; step < 4 * hashes + 3000; ++step) {
      const uint64_t hash = base + rng.Below(hashes);
      if (rng.Below(3) == 0) {
        table.Erase(KeyHash(hash));
        expected.erase(hash);
      } else {
        table.Put(PlaceOf(hash, step));
        expected[hash] = step;
      }
    }
    for (uint64_t i = 0; i < hashes; ++i) {
      const RegisterPlace* place = table.Find(KeyHash(base + i));
      const auto found = expected.find(base + i);
      ASSERT_EQ(place != nullptr, found != expected.end()) << "seed " << seed;
      if (place != nullptr) {
        ASSERT_EQ(place->entry, EntryOf(found->second)) << "seed " << seed;
      }
    }
  }
}

// Every part grows some times.
TEST(RegisterTable, FindsAllOfManyWhileItGrows) {
  constexpr uint64_t kKeys = 100'000;
  RegisterTable table;
  Rng rng(1);
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < kKeys; ++i) {
    hashes.push_back(rng.Next());
    table.Put(PlaceOf(hashes.back(), i));
    ASSERT_EQ(table.Find(KeyHash(hashes[i / 2]))->entry, EntryOf(i / 2));
  }
  for (uint64_t i = 0; i < kKeys; i += 2) table.Erase(KeyHash(hashes[i]));
  for (uint64_t i = 0; i < kKeys; ++i) {
    const RegisterPlace* place = table.Find(KeyHash(hashes[i]));
    ASSERT_EQ(place != nullptr, i % 2 == 1) << i;
    if (place != nullptr) {
      ASSERT_EQ(place->entry, EntryOf(i));
    }
  }
}

}  // namespace
}  // namespace onetrip
