// The handlers of the commands on sorted sets. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SORTED_SETS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SORTED_SETS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// sorted_set_member_commands.cc
Task<void> ZAddCommand(CommandContext& context);
Task<void> ZIncrByCommand(CommandContext& context);
Task<void> ZRemCommand(CommandContext& context);
Task<void> ZScoreCommand(CommandContext& context);
Task<void> ZMScoreCommand(CommandContext& context);
Task<void> ZCardCommand(CommandContext& context);
Task<void> ZRankCommand(CommandContext& context);
Task<void> ZRevRankCommand(CommandContext& context);
Task<void> ZRandMemberCommand(CommandContext& context);
Task<void> ZScanCommand(CommandContext& context);

// sorted_set_range_commands.cc
Task<void> ZRangeCommand(CommandContext& context);
Task<void> ZRangeStoreCommand(CommandContext& context);
Task<void> ZRangeByScoreCommand(CommandContext& context);
Task<void> ZRevRangeByScoreCommand(CommandContext& context);
Task<void> ZRangeByLexCommand(CommandContext& context);
Task<void> ZRevRangeByLexCommand(CommandContext& context);
Task<void> ZRevRangeCommand(CommandContext& context);
Task<void> ZCountCommand(CommandContext& context);
Task<void> ZLexCountCommand(CommandContext& context);
Task<void> ZRemRangeByRankCommand(CommandContext& context);
Task<void> ZRemRangeByScoreCommand(CommandContext& context);
Task<void> ZRemRangeByLexCommand(CommandContext& context);

// sorted_set_pop_commands.cc
Task<void> ZPopMinCommand(CommandContext& context);
Task<void> ZPopMaxCommand(CommandContext& context);
Task<void> ZMPopCommand(CommandContext& context);
Task<void> BZPopMinCommand(CommandContext& context);
Task<void> BZPopMaxCommand(CommandContext& context);
Task<void> BZMPopCommand(CommandContext& context);

// sorted_set_algebra_commands.cc
Task<void> ZUnionCommand(CommandContext& context);
Task<void> ZInterCommand(CommandContext& context);
Task<void> ZInterCardCommand(CommandContext& context);
Task<void> ZDiffCommand(CommandContext& context);
Task<void> ZUnionStoreCommand(CommandContext& context);
Task<void> ZInterStoreCommand(CommandContext& context);
Task<void> ZDiffStoreCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SORTED_SETS_HANDLERS_H_
