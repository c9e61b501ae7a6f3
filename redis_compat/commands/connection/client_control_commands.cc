// CLIENT subcommands that hold other clients back, and those about features that no client uses.
#include <algorithm>
#include <string>

#include "redis_compat/commands/connection/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/container_replies.h"

namespace onetrip {

void ClientPauseCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() > 4) {
    return ReplySubcommandSyntaxError(context);
  }
  ArgumentReader arguments(argv, 3);
  const bool writes_only =
      arguments.HasMore() &&
      arguments.TakeOneOf({"ALL", "WRITE"}, "ERR CLIENT PAUSE mode must be WRITE or ALL") == 1;
  const auto timeout_ms = static_cast<uint64_t>(arguments.ReadInteger(argv[2], kTimeoutMs));
  if (arguments.AnsweredError(context.out)) return;
  constexpr uint64_t kNsPerMs = 1'000'000;
  const Clock& clock = context.hooks.clock();
  const uint64_t now_ns = clock.NowNs();
  // An end that Redis's clock cannot tell lies in the past there.
  const bool can_end = timeout_ms <= static_cast<uint64_t>(INT64_MAX) - clock.UnixUs() / 1000;
  // Centuries are as good as for ever.
  const uint64_t ms = std::min((UINT64_MAX - now_ns) / kNsPerMs, timeout_ms);
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
  ArgumentReader arguments(argv, 3);
  if (arguments.HasMore()) {
    (void)arguments.TakeOneOf({"TIMEOUT", "ERROR"},
                              "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  (void)arguments.ReadInteger(argv[2]);
  if (arguments.AnsweredError(context.out)) return;
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
  ArgumentReader arguments(context.argv, 2);
  const bool on = arguments.TakeOneOf({"off", "on"}) == 1;
  if (arguments.AnsweredError(context.out)) return;
  context.session.no_touch = on;
  context.out.Ok();
}

}  // namespace onetrip
