// The cursor and the options of SCAN and its relatives.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SCAN_OPTIONS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SCAN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"

namespace onetrip {

// The options that tell which keys or elements a walk shows.
struct ScanOptions {
  std::string_view pattern = "*";
  std::optional<std::string_view> type = std::nullopt;  // none: any
  int64_t count = 10;

  // True if `name` fits the pattern.
  [[nodiscard]] bool Fits(std::string_view name) const;
};

// Takes a cursor as Redis reads it, by strtoul; 0 after an error.
uint64_t TakeScanCursor(ArgumentReader& arguments);

enum class ScanOf : uint8_t { kKeys, kElements };
// Takes all options that are left. Only keys have types.
void ReadScanOptions(ArgumentReader& arguments, ScanOf of, ScanOptions* options);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SCAN_OPTIONS_H_
