// HyperLogLog in Redis's format, byte for byte, so that such values move between servers.
//
//   0..3 "HYLL"   4 encoding   5..7 zero   8..15 the last count, little-endian, top bit: stale
//   16.. registers: 16,384 of six bits (dense), or runs of equal ones (sparse)
//
// A sparse value is a sequence of runs: 00llllll zeros (1..64), 01llllll llllllll zeros
// (1..16,384), 1vvvvvll registers of value v (1..32, 1..4 of them).
//
// Pure functions on strings; any thread. Values come from clients: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_HYPERLOGLOG_H_
#define ONETRIP_REDIS_COMPAT_VALUES_HYPERLOGLOG_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace onetrip {

inline constexpr uint32_t kHllRegisters = 1U << 14;
// One byte per register: for merging and counting.
using HllRegisters = std::array<uint8_t, kHllRegisters>;

// Without any element; sparse.
std::string NewHll();

// True if the value says that it is a HyperLogLog; a sparse one may still be damaged.
bool IsHll(std::string_view value);
// REQUIRES: IsHll(value), as below.
bool IsDenseHll(std::string_view value);

enum class HllChange : uint8_t { kUnchanged, kChanged, kDamaged };

// Adds an element.
HllChange AddToHll(std::string_view element, std::string* value);
// Raises one register to `count` (1..51).
HllChange RaiseHllRegister(uint32_t index, uint8_t count, std::string* value);
// False: it is damaged.
bool MakeHllDense(std::string* value);

// The runs of a sparse value as PFDEBUG shows them, damaged or not: "Z:16000 v:3,1 z:12".
// REQUIRES: !IsDenseHll(value).
std::string DescribeHllRuns(std::string_view value);

// Raises registers to those of `value`, where these are larger. False: it is damaged.
bool MergeHll(std::string_view value, HllRegisters* registers);
uint64_t CountHll(const HllRegisters& registers);

// The count that the value remembers, unless it is stale.
bool HllHasCount(std::string_view value, uint64_t* count);
void RememberHllCount(uint64_t count, std::string* value);
void ForgetHllCount(std::string* value);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_HYPERLOGLOG_H_
