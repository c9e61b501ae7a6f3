// The handlers of SORT and SORT_RO. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SORT_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SORT_HANDLERS_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// sort_commands.cc
Task<void> SortCommand(CommandContext& context);
Task<void> SortRoCommand(CommandContext& context);

// sort_options.cc: where the key that STORE names is in a call; 0: nowhere.
size_t FindSortTarget(std::span<const std::string_view> argv);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SORT_HANDLERS_H_
