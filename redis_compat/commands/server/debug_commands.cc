// DEBUG: what test suites ask of a server.
#include <cmath>
#include <string>

#include "client_core/kv/pool_check.h"
#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/values/encoding.h"

namespace onetrip {
namespace {

// Holds this connection back, no other.
Task<void> Sleep(CommandContext& context) {
  constexpr long double kNsPerSecond = 1e9L;
  constexpr long double kLongestS = 86'400;
  const auto seconds = ParseLongDouble(context.argv[2]);
  // As strtod reads what is no number.
  const long double held_s = seconds && *seconds > 0 ? std::min(*seconds, kLongestS) : 0;
  co_await context.hooks.SleepFor(static_cast<uint64_t>(held_s * kNsPerSecond));
  context.out.Ok();
}

Task<void> DescribeObject(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 2), kEncodingPart, &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  if (!result.found()) {
    context.out.Error("ERR no such key");
    co_return;
  }
  const std::string_view encoding = EncodingOf(result.record());
  context.out.Simple("Value at:0x0 refcount:1 encoding:" + std::string(encoding) +
                     " serializedlength:" + std::to_string(result.record().value_bytes + 1) +
                     " lru:0 lru_seconds_idle:0");
}

// One reply of the type asked for. False: there is no such type.
bool ReplyExample(ReplyWriter& out, std::string_view type) {
  const auto three = [&out] {
    for (int i = 0; i < 3; ++i) out.Integer(i);
  };
  if (EqualsIgnoreCase(type, "string")) {
    out.Bulk("Hello World");
  } else if (EqualsIgnoreCase(type, "integer")) {
    out.Integer(12345);
  } else if (EqualsIgnoreCase(type, "double")) {
    out.Double(3.141);
  } else if (EqualsIgnoreCase(type, "null")) {
    out.Null();
  } else if (EqualsIgnoreCase(type, "array")) {
    out.Array(3);
    three();
  } else if (EqualsIgnoreCase(type, "set")) {
    out.Set(3);
    three();
  } else if (EqualsIgnoreCase(type, "map")) {
    out.Map(3);
    for (int i = 0; i < 3; ++i) {
      out.Integer(i);
      out.Bool(i == 1);
    }
  } else if (EqualsIgnoreCase(type, "attrib")) {
    if (out.protocol() == 3) {
      out.Raw("|1\r\n");
      out.Bulk("key-popularity");
      out.Array(2);
      out.Bulk("key:123");
      out.Integer(90);
    }
    out.Bulk("Some real reply following the attribute");
  } else if (EqualsIgnoreCase(type, "push")) {
    if (out.protocol() == 2) {
      out.Error("ERR RESP2 is not supported by this command");
      return true;
    }
    out.Push(2);
    out.Bulk("server-cpu-usage");
    out.Integer(42);
    // A push answers nothing.
    out.Bulk("Some real reply following the push reply");
  } else if (EqualsIgnoreCase(type, "verbatim")) {
    out.Verbatim("This is a verbatim\nstring", "txt");
  } else if (EqualsIgnoreCase(type, "bignum")) {
    out.BigNumber("1234567999999999999999999999999999999");
  } else if (EqualsIgnoreCase(type, "true")) {
    out.Bool(true);
  } else if (EqualsIgnoreCase(type, "false")) {
    out.Bool(false);
  } else {
    return false;
  }
  return true;
}

// Changes nothing that there is here, and test suites only want an OK.
bool IsHarmless(std::string_view name, size_t argc) {
  struct Known {
    std::string_view name;
    size_t argc;
  };
  constexpr Known kKnown[] = {{"QUICKLIST-PACKED-THRESHOLD", 3},
                              {"CHANGE-REPL-ID", 2},
                              {"LOADAOF", 2},
                              {"SET-DISABLE-DENY-SCRIPTS", 3},
                              {"REPLYBUFFER", 4},
                              {"PAUSE-CRON", 3},
                              {"DICT-RESIZING", 3}};
  for (const Known& known : kKnown) {
    if (EqualsIgnoreCase(name, known.name)) return argc == known.argc;
  }
  return false;
}

// An agent does not own the keys, so it does not save and load them again.
void ReplyToReload(CommandContext& context) {
  for (const std::string_view option : context.argv.subspan(2)) {
    const bool known = EqualsIgnoreCase(option, "MERGE") || EqualsIgnoreCase(option, "NOFLUSH") ||
                       EqualsIgnoreCase(option, "NOSAVE");
    if (known) continue;
    return context.out.Error(
        "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
  }
  context.out.Ok();
}

void Help(ReplyWriter& out) {
  constexpr std::string_view kLines[] = {
      "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
      "SLEEP <seconds>",
      "    Holds this connection back.",
      "OBJECT <key>",
      "    Describes the value of a key.",
      "PROTOCOL <type>",
      "    Answers with a value of that type.",
      "ERROR <message>",
      "    Answers with that error.",
      "SET-ACTIVE-EXPIRE <0|1>",
      "    Whether this agent removes expired keys that nobody touches.",
      "CHECK-POOL",
      "    Counts what the pool of a quiet cluster holds, and what is wrong.",
      "RELOAD [MERGE | NOFLUSH | NOSAVE ...]",
      "    Does nothing.",
      "HELP",
      "    Lists these subcommands.",
  };
  out.Array(std::size(kLines));
  for (const std::string_view line : kLines) out.Simple(line);
}

}  // namespace

Task<void> DebugCommand(CommandContext& context) {
  const auto argv = context.argv;
  const std::string_view name = argv[1];
  if (argv.size() == 2 && EqualsIgnoreCase(name, "HELP")) {
    Help(context.out);
  } else if (argv.size() == 3 && EqualsIgnoreCase(name, "SLEEP")) {
    co_await Sleep(context);
  } else if (argv.size() == 3 && EqualsIgnoreCase(name, "OBJECT")) {
    co_await DescribeObject(context);
  } else if (argv.size() == 3 && EqualsIgnoreCase(name, "ERROR")) {
    context.out.Error(argv[2]);
  } else if (argv.size() == 3 && EqualsIgnoreCase(name, "PROTOCOL")) {
    if (!ReplyExample(context.out, argv[2])) {
      context.out.Error(
          "ERR Wrong protocol type name. Please use one of the following: "
          "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
    }
  } else if (argv.size() == 3 && EqualsIgnoreCase(name, "SET-ACTIVE-EXPIRE")) {
    // As atoi reads what is no number.
    co_await context.hooks.SetActiveExpiry(ParseInt64(argv[2]).value_or(0) != 0);
    context.out.Ok();
  } else if (argv.size() == 2 && EqualsIgnoreCase(name, "CHECK-POOL")) {
    PoolCounts counts;
    const Status status = co_await context.kv.CheckPool(&counts);
    if (status.ok()) {
      context.out.Verbatim(counts.ToText(), "txt");
    } else {
      context.out.Error("TRYAGAIN the pool could not be read: " + std::string(status.message()));
    }
  } else if (EqualsIgnoreCase(name, "RELOAD")) {
    ReplyToReload(context);
  } else if (IsHarmless(name, argv.size())) {
    context.out.Ok();
  } else {
    ReplySubcommandSyntaxError(context);
  }
}

}  // namespace onetrip
