#include "redis_compat/dispatch/database_index.h"

#include <limits>

#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {

bool ReadDatabaseIndex(CommandContext& context, std::string_view text, uint32_t* database) {
  const auto index = ParseInt64(text);
  if (!index) {
    context.out.Error(kNotIntegerError);
    return false;
  }
  constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
  if (*index < kIntMin || *index > kIntMax) {
    context.out.Error("ERR value is out of range, value must between -2147483648 and 2147483647");
    return false;
  }
  if (*index < 0 || *index >= context.hooks.config().databases()) {
    context.out.Error("ERR DB index is out of range");
    return false;
  }
  *database = static_cast<uint32_t>(*index);
  return true;
}

}  // namespace onetrip
