// PING, ECHO, QUIT, RESET and the handshake: HELLO, AUTH, SELECT.
#include <optional>
#include <string>
#include <utility>

#include "redis_compat/commands/connection/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/database_index.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/version.h"

namespace onetrip {
namespace {

constexpr char kWrongPassword[] = "WRONGPASS invalid username-password pair or user is disabled.";

bool PasswordIsRight(CommandContext& context, std::string_view user, std::string_view password) {
  const ServerConfig& config = context.hooks.config();
  if (user != "default") {
    return false;
  }
  return !config.password_required() || config.IsPassword(password);
}

// The options of HELLO beside the protocol version.
struct HelloOptions {
  std::optional<std::string_view> user;
  std::string_view password;
  std::optional<std::string_view> name;
};

void ReadHelloOptions(ArgumentReader& arguments, HelloOptions* options) {
  while (arguments.HasMore()) {
    if (arguments.Word("AUTH", 2)) {
      options->user = arguments.Take();
      options->password = arguments.Take();
    } else if (arguments.Value("SETNAME", &options->name)) {
      arguments.Require(IsClientName(*options->name), kClientNameError);
    } else {
      arguments.Fail("ERR Syntax error in HELLO option '" +
                     std::string(UntilNul(arguments.Take())) + "'");
    }
  }
}

void ReplyHello(CommandContext& context) {
  ReplyWriter& out = context.out;
  out.Map(7);
  out.Bulk("server");
  out.Bulk("redis");
  out.Bulk("version");
  out.Bulk(kRedisVersion);
  out.Bulk("proto");
  out.Integer(out.protocol());
  out.Bulk("id");
  out.Integer(static_cast<int64_t>(context.session.id));
  out.Bulk("mode");
  out.Bulk("standalone");
  out.Bulk("role");
  out.Bulk("master");
  out.Bulk("modules");
  out.Array(0);
}

}  // namespace

namespace {

// Answers an argument unless that is more than a turn's work.
bool RepeatAtOnce(CommandContext& context, std::string_view argument) {
  if (argument.size() > kTurnBytes) return false;
  context.out.Bulk(argument);
  return true;
}

// Answers it by the piece, and keeps no more of it twice than has to be sent.
Task<void> Repeat(CommandContext& context, std::string_view argument) {
  context.out.BulkHeader(argument.size());
  for (size_t from = 0; from < argument.size(); from += kTurnBytes) {
    if (from > 0) co_await context.kv.Yield();
    if (MustAwaitTaken(context)) co_await AwaitTaken(context);
    if (context.session.abandoned) co_return;
    context.out.Raw(argument.substr(from, kTurnBytes));
  }
  context.out.Raw("\r\n");
}

}  // namespace

bool PingFast(CommandContext& context) {
  if (context.argv.size() == 2) return RepeatAtOnce(context, context.argv[1]);
  context.argv.size() == 1 ? context.out.Raw("+PONG\r\n")
                           : context.out.Error("ERR wrong number of arguments for 'ping' command");
  return true;
}

Task<void> PingCommand(CommandContext& context) {
  if (!PingFast(context)) co_await Repeat(context, context.argv[1]);
}

bool EchoFast(CommandContext& context) { return RepeatAtOnce(context, context.argv[1]); }

Task<void> EchoCommand(CommandContext& context) {
  if (!EchoFast(context)) co_await Repeat(context, context.argv[1]);
}

void QuitCommand(CommandContext& context) {
  context.out.Ok();
  context.session.close_after_reply = true;
}

void ResetCommand(CommandContext& context) {
  Session& session = context.session;
  session.database = 0;
  session.name.clear();
  session.authenticated = !context.hooks.config().password_required();
  session.protocol = 2;
  // CLIENT REPLY SKIP drops this very reply.
  const bool is_skipped = std::exchange(session.reply_mode, ReplyMode::kOn) == ReplyMode::kSkip;
  session.transaction.reset();
  if (std::exchange(session.monitors, false)) {
    context.hooks.observation().monitors.fetch_sub(1, std::memory_order_relaxed);
  }
  context.out.set_protocol(2);
  if (context.dropped_from != nullptr && !is_skipped) {
    context.out.Redirect(context.dropped_from);
  }
  context.out.Simple("RESET");
}

void HelloCommand(CommandContext& context) {
  Session& session = context.session;
  ReplyWriter& out = context.out;
  int64_t protocol = session.protocol;
  ArgumentReader arguments(context.argv, 1);
  if (arguments.HasMore()) {
    protocol = arguments.TakeInteger({2, 3, "NOPROTO unsupported protocol version",
                                      "ERR Protocol version is not an integer or out of range"});
  }
  HelloOptions options;
  ReadHelloOptions(arguments, &options);
  if (arguments.AnsweredError(out)) {
    return;
  }
  if (options.user) {
    if (!PasswordIsRight(context, *options.user, options.password)) {
      return out.Error(kWrongPassword);
    }
    session.authenticated = true;
  }
  if (!session.authenticated && context.hooks.config().password_required()) {
    return out.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
        "protocol version at the same time");
  }
  if (options.name) {
    session.name = *options.name;
  }
  session.protocol = static_cast<uint8_t>(protocol);
  out.set_protocol(static_cast<int>(protocol));
  ReplyHello(context);
}

void AuthCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 3) {
    return context.out.Error(kSyntaxError);
  }
  if (argv.size() == 2 && !context.hooks.config().password_required()) {
    return context.out.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const std::string_view user = argv.size() == 3 ? argv[1] : "default";
  if (!PasswordIsRight(context, user, argv.back())) {
    return context.out.Error(kWrongPassword);
  }
  context.session.authenticated = true;
  context.out.Ok();
}

void SelectCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  const int64_t databases = context.hooks.config().databases();
  const uint32_t database = ReadDatabaseIndex(arguments, arguments.Take(), databases);
  if (arguments.AnsweredError(context.out)) {
    return;
  }
  context.session.database = database;
  context.out.Ok();
}

}  // namespace onetrip
