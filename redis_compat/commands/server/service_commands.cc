// Commands by which operators run a server: WAIT, ROLE, SAVE and relatives, SHUTDOWN, LOLWUT, and
// FUNCTION as a server without libraries answers it.
#include <string>

#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/timeout_argument.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

// What an operator would believe otherwise costs the data.
void RefuseToSave(CommandContext& context) {
  context.out.Error(
      "ERR An agent writes no file. Every acknowledged write is on a majority of its replicas on "
      "memory nodes; memory nodes with --backing keep it over restarts");
}

}  // namespace

// What was acknowledged is on a majority of the memory nodes of its replicas, whatever is asked
// for: nothing that could be waited for makes it more.
void WaitCommand(CommandContext& context) {
  if (!ParseInt64(context.argv[1])) {
    return context.out.Error(kNotIntegerError);
  }
  if (!ReadTimeoutMs(context, context.argv[2])) {
    return;
  }
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
  const auto argv = context.argv;
  if (argv.size() > 2 || (argv.size() == 2 && !EqualsIgnoreCase(argv[1], "SCHEDULE"))) {
    return context.out.Error(kSyntaxError);
  }
  RefuseToSave(context);
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
  for (const std::string_view word : context.argv.subspan(1)) {
    if (EqualsIgnoreCase(word, "SAVE")) {
      save = true;
    } else if (EqualsIgnoreCase(word, "NOSAVE")) {
      no_save = true;
    } else if (EqualsIgnoreCase(word, "ABORT")) {
      abort = true;
    } else if (EqualsIgnoreCase(word, "NOW") || EqualsIgnoreCase(word, "FORCE")) {
      other = true;
    } else {
      return context.out.Error(kSyntaxError);
    }
  }
  if ((save && no_save) || (abort && (save || no_save || other))) {
    return context.out.Error(kSyntaxError);
  }
  if (abort) {
    return context.out.Error("ERR No shutdown in progress.");
  }
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
  const auto argv = context.argv;
  bool with_code = false;
  bool named = false;
  for (size_t i = 2; i < argv.size(); ++i) {
    if (!with_code && EqualsIgnoreCase(argv[i], "WITHCODE")) {
      with_code = true;
      continue;
    }
    if (named || !EqualsIgnoreCase(argv[i], "LIBRARYNAME")) {
      return context.out.Error("ERR Unknown argument " + std::string(argv[i]));
    }
    named = true;
    if (++i == argv.size()) {
      return context.out.Error("ERR library name argument was not given");
    }
  }
  context.out.Array(0);
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
  const bool known = argv.size() == 2 || (argv.size() == 3 && (EqualsIgnoreCase(argv[2], "SYNC") ||
                                                               EqualsIgnoreCase(argv[2], "ASYNC")));
  known ? context.out.Ok()
        : context.out.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
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
