// Bits of strings: counting, finding and fields of them. Bit 0 is the highest of the first byte.
// Pure functions; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_BITS_H_
#define ONETRIP_REDIS_COMPAT_VALUES_BITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onetrip {

// REQUIRES: begin <= end <= 8 * bytes.size().
uint64_t CountBits(std::string_view bytes, uint64_t begin, uint64_t end);

// The first bit of that value in [begin, end); empty if there is none. REQUIRES as above.
std::optional<uint64_t> FindBit(std::string_view bytes, bool value, uint64_t begin, uint64_t end);

// A signed or unsigned integer of 1..64 bits somewhere in a string.
struct BitField {
  bool is_signed = false;
  uint32_t bits = 0;    // at most 63 if unsigned
  uint64_t offset = 0;  // where its first bit is

  [[nodiscard]] uint64_t end() const { return offset + bits; }
};

enum class BitOverflow : uint8_t { kWrap, kSaturate, kFail };

// Bits behind the end of `bytes` are zero.
int64_t ReadBitField(std::string_view bytes, const BitField& field);
// Stores the low bits of `value`. REQUIRES: bytes reaches to field.end().
void WriteBitField(std::string* bytes, const BitField& field, int64_t value);

// `old` plus `increment` as the field can hold it; empty if it cannot and `overflow` is kFail. With
// old = 0 and the value to set as increment it also tells what SET stores.
std::optional<int64_t> AddToBitField(const BitField& field, int64_t old, int64_t increment,
                                     BitOverflow overflow);
// Returns the value of the field when `value` is stored; empty if `overflow` is kFail and it does
// not fit.
std::optional<int64_t> FitBitField(const BitField& field, int64_t value, BitOverflow overflow);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_BITS_H_
