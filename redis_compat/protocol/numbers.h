// Numbers as Redis reads and writes them in commands, replies and values.
//
// Pure functions; any thread.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_NUMBERS_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_NUMBERS_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace onetrip {

// A decimal integer in its one canonical spelling: no blanks, no plus, no leading zeros, no "-0".
// Empty for anything else, and for what 64 bits cannot hold.
std::optional<int64_t> ParseInt64(std::string_view text);

// A floating point number as strtold takes it (hexadecimal and "inf" included), without blanks
// around it; empty for anything else, for nan, and for what overflows or underflows.
std::optional<long double> ParseLongDouble(std::string_view text);

// The same of a double, of any length.
std::optional<double> ParseDouble(std::string_view text);

// Digits of the largest 64-bit integers, sign included.
inline constexpr size_t kInt64TextMax = 20;
// FormatLongDouble() needs at most this: 4933 digits before the point and 17 behind it.
inline constexpr size_t kLongDoubleTextMax = 5120;
// FormatDouble() needs at most this.
inline constexpr size_t kDoubleTextMax = 32;

// Writes `value` in decimal at `out` (room for kInt64TextMax bytes); returns the end.
inline char* FormatInt64(int64_t value, char* out) {
  return std::to_chars(out, out + kInt64TextMax, value).ptr;
}
inline char* FormatUint64(uint64_t value, char* out) {
  if (value < 10) {
    *out = static_cast<char>('0' + value);
    return out + 1;
  }
  return std::to_chars(out, out + kInt64TextMax, value).ptr;
}

// Writes `value` with up to 17 digits behind the point and without trailing zeros (what INCRBYFLOAT
// stores and answers) at `out` (room for kLongDoubleTextMax bytes); returns how many bytes.
size_t FormatLongDouble(long double value, char* out);

// Writes `value` with 17 significant digits (doubles in replies) at `out` (room for kDoubleTextMax
// bytes); returns how many bytes.
size_t FormatDouble(double value, char* out);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_NUMBERS_H_
