// Reading a timeout from an argument.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_TIMEOUT_ARGUMENT_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_TIMEOUT_ARGUMENT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// A timeout in milliseconds. Empty: it has answered what is wrong.
std::optional<uint64_t> ReadTimeoutMs(CommandContext& context, std::string_view text);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_TIMEOUT_ARGUMENT_H_
