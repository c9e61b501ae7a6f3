// The options of SET, read and checked before the store is asked anything.
#ifndef ONETRIP_REDIS_COMPAT_SET_OPTIONS_H_
#define ONETRIP_REDIS_COMPAT_SET_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string_view>

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

  // Whether the outcome does not depend on what is stored: a plain write will do.
  [[nodiscard]] bool is_blind() const {
    return !only_if_missing && !only_if_present && !answer_previous && !keep_deadline;
  }
};

// Reads the arguments behind the value. False: a syntax error.
bool ReadSetOptions(std::span<const std::string_view> arguments, SetOptions* options);

// Turns the expiry into a deadline in unix milliseconds; 0 if there is none. Returns null, or the
// error to answer. `now_ms` is the cluster clock.
const char* ReadDeadline(const SetOptions& options, uint64_t now_ms, uint64_t* deadline_ms);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_SET_OPTIONS_H_
