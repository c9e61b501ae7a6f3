// How the values of configuration parameters are read: one checker per kind.
//
// Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_
#define ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onetrip {

enum class ConfigKind : uint8_t {
  kText,         // Anything.
  kYesNo,        // "yes" or "no".
  kInteger,      // Decimal, between minimum and maximum.
  kMemory,       // Bytes, also written "64mb"; shown in bytes.
  kEnum,         // One of `choices`, which are separated by ", ".
  kSave,         // Pairs of seconds and changes.
  kKeyEvents,    // Letters of notify-keyspace-events.
  kOutputLimits  // Class, hard limit, soft limit, seconds; of one class or several.
};

struct ConfigRule {
  ConfigKind kind = ConfigKind::kText;
  int64_t minimum = 0;  // Of kInteger and kMemory, both included.
  int64_t maximum = INT64_MAX;
  std::string_view choices = {};  // Of kEnum.
  // Of kInteger: what is in range, but not between these, counts as the nearer one.
  int64_t nearest_minimum = INT64_MIN;
  int64_t nearest_maximum = INT64_MAX;
};

// A number of bytes with an optional unit: b, k (1000), kb (1024), m, mb, g, gb in any case.
// Without digits it is 0, as Redis has it. Empty for anything else.
std::optional<int64_t> ParseMemory(std::string_view text);

// Checks `value` against `rule` and brings it to the form CONFIG GET shows. Returns false with
// Redis's words in `error`. `current`: the parameter's value; what `value` does not name stays.
bool CheckConfigValue(const ConfigRule& rule, std::string_view current, std::string_view value,
                      std::string* canonical, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_
