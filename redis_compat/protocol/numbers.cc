#include "redis_compat/protocol/numbers.h"

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

namespace onetrip {

std::optional<int64_t> ParseInt64(std::string_view text) {
  if (text.empty() || text.size() > kInt64TextMax) {
    return std::nullopt;
  }
  const bool negative = text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty()) {
    return std::nullopt;
  }
  // A leading zero is only canonical as "0" itself.
  if (digits.front() == '0' && text.size() > 1) {
    return std::nullopt;
  }
  uint64_t magnitude = 0;
  for (const char digit : digits) {
    const auto amount = static_cast<uint64_t>(static_cast<unsigned char>(digit) - '0');
    if (amount > 9 || __builtin_mul_overflow(magnitude, uint64_t{10}, &magnitude) ||
        __builtin_add_overflow(magnitude, amount, &magnitude)) {
      return std::nullopt;
    }
  }
  constexpr uint64_t kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (magnitude > kLargest + (negative ? 1 : 0)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<long double> ParseLongDouble(std::string_view text) {
  char copy[kLongDoubleTextMax];
  if (text.empty() || text.size() >= sizeof(copy)) {
    return std::nullopt;
  }
  // strtold skips blanks in front, which Redis refuses.
  if (std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    return std::nullopt;
  }
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  errno = 0;
  char* end = nullptr;
  const long double value = std::strtold(copy, &end);
  if (static_cast<size_t>(end - copy) != text.size() || errno == EINVAL || std::isnan(value)) {
    return std::nullopt;
  }
  // A range error is fatal only where the result says nothing; a subnormal is a fine answer.
  if (errno == ERANGE && (std::isinf(value) || value == 0)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    return std::nullopt;
  }
  const std::string copy(text);
  errno = 0;
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

size_t FormatLongDouble(long double value, char* out) {
  if (std::isinf(value)) {
    const std::string_view text = value > 0 ? "inf" : "-inf";
    std::memcpy(out, text.data(), text.size());
    return text.size();
  }
  // 17 digits behind the point make most short decimals come out as they went in.
  auto size = static_cast<size_t>(std::snprintf(out, kLongDoubleTextMax, "%.17Lf", value));
  while (out[size - 1] == '0') {
    --size;
  }
  if (out[size - 1] == '.') {
    --size;
  }
  if (size == 2 && out[0] == '-' && out[1] == '0') {
    out[0] = '0';
    size = 1;
  }
  return size;
}

size_t FormatDouble(double value, char* out) {
  if (std::isinf(value) || std::isnan(value)) {
    const std::string_view text = std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
    std::memcpy(out, text.data(), text.size());
    return text.size();
  }
  return static_cast<size_t>(std::snprintf(out, kDoubleTextMax, "%.17g", value));
}

}  // namespace onetrip
