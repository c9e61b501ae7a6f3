#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "client_core/base/slab.h"

namespace onetrip {
namespace {

struct alignas(64) Line {
  Line(int value_in, int& alive_in) : value(value_in), alive(alive_in) { ++alive; }
  ~Line() { --alive; }
  int value;
  int& alive;
};

TEST(Slab, ObjectsAreAlignedAndApartAndTheirMemoryServesAgain) {
  Slab<Line> slab;
  int alive = 0;
  std::vector<Line*> lines;
  std::set<uintptr_t> places;
  constexpr int kCount = 5000;  // more than the first chunks hold
  for (int i = 0; i < kCount; ++i) {
    lines.push_back(slab.New(i, alive));
    const auto place = reinterpret_cast<uintptr_t>(lines.back());
    EXPECT_EQ(place % 64, 0U);
    EXPECT_TRUE(places.insert(place).second);
  }
  EXPECT_EQ(alive, kCount);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(lines[static_cast<size_t>(i)]->value, i);
  for (Line* line : lines) slab.Delete(line);
  EXPECT_EQ(alive, 0);
  Line* again = slab.New(1, alive);
  EXPECT_TRUE(places.contains(reinterpret_cast<uintptr_t>(again)));
  slab.Delete(again);
}

TEST(Slab, ChunksGrowUpToABoundThatEveryLaterOneHas) {
  EXPECT_EQ(Slab<Line>::ChunkBytes(0), 64U << 10);
  EXPECT_EQ(Slab<Line>::ChunkBytes(1), 128U << 10);
  for (const size_t chunks : {9, 10, 47, 48, 63, 64, 1'000'000}) {
    EXPECT_EQ(Slab<Line>::ChunkBytes(chunks), 32U << 20) << chunks;
  }
}

TEST(ZeroedMemory, ThatTheHostDoesNotHaveIsNotThere) {
  EXPECT_EQ(ZeroedMemory::TryMake(uint64_t{1} << 60).start(), nullptr);
  EXPECT_NE(ZeroedMemory::TryMake(4096).start(), nullptr);
}

TEST(SlabDeathTest, AnObjectThatIsLeftIsAnError) {
  EXPECT_DEATH(
      {
        int alive = 0;
        Slab<Line> slab;
        (void)slab.New(1, alive);
      },
      "live_ == 0");
}

TEST(ZeroedMemory, IsZeroedAndMovesWithItsOwner) {
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{3} << 20}) {
    ZeroedMemory memory(bytes, /*huge_from=*/uint64_t{2} << 20);
    EXPECT_EQ(memory.bytes(), bytes);
    for (uint64_t at = 0; at < bytes; at += 4000) ASSERT_EQ(memory.start()[at], std::byte{0});
    memory.start()[bytes - 1] = std::byte{7};
    const ZeroedMemory other(std::move(memory));
    EXPECT_EQ(other.start()[bytes - 1], std::byte{7});
    EXPECT_EQ(memory.start(), nullptr);  // NOLINT(bugprone-use-after-move)
  }
}

}  // namespace
}  // namespace onetrip
