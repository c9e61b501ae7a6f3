// Dispatch: from argv to an answered command.
//
// BeginCommand() makes every check that needs no storage and runs commands that need none, or need
// not wait for it; what is left is one Task to await. Split in two so that the frontend's loop over
// a pipeline needs no coroutine frame of ours:
//
//   const CommandStart start = BeginCommand(context);
//   if (start == CommandStart::kAwait) {
//     co_await context.command->awaited(context);
//     EndCommand(context);
//   }
//   if (start == CommandStart::kQueue) co_await QueueCommand(context);
//
// Every command leaves exactly one reply in context.out (CLIENT REPLY OFF aside). Afterwards the
// frontend looks at session.close_after_reply. Thread rule: the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_DISPATCH_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_DISPATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/call_accounting.h"
#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/protocol/resp.h"

namespace onetrip {

enum class CommandStart : uint8_t {
  kAnswered,  // Done, statistics included.
  kAwait,     // Await context.command->awaited(context), then call EndCommand(context).
  kQueue,     // Await QueueCommand(context).
};

// The row of a call, the subcommand's where there is one; null for an unknown command.
// REQUIRES: argv is not empty.
const CommandRow* LookUpCommand(std::span<const std::string_view> argv);

// From now on replies go nowhere, as CLIENT REPLY asks for. REQUIRES: they do not yet.
void DropReplies(CommandContext& context);

// True if a call may change keys: EXEC does if a command in its queue does. For CLIENT PAUSE.
bool WritesSomething(const Session& session, std::span<const std::string_view> argv);

// Finds the command (unless the caller has put LookUpCommand()'s row into the context), checks
// name, subcommand, arity and authentication, and runs it if it needs no storage. REQUIRES:
// context.argv is not empty.
CommandStart BeginCommand(CommandContext& context);

// Accounts for a command that BeginCommand() left to be awaited.
void EndCommand(CommandContext& context);

// Ends taking a large command into the open transaction, as BeginCommand() does with others.
Task<void> QueueCommand(CommandContext& context);

// Runs a command that has been queued, in the reply mode of the EXEC around it, and tells how it
// went: AccountFor() is left to EXEC. REQUIRES: context.command is set and has passed
// BeginCommand()'s checks.
Task<void> RunInside(CommandContext& context, CallEnd* end);

// All of it in one Task, for callers to whom a coroutine frame does not matter.
Task<void> Dispatch(CommandContext& context);

// Answers bytes that are no RESP (parser.Next() said kError): the error goes into `out`, the
// statistics and the session, which asks to be closed.
void AnswerProtocolError(const RespParser& parser, Session& session, CommandStats& stats,
                         ReplyWriter& out);

// Kv fetches in two stages, each of which needs the one before it to have arrived.
enum class PrefetchStage : uint8_t { kLocation, kRecord };

// Tells the storage which keys a command will touch, so that their memory is on its way when the
// command runs; for the next commands of a pipeline. Does nothing for commands without keys. `row`
// is LookUpCommand(argv). `first`, the same in both stages, is left with argv[1] and its hash if
// that is a key: for CommandContext::first_key.
void PrefetchCommand(Kv& kv, uint32_t database, const CommandRow* row,
                     std::span<const std::string_view> argv, PrefetchStage stage, Key* first);

// The limits that the parser must enforce for this connection now.
RespLimits LimitsOf(const Session& session, const ServerConfig& config);

// A connection's first Session: authenticated if no password is set, as Redis decides it.
void InitializeSession(Session& session, uint64_t id, uint64_t now_ns, const ServerConfig& config);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_DISPATCH_H_
