// CLIENT subcommands that hold others back, and those about features that nobody uses here.
#include <algorithm>
#include <string>

#include "redis_compat/commands/connection/handlers.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/timeout_argument.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {

void ClientPauseCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 4) {
    return ReplySubcommandSyntaxError(context);
  }
  const bool writes_only = argv.size() == 4 && EqualsIgnoreCase(argv[3], "WRITE");
  if (argv.size() == 4 && !writes_only && !EqualsIgnoreCase(argv[3], "ALL")) {
    return context.out.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  const auto timeout_ms = ReadTimeoutMs(context, argv[2]);
  if (!timeout_ms) {
    return;
  }
  constexpr uint64_t kNsPerMs = 1'000'000;
  const Clock& clock = context.hooks.clock();
  const uint64_t now_ns = clock.NowNs();
  // An end that Redis's clock cannot tell lies in the past there.
  const bool can_end = *timeout_ms <= static_cast<uint64_t>(INT64_MAX) - clock.UnixUs() / 1000;
  // Centuries are as good as for ever.
  const uint64_t ms = std::min((UINT64_MAX - now_ns) / kNsPerMs, *timeout_ms);
  if (can_end) context.hooks.observation().pause.Begin(now_ns, now_ns + ms * kNsPerMs, writes_only);
  context.out.Ok();
}

void ClientUnpauseCommand(CommandContext& context) {
  context.hooks.observation().pause.End();
  context.out.Ok();
}

void ClientUnblockCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 4) {
    return ReplySubcommandSyntaxError(context);
  }
  if (argv.size() == 4 && !EqualsIgnoreCase(argv[3], "TIMEOUT") &&
      !EqualsIgnoreCase(argv[3], "ERROR")) {
    return context.out.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  if (!ParseInt64(argv[2])) {
    return context.out.Error(kNotIntegerError);
  }
  context.out.Integer(0);  // No command blocks yet.
}

void ClientGetRedirCommand(CommandContext& context) { context.out.Integer(-1); }

void ClientTrackingInfoCommand(CommandContext& context) {
  context.out.Map(3);
  context.out.Bulk("flags");
  context.out.Set(1);
  context.out.Bulk("off");
  context.out.Bulk("redirect");
  context.out.Integer(-1);
  context.out.Bulk("prefixes");
  context.out.Array(0);
}

void ClientNoTouchCommand(CommandContext& context) {
  const bool on = EqualsIgnoreCase(context.argv[2], "on");
  if (!on && !EqualsIgnoreCase(context.argv[2], "off")) {
    return context.out.Error(kSyntaxError);
  }
  context.session.no_touch = on;
  context.out.Ok();
}

}  // namespace onetrip
