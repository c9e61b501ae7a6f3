// The handlers of the commands about the server; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// observation_commands.cc
void SlowLogGetCommand(CommandContext& context);
void SlowLogLenCommand(CommandContext& context);
void SlowLogResetCommand(CommandContext& context);
void LatencyLatestCommand(CommandContext& context);
void LatencyHistoryCommand(CommandContext& context);
void LatencyGraphCommand(CommandContext& context);
void LatencyResetCommand(CommandContext& context);
void LatencyDoctorCommand(CommandContext& context);
void LatencyHistogramCommand(CommandContext& context);
void MonitorCommand(CommandContext& context);

// debug_commands.cc
Task<void> DebugCommand(CommandContext& context);

// service_commands.cc
void WaitCommand(CommandContext& context);
void RoleCommand(CommandContext& context);
void SaveCommand(CommandContext& context);
void BgSaveCommand(CommandContext& context);
void BgRewriteAofCommand(CommandContext& context);
void LastSaveCommand(CommandContext& context);
void ShutdownCommand(CommandContext& context);
void LolwutCommand(CommandContext& context);
void FunctionListCommand(CommandContext& context);
void FunctionStatsCommand(CommandContext& context);
void FunctionFlushCommand(CommandContext& context);
void FunctionDumpCommand(CommandContext& context);
void FunctionKillCommand(CommandContext& context);
void FunctionDeleteCommand(CommandContext& context);

// command_commands.cc
void AclWhoAmICommand(CommandContext& context);
void AclUsersCommand(CommandContext& context);
void AclCatCommand(CommandContext& context);
void CommandCommand(CommandContext& context);
void CommandCountCommand(CommandContext& context);
void CommandInfoCommand(CommandContext& context);
void CommandListCommand(CommandContext& context);
void CommandDocsCommand(CommandContext& context);
void CommandGetKeysCommand(CommandContext& context);
void CommandGetKeysAndFlagsCommand(CommandContext& context);

// server_commands.cc
void ConfigGetCommand(CommandContext& context);
void ConfigSetCommand(CommandContext& context);
void ConfigResetStatCommand(CommandContext& context);
void ConfigRewriteCommand(CommandContext& context);
void TimeCommand(CommandContext& context);
Task<void> InfoCommand(CommandContext& context);
Task<void> DbSizeCommand(CommandContext& context);
Task<void> FlushAllCommand(CommandContext& context);
Task<void> FlushDbCommand(CommandContext& context);
Task<void> SwapDbCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_HANDLERS_H_
