// The offsets that commands on bits take.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_

#include <cstdint>
#include <limits>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/parameters.h"

namespace onetrip {

// Reads an offset that lies within the largest string there may be; 0 after an error. With a '#'
// in front the number counts fields of `times` bits; `times` of 0 refuses the '#'.
inline uint64_t ReadBitOffset(ArgumentReader& arguments, std::string_view text,
                              const ServerConfig& config, uint32_t times = 0) {
  static constexpr char kOffsetError[] = "ERR bit offset is not an integer or out of range";
  constexpr IntegerRange kOffset =
      RangeWithError(0, std::numeric_limits<int64_t>::max(), kOffsetError);
  const bool counts_fields = times != 0 && text.starts_with('#');
  int64_t offset = arguments.ReadInteger(counts_fields ? text.substr(1) : text, kOffset);
  const bool overflows =
      counts_fields && __builtin_mul_overflow(offset, static_cast<int64_t>(times), &offset);
  arguments.Require(!overflows && offset / 8 < config.bulk_max_bytes(), kOffsetError);
  return arguments.ok() ? static_cast<uint64_t>(offset) : 0;
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_
