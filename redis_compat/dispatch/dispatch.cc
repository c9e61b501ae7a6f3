#include "redis_compat/dispatch/dispatch.h"

#include <algorithm>
#include <string>

#include "client_core/kv/kv.h"
#include "redis_compat/dispatch/call_accounting.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

// How much of a name or an argument an error repeats.
constexpr size_t kQuotedMax = 128;

std::string_view Quoted(std::string_view text) { return UntilNul(text.substr(0, kQuotedMax)); }

std::string UnknownCommandError(std::span<const std::string_view> argv) {
  std::string arguments;
  for (size_t i = 1; i < argv.size() && arguments.size() < kQuotedMax; ++i) {
    const std::string_view quoted = Quoted(argv[i]).substr(0, kQuotedMax - arguments.size());
    arguments.append("'").append(quoted).append("' ");
  }
  std::string message = "ERR unknown command '";
  message.append(Quoted(argv[0])).append("', with args beginning with: ").append(arguments);
  return message;
}

std::string UnknownSubcommandError(std::span<const std::string_view> argv) {
  std::string message = "ERR unknown subcommand '";
  message.append(Quoted(argv[1])).append("'. Try ").append(ToUpperAscii(argv[0]));
  return message.append(" HELP.");
}

// A browser that was lured into speaking to us: hang up without a word.
bool IsCrossProtocol(std::string_view name) {
  return EqualsIgnoreCase(name, "post") || EqualsIgnoreCase(name, "host:");
}

// CLIENT REPLY SKIP drops the reply of the one command behind it.
void AdvanceReplyMode(Session& session) {
  if (session.reply_mode == ReplyMode::kSkip) {
    session.reply_mode = ReplyMode::kOn;
  } else if (session.reply_mode == ReplyMode::kSkipNext) {
    session.reply_mode = ReplyMode::kSkip;
  }
  if (session.dropped_replies != nullptr) {
    session.dropped_replies->Clear();
  }
}

std::string ExecAbortError(std::string_view why) {
  constexpr std::string_view kGenericWord = "ERR ";
  if (why.starts_with(kGenericWord)) {
    why.remove_prefix(kGenericWord.size());
  }
  std::string message = "EXECABORT Transaction discarded because of: ";
  return message.append(why);
}

// Ends a command that never reached its handler.
CommandStart Refuse(CommandContext& context, std::string_view error) {
  Transaction* const transaction = context.session.transaction.get();
  if (transaction != nullptr && transaction->open) {
    transaction->refused = true;
  }
  if (context.command != nullptr) {
    context.stats.CountRejected(CommandId(*context.command));
  }
  if (context.command != nullptr && (context.command->flags & kRunsQueue) != 0) {
    context.session.transaction.reset();
    context.out.Error(ExecAbortError(error));
  } else {
    context.out.Error(error);
  }
  context.stats.CountError(context.out.last_error_word());
  ++context.session.errors;
  AdvanceReplyMode(context.session);
  return CommandStart::kAnswered;
}

void AnswerQueued(CommandContext& context) {
  context.out.Simple("QUEUED");
  AdvanceReplyMode(context.session);
}

// Takes a command into the open transaction.
CommandStart Queue(CommandContext& context, Transaction& transaction) {
  if ((context.command->flags & kNoMulti) != 0) {
    return Refuse(context, "ERR Command not allowed inside a transaction");
  }
  if (!transaction.Queue(context.command, context.argv)) return Refuse(context, kOomError);
  if (transaction.queue.back().CopyNext(context.argv)) return CommandStart::kQueue;
  AnswerQueued(context);
  return CommandStart::kAnswered;
}

CommandStart RefuseUnknown(CommandContext& context) {
  const std::string_view name = context.argv[0];
  if (IsCrossProtocol(name)) {
    context.session.close_after_reply = true;
    return CommandStart::kAnswered;
  }
  const CommandRow* const row = FindCommand(name);
  return Refuse(context, row != nullptr ? UnknownSubcommandError(context.argv)
                                        : UnknownCommandError(context.argv));
}

}  // namespace

void DropReplies(CommandContext& context) {
  Session& session = context.session;
  if (session.dropped_replies == nullptr) {
    session.dropped_replies = std::make_unique<OutputBuffer>();
  }
  context.dropped_from = context.out.Redirect(session.dropped_replies.get());
}

const CommandRow* LookUpCommand(std::span<const std::string_view> argv) {
  const CommandRow* const row = FindCommand(argv[0]);
  if (row != nullptr && row->is_container() && argv.size() > 1) {
    return FindSubcommand(*row, argv[1]);
  }
  return row;
}

namespace {

bool Writes(const CommandRow& row) { return (row.flags & (kWrite | kMayWrite)) != 0; }

}  // namespace

