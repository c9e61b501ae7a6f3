#include "redis_compat/dispatch/timeout_argument.h"

#include "redis_compat/protocol/numbers.h"

namespace onetrip {

std::optional<uint64_t> ReadTimeoutMs(CommandContext& context, std::string_view text) {
  const auto timeout_ms = ParseInt64(text);
  if (!timeout_ms) {
    context.out.Error("ERR timeout is not an integer or out of range");
    return std::nullopt;
  }
  if (*timeout_ms < 0) {
    context.out.Error("ERR timeout is negative");
    return std::nullopt;
  }
  return static_cast<uint64_t>(*timeout_ms);
}

}  // namespace onetrip
