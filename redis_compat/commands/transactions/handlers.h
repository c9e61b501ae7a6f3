// The handlers of the commands about transactions; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// transaction_commands.cc
void MultiCommand(CommandContext& context);
void DiscardCommand(CommandContext& context);
void UnwatchCommand(CommandContext& context);
Task<void> WatchCommand(CommandContext& context);
Task<void> ExecCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_HANDLERS_H_
