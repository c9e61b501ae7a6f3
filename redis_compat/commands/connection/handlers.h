// The handlers of the commands about the connection; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_CONNECTION_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_CONNECTION_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// connection_commands.cc
bool PingFast(CommandContext& context);
Task<void> PingCommand(CommandContext& context);
bool EchoFast(CommandContext& context);
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

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_CONNECTION_HANDLERS_H_
