#include "redis_compat/set_options.h"

#include <array>

#include "redis_compat/ascii.h"
#include "redis_compat/numbers.h"
#include "redis_compat/reply_status.h"

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

constexpr char kInvalid[] = "ERR invalid expire time in 'set' command";

ExpiryUnit UnitOf(std::string_view word) {
  for (const UnitName& known : kUnitNames) {
    if (EqualsIgnoreCase(word, known.name)) return known.unit;
  }
  return ExpiryUnit::kNone;
}

}  // namespace

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
      const ExpiryUnit unit = UnitOf(word);
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

const char* ReadDeadline(const SetOptions& options, uint64_t now_ms, uint64_t* deadline_ms) {
  constexpr int64_t kMsPerSecond = 1000;
  *deadline_ms = 0;
  if (options.unit == ExpiryUnit::kNone) {
    return nullptr;
  }
  const auto amount = ParseInt64(options.expiry);
  if (!amount) {
    return kNotIntegerError;
  }
  int64_t at_ms = *amount;
  if (at_ms <= 0) {
    return kInvalid;
  }
  const bool in_seconds =
      options.unit == ExpiryUnit::kSeconds || options.unit == ExpiryUnit::kUnixSeconds;
  if (in_seconds && __builtin_mul_overflow(at_ms, kMsPerSecond, &at_ms)) {
    return kInvalid;
  }
  const bool from_now =
      options.unit == ExpiryUnit::kSeconds || options.unit == ExpiryUnit::kMilliseconds;
  if (from_now && __builtin_add_overflow(at_ms, static_cast<int64_t>(now_ms), &at_ms)) {
    return kInvalid;
  }
  *deadline_ms = static_cast<uint64_t>(at_ms);
  return nullptr;
}

}  // namespace onetrip
