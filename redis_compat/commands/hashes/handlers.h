// The handlers of the commands on hashes. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_HASHES_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_HASHES_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// hash_read_commands.cc
Task<void> HGetCommand(CommandContext& context);
Task<void> HMGetCommand(CommandContext& context);
Task<void> HGetAllCommand(CommandContext& context);
Task<void> HKeysCommand(CommandContext& context);
Task<void> HValsCommand(CommandContext& context);
Task<void> HLenCommand(CommandContext& context);
Task<void> HExistsCommand(CommandContext& context);
Task<void> HStrLenCommand(CommandContext& context);
Task<void> HRandFieldCommand(CommandContext& context);
Task<void> HScanCommand(CommandContext& context);

// hash_write_commands.cc
Task<void> HSetCommand(CommandContext& context);
Task<void> HMSetCommand(CommandContext& context);
Task<void> HSetNxCommand(CommandContext& context);
Task<void> HDelCommand(CommandContext& context);
Task<void> HIncrByCommand(CommandContext& context);
Task<void> HIncrByFloatCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_HASHES_HANDLERS_H_
