// The handlers of the commands on sets. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SETS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SETS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// set_read_commands.cc
Task<void> SIsMemberCommand(CommandContext& context);
Task<void> SMIsMemberCommand(CommandContext& context);
Task<void> SCardCommand(CommandContext& context);
Task<void> SMembersCommand(CommandContext& context);
Task<void> SRandMemberCommand(CommandContext& context);
Task<void> SScanCommand(CommandContext& context);

// set_write_commands.cc
Task<void> SAddCommand(CommandContext& context);
Task<void> SRemCommand(CommandContext& context);
Task<void> SPopCommand(CommandContext& context);
Task<void> SMoveCommand(CommandContext& context);

// set_algebra_commands.cc
Task<void> SInterCommand(CommandContext& context);
Task<void> SInterCardCommand(CommandContext& context);
Task<void> SInterStoreCommand(CommandContext& context);
Task<void> SUnionCommand(CommandContext& context);
Task<void> SUnionStoreCommand(CommandContext& context);
Task<void> SDiffCommand(CommandContext& context);
Task<void> SDiffStoreCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SETS_HANDLERS_H_
