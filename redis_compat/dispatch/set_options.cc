#include "redis_compat/dispatch/set_options.h"

#include <array>

#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

struct UnitName {
  std::string_view name;
  ExpiryUnit unit;
};
constexpr std::array<UnitName, 4> kUnitNames = {{{"EX", ExpiryUnit::kSeconds},
                                                 {"PX", ExpiryUnit::kMilliseconds},
                                                 {"EXAT", ExpiryUnit::kUnixSeconds},
                                                 {"PXAT", ExpiryUnit::kUnixMilliseconds}}};

}  // namespace

ExpiryUnit ExpiryUnitOf(std::string_view word) {
  for (const UnitName& known : kUnitNames) {
    if (EqualsIgnoreCase(word, known.name)) return known.unit;
  }
  return ExpiryUnit::kNone;
}

bool ReadSetOptions(std::span<const std::string_view> arguments, SetOptions* options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (EqualsIgnoreCase(word, "NX") && !options->only_if_present) {
      options->only_if_missing = true;
    } else if (EqualsIgnoreCase(word, "XX") && !options->only_if_missing) {
      options->only_if_present = true;
    } else if (EqualsIgnoreCase(word, "GET")) {
      options->answer_previous = true;
    } else if (EqualsIgnoreCase(word, "KEEPTTL") && options->unit == ExpiryUnit::kNone) {
      options->keep_deadline = true;
    } else {
      const ExpiryUnit unit = ExpiryUnitOf(word);
      // The same unit may come twice, the last one counts; two different ones contradict.
      const bool fits = options->unit == ExpiryUnit::kNone || options->unit == unit;
      if (unit == ExpiryUnit::kNone || !fits || options->keep_deadline ||
          i + 1 == arguments.size()) {
        return false;
      }
      options->unit = unit;
      options->expiry = arguments[++i];
    }
  }
  return true;
}

const char* ReadDeadline(ExpiryUnit unit, std::string_view expiry, uint64_t now_ms,
                         const char* invalid, uint64_t* deadline_ms) {
  constexpr int64_t kMsPerSecond = 1000;
  *deadline_ms = 0;
  if (unit == ExpiryUnit::kNone) {
    return nullptr;
  }
  const auto amount = ParseInt64(expiry);
  if (!amount) {
    return kNotIntegerError;
  }
  int64_t at_ms = *amount;
  if (at_ms <= 0) {
    return invalid;
  }
  if (IsInSeconds(unit) && __builtin_mul_overflow(at_ms, kMsPerSecond, &at_ms)) {
    return invalid;
  }
  if (IsFromNow(unit) && __builtin_add_overflow(at_ms, static_cast<int64_t>(now_ms), &at_ms)) {
    return invalid;
  }
  *deadline_ms = static_cast<uint64_t>(at_ms);
  return nullptr;
}

}  // namespace onetrip
