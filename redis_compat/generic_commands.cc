// Commands on keys of any type: DEL and UNLINK, EXISTS, TYPE, TTL, PTTL.
#include "redis_compat/commands.h"
#include "redis_compat/key_access.h"

namespace onetrip {
namespace {

// What TTL and PTTL answer for keys without a time left to tell.
constexpr int64_t kNoKey = -2;
constexpr int64_t kNoDeadline = -1;

// Milliseconds left, or one of the above.
int64_t TimeLeftMs(const ReadResult& result, uint64_t now_ms) {
  if (!result.found()) {
    return kNoKey;
  }
  const uint64_t deadline_ms = result.record().deadline_ms;
  if (deadline_ms == 0) {
    return kNoDeadline;
  }
  return deadline_ms > now_ms ? static_cast<int64_t>(deadline_ms - now_ms) : 0;
}

}  // namespace

Task<void> DelCommand(CommandContext& context) {
  int64_t removed = 0;
  for (size_t i = 1; i < context.argv.size(); ++i) {
    PrefetchAhead(context, i, 1);
    bool existed = false;
    const Status status = co_await context.kv.Delete(KeyAt(context, i), &existed);
    // A key too long to be stored is not there to be removed.
    if (!status.ok() && status.code() != StatusCode::kTooLarge) {
      ReplyStatus(context.out, status,
                  removed > 0 ? StorageStep::kLaterWrite : StorageStep::kWrite);
      co_return;
    }
    removed += existed ? 1 : 0;
  }
  context.out.Integer(removed);
}

Task<void> ExistsCommand(CommandContext& context) {
  int64_t found = 0;
  for (size_t i = 1; i < context.argv.size(); ++i) {
    PrefetchAhead(context, i, 1);
    ReadResult result;
    const Status status = co_await context.kv.GetPart(KeyAt(context, i), kNoValue, &result);
    if (AnsweredReadFailure(context, status)) {
      co_return;
    }
    CountLookup(context, result.found());
    found += result.found() ? 1 : 0;
  }
  context.out.Integer(found);
}

Task<void> TypeCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kNoValue, &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  context.out.Simple(result.found() ? ValueTypeName(result.record().type) : "none");
}

Task<void> TtlCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kNoValue, &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  const int64_t left_ms = TimeLeftMs(result, context.kv.NowMs());
  // To the nearest second, as Redis rounds.
  constexpr int64_t kMsPerSecond = 1000;
  context.out.Integer(left_ms < 0 ? left_ms : (left_ms + kMsPerSecond / 2) / kMsPerSecond);
}

Task<void> PttlCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kNoValue, &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  context.out.Integer(TimeLeftMs(result, context.kv.NowMs()));
}

}  // namespace onetrip
