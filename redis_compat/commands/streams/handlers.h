// The handlers of the commands on streams. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// stream_write_commands.cc
Task<void> XAddCommand(CommandContext& context);
Task<void> XDelCommand(CommandContext& context);
Task<void> XTrimCommand(CommandContext& context);
Task<void> XSetIdCommand(CommandContext& context);

// stream_read_commands.cc
Task<void> XLenCommand(CommandContext& context);
Task<void> XRangeCommand(CommandContext& context);
Task<void> XRevRangeCommand(CommandContext& context);
Task<void> XReadCommand(CommandContext& context);

// stream_group_commands.cc
Task<void> XGroupCreateCommand(CommandContext& context);
Task<void> XGroupSetIdCommand(CommandContext& context);
Task<void> XGroupDestroyCommand(CommandContext& context);
Task<void> XGroupCreateConsumerCommand(CommandContext& context);
Task<void> XGroupDelConsumerCommand(CommandContext& context);

// stream_delivery_commands.cc
Task<void> XReadGroupCommand(CommandContext& context);
Task<void> XAckCommand(CommandContext& context);

// stream_claim_commands.cc
Task<void> XClaimCommand(CommandContext& context);
Task<void> XAutoClaimCommand(CommandContext& context);

// stream_pending_commands.cc
Task<void> XPendingCommand(CommandContext& context);

// stream_info_commands.cc
Task<void> XInfoStreamCommand(CommandContext& context);
Task<void> XInfoGroupsCommand(CommandContext& context);
Task<void> XInfoConsumersCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_HANDLERS_H_
