// The offsets that commands on bits take.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_

#include <cstdint>
#include <string_view>

#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {

// Reads an offset that lies within the largest string there may be. `times`: with a '#' in front
// the number counts fields of so many bits; 0: no '#' is taken. False: the error is answered.
inline bool ReadBitOffset(CommandContext& context, std::string_view text, uint64_t* bit,
                          uint32_t times = 0) {
  const bool counts_fields = times != 0 && text.starts_with('#');
  const auto number = ParseInt64(counts_fields ? text.substr(1) : text);
  int64_t offset = number.value_or(-1);
  if (!number ||
      (counts_fields && __builtin_mul_overflow(offset, static_cast<int64_t>(times), &offset)) ||
      offset < 0 || offset / 8 >= context.hooks.config().bulk_max_bytes()) {
    context.out.Error("ERR bit offset is not an integer or out of range");
    return false;
  }
  *bit = static_cast<uint64_t>(offset);
  return true;
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_BIT_OFFSET_H_
