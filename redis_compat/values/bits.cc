#include "redis_compat/values/bits.h"

#include <bit>
#include <cstring>

namespace onetrip {
namespace {

using Int128 = __int128;

bool BitAt(std::string_view bytes, uint64_t bit) {
  return ((static_cast<uint8_t>(bytes[bit / 8]) >> (7 - bit % 8)) & 1) != 0;
}

uint64_t LoadWord(std::string_view bytes, uint64_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

Int128 Smallest(const BitField& field) {
  return field.is_signed ? -(Int128{1} << (field.bits - 1)) : Int128{0};
}
Int128 Largest(const BitField& field) {
  return (Int128{1} << (field.is_signed ? field.bits - 1 : field.bits)) - 1;
}

// The low bits of `value`, read as the field reads them.
int64_t Truncate(const BitField& field, uint64_t value) {
  if (field.bits < 64) value &= (uint64_t{1} << field.bits) - 1;
  if (field.is_signed && field.bits < 64 && ((value >> (field.bits - 1)) & 1) != 0) {
    value |= ~uint64_t{0} << field.bits;
  }
  return static_cast<int64_t>(value);
}

std::optional<int64_t> Fit(const BitField& field, Int128 value, BitOverflow overflow) {
  if (value >= Smallest(field) && value <= Largest(field)) return static_cast<int64_t>(value);
  switch (overflow) {
    case BitOverflow::kWrap:
      return Truncate(field, static_cast<uint64_t>(value));
    case BitOverflow::kSaturate:
      return static_cast<int64_t>(value < Smallest(field) ? Smallest(field) : Largest(field));
    case BitOverflow::kFail:
      break;
  }
  return std::nullopt;
}

}  // namespace

uint64_t CountBits(std::string_view bytes, uint64_t begin, uint64_t end) {
  uint64_t count = 0;
  for (; begin < end && begin % 8 != 0; ++begin) count += BitAt(bytes, begin) ? 1 : 0;
  for (; end - begin >= 64; begin += 64) {
    count += static_cast<uint64_t>(std::popcount(LoadWord(bytes, begin / 8)));
  }
  for (; begin < end; ++begin) count += BitAt(bytes, begin) ? 1 : 0;
  return count;
}

std::optional<uint64_t> FindBit(std::string_view bytes, bool value, uint64_t begin, uint64_t end) {
  const uint64_t others = value ? 0 : ~uint64_t{0};
  for (; begin < end && begin % 8 != 0; ++begin) {
    if (BitAt(bytes, begin) == value) return begin;
  }
  while (end > begin && end - begin >= 64 && LoadWord(bytes, begin / 8) == others) begin += 64;
  for (; begin < end; ++begin) {
    if (BitAt(bytes, begin) == value) return begin;
  }
  return std::nullopt;
}

int64_t ReadBitField(std::string_view bytes, const BitField& field) {
  uint64_t value = 0;
  const uint64_t known = 8 * uint64_t{bytes.size()};
  for (uint64_t bit = field.offset; bit < field.end(); ++bit) {
    value = value << 1 | (bit < known && BitAt(bytes, bit) ? 1 : 0);
  }
  return Truncate(field, value);
}

void WriteBitField(std::string* bytes, const BitField& field, int64_t value) {
  for (uint32_t i = 0; i < field.bits; ++i) {
    const uint64_t bit = field.offset + i;
    const bool set = ((static_cast<uint64_t>(value) >> (field.bits - 1 - i)) & 1) != 0;
    const auto mask = static_cast<uint8_t>(1U << (7 - bit % 8));
    const auto old = static_cast<uint8_t>((*bytes)[bit / 8]);
    (*bytes)[bit / 8] = static_cast<char>(set ? old | mask : old & ~mask);
  }
}

std::optional<int64_t> AddToBitField(const BitField& field, int64_t old, int64_t increment,
                                     BitOverflow overflow) {
  return Fit(field, Int128{old} + increment, overflow);
}

std::optional<int64_t> FitBitField(const BitField& field, int64_t value, BitOverflow overflow) {
  // An unsigned field reads what it is given as unsigned, so that -1 is too large for it.
  if (!field.is_signed) return Fit(field, Int128{static_cast<uint64_t>(value)}, overflow);
  // Redis finds a number too large when its distance to the largest one is negative in 64 bits,
  // which holds for those next to the smallest of all, too.
  const bool wraps = field.bits < 64 && Largest(field) - value > Int128{INT64_MAX};
  if (wraps && overflow == BitOverflow::kSaturate) return static_cast<int64_t>(Largest(field));
  return Fit(field, value, overflow);
}

}  // namespace onetrip
