// Lists of extents and the headers of extents: what comes back, and what is never believed.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/layout/extent.h"

namespace onetrip {
namespace {

ExtentList SomeList(uint64_t value_bytes, uint32_t extent_bytes) {
  ExtentList list = PlanExtents(value_bytes, extent_bytes);
  Rng rng(value_bytes);
  for (ExtentRef& ref : list.extents) {
    ref.addr = GlobalAddr(rng.Below((1ULL << kAddrBits) / kObjectAlignBytes) * kObjectAlignBytes);
  }
  return list;
}

TEST(ExtentListTest, ExtentsHoldExactlyTheValue) {
  for (const uint32_t extent_bytes : {1U, 30U, 4096U, kExtentBytesMax}) {
    for (uint64_t value_bytes = extent_bytes; value_bytes < 3 * uint64_t{extent_bytes} + 2;
         value_bytes += 1 + extent_bytes / 7) {
      const ExtentList list = PlanExtents(value_bytes, extent_bytes);
      uint64_t sum = 0;
      for (size_t i = 0; i < list.extents.size(); ++i) {
        ASSERT_GE(list.extents[i].size_class.bytes(), kExtentHeaderBytes + list.BytesOf(i));
        ASSERT_TRUE(list.BytesOf(i) == extent_bytes || i + 1 == list.extents.size());
        ASSERT_GT(list.BytesOf(i), 0U);
        sum += list.BytesOf(i);
      }
      ASSERT_EQ(sum, value_bytes);
    }
  }
}

TEST(ExtentListTest, TheLargestValueHasAListThatARootHolds) {
  const ExtentList list = PlanExtents(kMaxValueBytes, kExtentBytesMax);
  EXPECT_EQ(list.extents.size(), kExtentsMax);
  EXPECT_EQ(EncodeExtentList(list).size(), ExtentListBytes(kExtentsMax));
  EXPECT_EQ(SizeClass::ForRoot(kRecordHeaderBytes + 16 + ExtentListBytes(kExtentsMax)).bytes(),
            8192U);
}

TEST(ExtentListTest, ListsComeBack) {
  for (const uint64_t value_bytes : {1ULL, 100ULL, 101ULL, 5000ULL}) {
    const ExtentList list = SomeList(value_bytes, 100);
    ExtentList again;
    ASSERT_TRUE(LoadExtentList(EncodeExtentList(list), &again));
    EXPECT_EQ(again.value_bytes, value_bytes);
    EXPECT_EQ(again.extent_bytes, 100U);
    ASSERT_EQ(again.extents.size(), list.extents.size());
    for (size_t i = 0; i < list.extents.size(); ++i) {
      EXPECT_EQ(again.extents[i].addr, list.extents[i].addr);
      EXPECT_EQ(again.extents[i].size_class, list.extents[i].size_class);
    }
  }
}

TEST(ExtentListTest, WhatIsNoListIsRefused) {
  const std::string good = EncodeExtentList(SomeList(250, 100));
  ExtentList list;
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(LoadExtentList(std::string_view(good).substr(0, bytes), &list)) << bytes;
  }
  EXPECT_FALSE(LoadExtentList(good + std::string(8, '\0'), &list));
  for (const size_t at : {0U, 7U, 8U, 12U, 22U}) {  // value bytes, extent bytes, extents, a class
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (at == 0 ? 0x80 : 0x55));
    EXPECT_FALSE(LoadExtentList(bad, &list)) << at;
  }
}

TEST(ExtentHeaderTest, OnlyTheVeryExtentIsBelieved) {
  std::vector<std::byte> piece(1000, std::byte{7});
  const ExtentHeader header = MakeExtentHeader(77, 3, piece.data(), 1000);
  EXPECT_TRUE(ExtentIsIntact(header, 77, 3, piece.data(), 1000));
  EXPECT_FALSE(ExtentIsIntact(header, 78, 3, piece.data(), 1000));
  EXPECT_FALSE(ExtentIsIntact(header, 77, 4, piece.data(), 1000));
  EXPECT_FALSE(ExtentIsIntact(header, 77, 3, piece.data(), 999));
  for (size_t i = 0; i < piece.size(); i += 111) {
    piece[i] ^= std::byte{1};
    EXPECT_FALSE(ExtentIsIntact(header, 77, 3, piece.data(), 1000)) << i;
    piece[i] ^= std::byte{1};
  }
  ExtentHeader other = header;
  other.version = 78;
  EXPECT_FALSE(ExtentIsIntact(other, 78, 3, piece.data(), 1000)) << "the checksum covers it";
}

}  // namespace
}  // namespace onetrip