bool WritesSomething(const Session& session, std::span<const std::string_view> argv) {
  const CommandRow* const row = LookUpCommand(argv);
  if (row == nullptr) {
    return false;
  }
  if ((row->flags & kRunsQueue) == 0 || session.transaction == nullptr) {
    return Writes(*row);
  }
  const auto& queue = session.transaction->queue;
  return std::any_of(queue.begin(), queue.end(),
                     [](const QueuedCommand& queued) { return Writes(*queued.row()); });
}

CommandStart BeginCommand(CommandContext& context) {
  Session& session = context.session;
  if (session.reply_mode == ReplyMode::kOff || session.reply_mode == ReplyMode::kSkip)
      [[unlikely]] {
    DropReplies(context);
  }
  const std::span<const std::string_view> argv = context.argv;
  const CommandRow* const row = context.command != nullptr ? context.command : LookUpCommand(argv);
  session.last_command = row;  // An unknown one too: CLIENT LIST shows it as NULL.
  if (row == nullptr) [[unlikely]] {
    return RefuseUnknown(context);
  }
  context.command = row;
  if (!row->AcceptsArgumentCount(argv.size())) [[unlikely]] {
    return Refuse(context, ArityError(*row));
  }
  if (!session.authenticated && (row->flags & kNoAuth) == 0 &&
      context.hooks.config().password_required()) [[unlikely]] {
    return Refuse(context, "NOAUTH Authentication required.");
  }
  if (session.monitors && (row->flags & (kWrite | kReadOnly)) != 0) [[unlikely]] {
    return Refuse(context, "ERR Replica can't interact with the keyspace");
  }

  ++session.commands;
  if (session.transaction != nullptr && session.transaction->open && (row->flags & kNotQueued) == 0)
      [[unlikely]] {
    return Queue(context, *session.transaction);
  }
  BeginAccounting(context);
  if (row->immediate != nullptr) {
    row->immediate(context);
  } else if (row->fast == nullptr || !row->fast(context)) {
    return CommandStart::kAwait;
  }
  EndCommand(context);
  return CommandStart::kAnswered;
}

Task<void> QueueCommand(CommandContext& context) {
  do {
    co_await context.kv.Yield();
  } while (context.session.transaction->queue.back().CopyNext(context.argv));
  AnswerQueued(context);
}

void EndCommand(CommandContext& context) {
  EndAccounting(context);
  if (context.session.reply_mode != ReplyMode::kOn) [[unlikely]] {
    AdvanceReplyMode(context.session);
  }
}

Task<void> RunInside(CommandContext& context, CallEnd* end) {
  BeginAccounting(context);
  if (context.command->immediate != nullptr) {
    context.command->immediate(context);
  } else {
    co_await context.command->awaited(context);
  }
  *end = EndOf(context);
}

Task<void> Dispatch(CommandContext& context) {
  const CommandStart start = BeginCommand(context);
  if (start == CommandStart::kAwait) {
    co_await context.command->awaited(context);
    EndCommand(context);
  }
  if (start == CommandStart::kQueue) co_await QueueCommand(context);
}

void AnswerProtocolError(const RespParser& parser, Session& session, CommandStats& stats,
                         ReplyWriter& out) {
  const bool silent =
      session.reply_mode == ReplyMode::kOff || session.reply_mode == ReplyMode::kSkip;
  if (!silent) {
    out.Error(parser.error());
  }
  stats.CountError("ERR");
  ++session.errors;
  session.close_after_reply = true;
}

void PrefetchCommand(Kv& kv, uint32_t database, const CommandRow* row,
                     std::span<const std::string_view> argv, PrefetchStage stage, Key* first) {
  // Beyond this many keys the lines would push each other out before they are used.
  constexpr size_t kKeysMax = 16;
  if (row == nullptr || row->keys.first == 0) {
    return;
  }
  const auto prefetch = [&](Key* key) {
    stage == PrefetchStage::kLocation ? kv.PrefetchLocation(key)
                                      : kv.PrefetchRecord(*key, UseOf(*row));
  };
  if (row->has_one_key() && row->AcceptsArgumentCount(argv.size())) [[likely]] {
    if (stage == PrefetchStage::kLocation) *first = Key{database, argv[1]};
    return prefetch(first);
  }
  size_t keys = 0;
  ForEachKey(*row, argv, [&](size_t index) {
    if (++keys > kKeysMax) {
      return;
    }
    Key key{database, argv[index]};
    prefetch(&key);
  });
}

RespLimits LimitsOf(const Session& session, const ServerConfig& config) {
  RespLimits limits;
  limits.bulk_max_bytes = config.bulk_max_bytes();
  limits.must_authenticate = !session.authenticated && config.password_required();
  return limits;
}

void InitializeSession(Session& session, uint64_t id, uint64_t now_ns, const ServerConfig& config) {
  session.id = id;
  session.connected_at_ns = now_ns;
  session.last_activity_ns = now_ns;
  session.authenticated = !config.password_required();
}

}  // namespace onetrip
