// The handlers of the commands on lists. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// list_read_commands.cc
Task<void> LLenCommand(CommandContext& context);
Task<void> LRangeCommand(CommandContext& context);
Task<void> LIndexCommand(CommandContext& context);
Task<void> LPosCommand(CommandContext& context);

// list_write_commands.cc
Task<void> LPushCommand(CommandContext& context);
Task<void> RPushCommand(CommandContext& context);
Task<void> LPushXCommand(CommandContext& context);
Task<void> RPushXCommand(CommandContext& context);
Task<void> LSetCommand(CommandContext& context);
Task<void> LInsertCommand(CommandContext& context);
Task<void> LRemCommand(CommandContext& context);
Task<void> LTrimCommand(CommandContext& context);

// list_pop_commands.cc
Task<void> LPopCommand(CommandContext& context);
Task<void> RPopCommand(CommandContext& context);
Task<void> LMPopCommand(CommandContext& context);
Task<void> BLPopCommand(CommandContext& context);
Task<void> BRPopCommand(CommandContext& context);
Task<void> BLMPopCommand(CommandContext& context);

// list_move_commands.cc
Task<void> LMoveCommand(CommandContext& context);
Task<void> RPopLPushCommand(CommandContext& context);
Task<void> BLMoveCommand(CommandContext& context);
Task<void> BRPopLPushCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_HANDLERS_H_
