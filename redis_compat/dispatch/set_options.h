// Deadlines as commands give them, and the options of SET, read before the store is asked anything.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SET_OPTIONS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SET_OPTIONS_H_

#include <cstdint>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"

namespace onetrip {

enum class ExpiryUnit : uint8_t {
  kNone,
  kSeconds,           // EX: from now.
  kMilliseconds,      // PX: from now.
  kUnixSeconds,       // EXAT.
  kUnixMilliseconds,  // PXAT.
};

struct SetOptions {
  bool only_if_missing = false;  // NX
  bool only_if_present = false;  // XX
  bool answer_previous = false;  // GET
  bool keep_deadline = false;    // KEEPTTL
  ExpiryUnit unit = ExpiryUnit::kNone;
  std::string_view expiry = {};  // Not yet read as a number.

  // True if the outcome does not depend on the stored value: a plain write will do.
  [[nodiscard]] bool is_blind() const {
    return !only_if_missing && !only_if_present && !answer_previous && !keep_deadline;
  }
};

// Reads the arguments behind the value.
void ReadSetOptions(ArgumentReader& arguments, SetOptions* options);

// Takes an option that says when a key expires, if one comes next that does not contradict the one
// before: the same unit may come twice, the last one counts. The number is read later, as Redis
// does, by ReadDeadline().
bool TakeExpiryOption(ArgumentReader& arguments, ExpiryUnit* unit, std::string_view* expiry);

// True if the number counts from now.
constexpr bool IsFromNow(ExpiryUnit unit) {
  return unit == ExpiryUnit::kSeconds || unit == ExpiryUnit::kMilliseconds;
}
constexpr bool IsInSeconds(ExpiryUnit unit) {
  return unit == ExpiryUnit::kSeconds || unit == ExpiryUnit::kUnixSeconds;
}

// Turns an expiry into a deadline in unix milliseconds; 0 for a unit of kNone. Returns null, or the
// error to answer: `invalid` for a number that is no time to come. `now_ms` is the cluster clock.
const char* ReadDeadline(ExpiryUnit unit, std::string_view expiry, uint64_t now_ms,
                         const char* invalid, uint64_t* deadline_ms);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SET_OPTIONS_H_
