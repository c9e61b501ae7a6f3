// The handlers of the commands on strings; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// lcs_command.cc
Task<void> LcsCommand(CommandContext& context);

// string_commands.cc
Task<void> GetCommand(CommandContext& context);
bool GetFast(CommandContext& context);
bool SetFast(CommandContext& context);
Task<void> SetCommand(CommandContext& context);
Task<void> SetExCommand(CommandContext& context);
Task<void> PSetExCommand(CommandContext& context);
Task<void> SetNxCommand(CommandContext& context);
Task<void> GetSetCommand(CommandContext& context);
Task<void> GetDelCommand(CommandContext& context);
Task<void> MGetCommand(CommandContext& context);
Task<void> MSetCommand(CommandContext& context);

// string_edit_commands.cc
Task<void> StrLenCommand(CommandContext& context);
Task<void> GetRangeCommand(CommandContext& context);
Task<void> SetRangeCommand(CommandContext& context);
Task<void> AppendCommand(CommandContext& context);

// getex_command.cc
Task<void> GetExCommand(CommandContext& context);

// msetnx_command.cc
Task<void> MSetNxCommand(CommandContext& context);

// bit_commands.cc
Task<void> SetBitCommand(CommandContext& context);
Task<void> GetBitCommand(CommandContext& context);
Task<void> BitCountCommand(CommandContext& context);
Task<void> BitPosCommand(CommandContext& context);
Task<void> BitOpCommand(CommandContext& context);

// bitfield_commands.cc
Task<void> BitFieldCommand(CommandContext& context);
Task<void> BitFieldRoCommand(CommandContext& context);

// counter_commands.cc
Task<void> IncrCommand(CommandContext& context);
Task<void> DecrCommand(CommandContext& context);
Task<void> IncrByCommand(CommandContext& context);
Task<void> DecrByCommand(CommandContext& context);
Task<void> IncrByFloatCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STRINGS_HANDLERS_H_
