// Bits of strings, against the plain way of looking at them one by one.
#include <gtest/gtest.h>

#include <string>

#include "client_core/base/rng.h"
#include "redis_compat/values/bits.h"

namespace onetrip {
namespace {

bool BitAt(const std::string& bytes, uint64_t bit) {
  return ((static_cast<uint8_t>(bytes[bit / 8]) >> (7 - bit % 8)) & 1) != 0;
}

std::string RandomBytes(Rng& rng) {
  // Long runs of one value, so that whole words are alike.
  std::string bytes(rng.Below(40), rng.Below(2) == 0 ? '\0' : '\xff');
  for (uint64_t i = rng.Below(4); i > 0 && !bytes.empty(); --i) {
    bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
  }
  return bytes;
}

TEST(Bits, CountAndFindAgreeWithLookingAtEach) {
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = RandomBytes(rng);
    const uint64_t end = rng.Below(8 * bytes.size() + 1);
    const uint64_t begin = rng.Below(end + 1);
    const bool wanted = rng.Below(2) == 1;
    uint64_t count = 0;
    std::optional<uint64_t> first;
    for (uint64_t bit = begin; bit < end; ++bit) {
      count += BitAt(bytes, bit) ? 1 : 0;
      if (!first && BitAt(bytes, bit) == wanted) first = bit;
    }
    ASSERT_EQ(CountBits(bytes, begin, end), count) << round;
    ASSERT_EQ(FindBit(bytes, wanted, begin, end), first) << round;
  }
}

TEST(Bits, AFieldReadsWhatWasWrittenAndTouchesNothingElse) {
  Rng rng(2);
  for (int round = 0; round < 20'000; ++round) {
    BitField field;
    field.is_signed = rng.Below(2) == 1;
    field.bits = 1 + static_cast<uint32_t>(rng.Below(field.is_signed ? 64 : 63));
    field.offset = rng.Below(60);
    std::string bytes(32, static_cast<char>(rng.Below(256)));
    const std::string before = bytes;
    const auto value = FitBitField(field, static_cast<int64_t>(rng.Next()), BitOverflow::kWrap);
    ASSERT_TRUE(value.has_value());
    WriteBitField(&bytes, field, *value);
    ASSERT_EQ(ReadBitField(bytes, field), *value) << round;
    for (uint64_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      if (bit >= field.offset && bit < field.end()) continue;
      ASSERT_EQ(BitAt(bytes, bit), BitAt(before, bit)) << round;
    }
  }
  EXPECT_EQ(ReadBitField("", {true, 8, 100}), 0);
  EXPECT_EQ(ReadBitField("\xff", {true, 16, 0}), -256);
}

TEST(Bits, OverflowIsWrappedCutOrRefused) {
  const BitField u8{false, 8, 0};
  const BitField i8{true, 8, 0};
  EXPECT_EQ(AddToBitField(u8, 250, 10, BitOverflow::kWrap), 4);
  EXPECT_EQ(AddToBitField(u8, 250, 10, BitOverflow::kSaturate), 255);
  EXPECT_EQ(AddToBitField(u8, 250, 10, BitOverflow::kFail), std::nullopt);
  EXPECT_EQ(AddToBitField(u8, 5, -10, BitOverflow::kSaturate), 0);
  EXPECT_EQ(AddToBitField(i8, 120, 10, BitOverflow::kWrap), -126);
  EXPECT_EQ(AddToBitField(i8, -120, -10, BitOverflow::kSaturate), -128);
  EXPECT_EQ(AddToBitField({true, 64, 0}, INT64_MAX, 1, BitOverflow::kWrap), INT64_MIN);
  EXPECT_EQ(FitBitField(u8, -1, BitOverflow::kSaturate), 255);
  EXPECT_EQ(FitBitField(i8, 128, BitOverflow::kFail), std::nullopt);
}

}  // namespace
}  // namespace onetrip
