#include "redis_compat/dispatch/set_options.h"

#include <array>

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

bool TakeExpiryOption(ArgumentReader& arguments, ExpiryUnit* unit, std::string_view* expiry) {
  for (const UnitName& known : kUnitNames) {
    const bool fits = *unit == ExpiryUnit::kNone || *unit == known.unit;
    if (!fits || !arguments.Value(known.name, expiry)) continue;
    *unit = known.unit;
    return true;
  }
  return false;
}

void ReadSetOptions(ArgumentReader& arguments, SetOptions* options) {
  while (arguments.HasMore()) {
    const bool has_unit = options->unit != ExpiryUnit::kNone;
    const bool known =
        (!options->only_if_present && arguments.Flag("NX", &options->only_if_missing)) ||
        (!options->only_if_missing && arguments.Flag("XX", &options->only_if_present)) ||
        arguments.Flag("GET", &options->answer_previous) ||
        (!has_unit && arguments.Flag("KEEPTTL", &options->keep_deadline)) ||
        (!options->keep_deadline && TakeExpiryOption(arguments, &options->unit, &options->expiry));
    if (!known) arguments.SyntaxError();
  }
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
