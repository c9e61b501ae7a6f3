// The handlers of the commands on HyperLogLogs; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// hyperloglog_commands.cc
Task<void> PfAddCommand(CommandContext& context);
Task<void> PfCountCommand(CommandContext& context);
Task<void> PfDebugCommand(CommandContext& context);
Task<void> PfMergeCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HANDLERS_H_
