// Commands by which operators run a server: WAIT, ROLE, SAVE and relatives, SHUTDOWN, LOLWUT, and
// FUNCTION as a server without libraries answers it.
#include <optional>
#include <string>

#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

// An operator who believed that an agent saves a file would lose the data.
void RefuseToSave(CommandContext& context) {
  context.out.Error(
      "ERR An agent writes no file. Every acknowledged write is on a majority of its replicas on "
      "memory nodes; memory nodes with --backing keep it over restarts");
}

}  // namespace

// An acknowledged write is on a majority of the memory nodes of its replicas, whatever the client
// asks for: no wait makes it more.
void WaitCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  (void)arguments.TakeInteger();
  (void)arguments.TakeInteger(kTimeoutMs);
  if (arguments.AnsweredError(context.out)) return;
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  context.out.Integer(static_cast<int64_t>(facts.replicas / 2));
}

void RoleCommand(CommandContext& context) {
  context.out.Array(3);
  context.out.Bulk("master");
  context.out.Integer(0);
  context.out.Array(0);
}

void SaveCommand(CommandContext& context) { RefuseToSave(context); }

void BgSaveCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  (void)arguments.Word("SCHEDULE");
  if (arguments.HasMore()) arguments.SyntaxError();
  if (!arguments.AnsweredError(context.out)) RefuseToSave(context);
}

void BgRewriteAofCommand(CommandContext& context) { RefuseToSave(context); }

// Nothing has been saved since the start.
void LastSaveCommand(CommandContext& context) {
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  context.out.Integer(static_cast<int64_t>(facts.started_at_unix_s));
}

// Ends this agent; the memory nodes keep the keys.
void ShutdownCommand(CommandContext& context) {
  bool save = false;
  bool no_save = false;
  bool abort = false;
  bool other = false;
  ArgumentReader arguments(context.argv, 1);
  while (arguments.HasMore()) {
    const bool known = arguments.Flag("SAVE", &save) || arguments.Flag("NOSAVE", &no_save) ||
                       arguments.Flag("ABORT", &abort) || arguments.Flag("NOW", &other) ||
                       arguments.Flag("FORCE", &other);
    if (!known) arguments.SyntaxError();
  }
  const bool contradicts = (save && no_save) || (abort && (save || no_save || other));
  arguments.Require(!contradicts, kSyntaxError);
  arguments.Require(!abort, "ERR No shutdown in progress.");
  if (arguments.AnsweredError(context.out)) return;
  context.session.close_after_reply = true;
  context.hooks.Shutdown();
}

void LolwutCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 2 && EqualsIgnoreCase(argv[1], "VERSION") && !ParseInt64(argv[2])) {
    return context.out.Error(kNotIntegerError);
  }
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  context.out.Verbatim(
      "   agent ---. .---> node\n"
      "   agent ---+-+---> node\n"
      "   agent ---' '---> node\n"
      "\n   one trip there, one trip back\n\nOnetrip ver. " +
          facts.onetrip_version + "\n",
      "txt");
}

void FunctionListCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  bool with_code = false;
  std::optional<std::string_view> name;
  while (arguments.HasMore()) {
    const bool known = (!with_code && arguments.Flag("WITHCODE", &with_code)) ||
                       (!name && arguments.Value("LIBRARYNAME", &name));
    if (known) continue;
    if (!name && arguments.Word("LIBRARYNAME")) {
      arguments.Fail("ERR library name argument was not given");
    } else {
      arguments.Fail("ERR Unknown argument " + std::string(UntilNul(arguments.Take())));
    }
  }
  if (!arguments.AnsweredError(context.out)) context.out.Array(0);
}

void FunctionStatsCommand(CommandContext& context) {
  context.out.Map(2);
  context.out.Bulk("running_script");
  context.out.Null();
  context.out.Bulk("engines");
  context.out.Map(1);
  context.out.Bulk("LUA");
  context.out.Map(2);
  context.out.Bulk("libraries_count");
  context.out.Integer(0);
  context.out.Bulk("functions_count");
  context.out.Integer(0);
}

void FunctionFlushCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 3) {
    return ReplySubcommandSyntaxError(context);
  }
  ArgumentReader arguments(argv, 2);
  if (arguments.HasMore()) {
    (void)arguments.TakeOneOf({"SYNC", "ASYNC"},
                              "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  if (!arguments.AnsweredError(context.out)) context.out.Ok();
}

void FunctionDumpCommand(CommandContext& context) {
  // No library: the RDB version and a checksum.
  constexpr std::string_view kEmpty("\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda", 10);
  context.out.Bulk(kEmpty);
}

void FunctionKillCommand(CommandContext& context) {
  context.out.Error("NOTBUSY No scripts in execution right now.");
}

void FunctionDeleteCommand(CommandContext& context) { context.out.Error("ERR Library not found"); }

}  // namespace onetrip
