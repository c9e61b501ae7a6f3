// The handlers of all commands, by family; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_H_

#include "client_core/coro/task.h"
#include "redis_compat/command_context.h"

namespace onetrip {

// connection_commands.cc
bool PingAtOnce(CommandContext& context);
Task<void> PingCommand(CommandContext& context);
bool EchoAtOnce(CommandContext& context);
Task<void> EchoCommand(CommandContext& context);
void QuitCommand(CommandContext& context);
void ResetCommand(CommandContext& context);
void HelloCommand(CommandContext& context);
void AuthCommand(CommandContext& context);
void SelectCommand(CommandContext& context);

// client_commands.cc
void ClientIdCommand(CommandContext& context);
void ClientGetNameCommand(CommandContext& context);
void ClientSetNameCommand(CommandContext& context);
void ClientSetInfoCommand(CommandContext& context);
void ClientInfoCommand(CommandContext& context);
void ClientReplyCommand(CommandContext& context);
void ClientNoEvictCommand(CommandContext& context);
Task<void> ClientListCommand(CommandContext& context);
Task<void> ClientKillCommand(CommandContext& context);

// client_control_commands.cc
void ClientPauseCommand(CommandContext& context);
void ClientUnpauseCommand(CommandContext& context);
void ClientUnblockCommand(CommandContext& context);
void ClientGetRedirCommand(CommandContext& context);
void ClientTrackingInfoCommand(CommandContext& context);
void ClientNoTouchCommand(CommandContext& context);

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

// cluster_commands.cc
void ClusterCommand(CommandContext& context);

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

// transaction_commands.cc
void MultiCommand(CommandContext& context);
void DiscardCommand(CommandContext& context);
void UnwatchCommand(CommandContext& context);
Task<void> WatchCommand(CommandContext& context);
Task<void> ExecCommand(CommandContext& context);

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

// lcs_command.cc
Task<void> LcsCommand(CommandContext& context);

// string_commands.cc
Task<void> GetCommand(CommandContext& context);
bool GetAtOnce(CommandContext& context);
bool SetAtOnce(CommandContext& context);
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

// hyperloglog_commands.cc
Task<void> PfAddCommand(CommandContext& context);
Task<void> PfCountCommand(CommandContext& context);
Task<void> PfDebugCommand(CommandContext& context);
Task<void> PfMergeCommand(CommandContext& context);

// counter_commands.cc
Task<void> IncrCommand(CommandContext& context);
Task<void> DecrCommand(CommandContext& context);
Task<void> IncrByCommand(CommandContext& context);
Task<void> DecrByCommand(CommandContext& context);
Task<void> IncrByFloatCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_H_
