// Size classes and what follows from them for blocks: exhaustive over every object size.
#include <gtest/gtest.h>

#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/size_class.h"

namespace onetrip {
namespace {

constexpr uint64_t kLargestSlab = SizeClass(SizeClass::kSlabClasses - 1).bytes();
constexpr uint64_t kLargest = SizeClass(SizeClass::kSizes - 1).bytes();

TEST(SizeClassTest, EveryClassIsTheClassOfItsOwnSize) {
  for (uint8_t index = 0; index < SizeClass::kSizes; ++index) {
    const SizeClass size_class(index);
    EXPECT_TRUE(size_class.is_valid());
    EXPECT_FALSE(size_class.is_root());
    EXPECT_EQ(SizeClass::For(size_class.bytes()), size_class) << int{index};
    EXPECT_EQ(size_class.is_span(), index >= SizeClass::kSlabClasses);
    EXPECT_EQ(size_class.bytes() % kObjectAlignBytes, 0U);
    EXPECT_GT(size_class.bytes(), index == 0 ? 0 : SizeClass(index - 1).bytes());
  }
}

TEST(SizeClassTest, EverySizeGetsTheSmallestClassThatHoldsIt) {
  uint8_t last = 0;
  for (uint64_t bytes = 0; bytes <= kLargest; ++bytes) {
    const SizeClass size_class = SizeClass::For(bytes);
    ASSERT_TRUE(size_class.is_valid()) << bytes;
    ASSERT_GE(size_class.bytes(), bytes);
    ASSERT_GE(size_class.index(), last) << bytes;
    last = size_class.index();
    ASSERT_TRUE(last == 0 || SizeClass(last - 1).bytes() < bytes) << bytes;
  }
  EXPECT_EQ(last, SizeClass::kSizes - 1);
  EXPECT_FALSE(SizeClass::For(kLargest + 1).is_valid());
  EXPECT_FALSE(SizeClass::For(~uint64_t{0}).is_valid());
}

TEST(SizeClassTest, SlabsWasteLessThanAQuarterAndSpansLessThanABlock) {
  for (uint64_t bytes = 64; bytes <= kLargestSlab; ++bytes) {
    ASSERT_LT((SizeClass::For(bytes).bytes() - bytes) * 4, bytes) << bytes;
  }
  for (uint64_t bytes = kLargestSlab + 1; bytes <= kLargest; ++bytes) {
    ASSERT_LT(SizeClass::For(bytes).bytes() - bytes, kBlockBytes) << bytes;
  }
}

TEST(SizeClassTest, TheLargestRecordFits) {
  EXPECT_TRUE(SizeClass::For(RecordBytes(kMaxKeyBytes, kRecordValueBytesMax)).is_valid());
}

TEST(SizeClassTest, RootsHaveClassesOfTheirOwn) {
  for (uint8_t index = SizeClass::kSizes; index < SizeClass::kCount; ++index) {
    const SizeClass size_class(index);
    EXPECT_TRUE(size_class.is_valid());
    EXPECT_TRUE(size_class.is_root());
    EXPECT_FALSE(size_class.is_span());
    EXPECT_EQ(size_class.blocks(), 1U);
    EXPECT_EQ(SizeClass::ForRoot(size_class.bytes()), size_class);
    EXPECT_EQ(size_class.bytes() % kObjectAlignBytes, 0U);
    EXPECT_GT(SizeClass::ForRoot(size_class.bytes() + 1).index(), index);
  }
  EXPECT_EQ(SizeClass::ForRoot(0).index(), SizeClass::kSizes);
  EXPECT_FALSE(SizeClass::ForRoot(~uint64_t{0}).is_valid());
}

TEST(SizeClassTest, ObjectsOfABlockLieInsideItAndHaveABitEach) {
  for (uint8_t index = 0; index < SizeClass::kCount; ++index) {
    const SizeClass size_class(index);
    for (const uint32_t block : {0U, 1U, kBlocksPerRegion - 1}) {
      if (size_class.is_span() && block == 0) continue;  // never granted
      const uint32_t objects = ObjectsPerBlock(size_class, block);
      const uint64_t first = FirstObjectOffset(block);
      const uint64_t end = first + objects * size_class.bytes();
      ASSERT_GE(objects, 1U);
      ASSERT_LE(objects, kBitmapWords * 64);
      ASSERT_EQ(first % kObjectAlignBytes, 0U);
      ASSERT_GE(first, BitmapOffset(block) + kBlockHeaderBytes);
      ASSERT_LE(end, size_class.blocks() * kBlockBytes);
      // No room for one more.
      ASSERT_GT(end + size_class.bytes(), size_class.blocks() * kBlockBytes);
    }
  }
  EXPECT_EQ(BitmapOffset(0), kRegionHeaderBytes);
  EXPECT_EQ(BitmapOffset(7), 0U);
}

TEST(SizeClassTest, NoClassIsNoClass) {
  EXPECT_FALSE(SizeClass().is_valid());
  EXPECT_EQ(SizeClass().index(), SizeClass::kNone);
  for (int index = SizeClass::kCount; index < 64; ++index) {
    EXPECT_FALSE(SizeClass(static_cast<uint8_t>(index)).is_valid());
  }
}

}  // namespace
}  // namespace onetrip
