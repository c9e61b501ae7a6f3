#include "redis_compat/dispatch/call_accounting.h"

#include <atomic>
#include <string_view>

#include "redis_compat/dispatch/call_watch.h"
#include "redis_compat/dispatch/command_table.h"

namespace onetrip {
namespace {

uint64_t TimeTaken(const CommandContext& context) {
  return context.started_ns == 0 ? context.waited_ns
                                 : context.hooks.clock().NowNs() - context.started_ns;
}

bool HasFailed(const CommandContext& context) {
  return context.out.errors() != context.errors_before;
}

// `took_ns` and `error_word` as in CallEnd.
void Account(CommandContext& context, uint64_t took_ns, std::string_view error_word) {
  const size_t id = CommandId(*context.command);
  context.stats.CountCall(id);
  context.stats.CountLookups(context.hits, context.misses);
  if (context.sampled && context.started_ns != 0) [[unlikely]] {
    context.stats.AddTime(id, took_ns);
  }
  if (took_ns != 0) [[unlikely]] {
    NoteCallTime(context, took_ns);
  }
  if (context.hooks.observation().monitors.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    ShowToMonitors(context);
  }
  if (!error_word.empty()) [[unlikely]] {
    context.stats.CountFailed(id);
    context.stats.CountError(error_word);
    ++context.session.errors;
  }
}

}  // namespace

void BeginAccounting(CommandContext& context) {
  context.errors_before = context.out.errors();
  context.sampled = context.stats.WantsTime(CommandId(*context.command));
  if (context.sampled || MustBeTimed(context)) [[unlikely]] {
    context.started_ns = context.hooks.clock().NowNs();
  }
}

CallEnd EndOf(const CommandContext& context) {
  CallEnd end;
  end.took_ns = TimeTaken(context);
  if (HasFailed(context)) end.error_word = context.out.last_error_word();
  return end;
}

void EndAccounting(CommandContext& context) {
  Account(context, TimeTaken(context),
          HasFailed(context) ? context.out.last_error_word() : std::string_view());
}

void AccountFor(CommandContext& context, const CallEnd& end) {
  Account(context, end.took_ns, end.error_word);
}

}  // namespace onetrip
