// The handlers of the commands on keys of any type; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_KEYS_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_KEYS_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// generic_commands.cc
Task<void> DelCommand(CommandContext& context);
Task<void> ExistsCommand(CommandContext& context);
Task<void> TypeCommand(CommandContext& context);
Task<void> TtlCommand(CommandContext& context);
Task<void> PttlCommand(CommandContext& context);

// expiry_commands.cc
Task<void> ExpireCommand(CommandContext& context);
Task<void> PExpireCommand(CommandContext& context);
Task<void> ExpireAtCommand(CommandContext& context);
Task<void> PExpireAtCommand(CommandContext& context);
Task<void> ExpireTimeCommand(CommandContext& context);
Task<void> PExpireTimeCommand(CommandContext& context);
Task<void> PersistCommand(CommandContext& context);

// scan_commands.cc
Task<void> ScanCommand(CommandContext& context);
Task<void> KeysCommand(CommandContext& context);
Task<void> RandomKeyCommand(CommandContext& context);

// move_commands.cc
Task<void> RenameCommand(CommandContext& context);
Task<void> RenameNxCommand(CommandContext& context);
Task<void> MoveCommand(CommandContext& context);
Task<void> CopyCommand(CommandContext& context);

// dump_commands.cc
Task<void> DumpCommand(CommandContext& context);
Task<void> RestoreCommand(CommandContext& context);

// object_commands.cc
Task<void> ObjectEncodingCommand(CommandContext& context);
Task<void> ObjectRefCountCommand(CommandContext& context);
Task<void> ObjectIdleTimeCommand(CommandContext& context);
Task<void> ObjectFreqCommand(CommandContext& context);
Task<void> MemoryUsageCommand(CommandContext& context);
Task<void> MemoryStatsCommand(CommandContext& context);
void MemoryDoctorCommand(CommandContext& context);
void MemoryMallocStatsCommand(CommandContext& context);
void MemoryPurgeCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_KEYS_HANDLERS_H_
