#include "redis_compat/dispatch/database_index.h"

#include <limits>

namespace onetrip {

uint32_t ReadDatabaseIndex(ArgumentReader& arguments, std::string_view text, int64_t databases) {
  constexpr IntegerRange kInt{
      std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(),
      "ERR value is out of range, value must between -2147483648 and 2147483647"};
  const int64_t index = arguments.ReadInteger(text, kInt);
  arguments.Require(index >= 0 && index < databases, "ERR DB index is out of range");
  return arguments.ok() ? static_cast<uint32_t>(index) : 0;
}

}  // namespace onetrip
