// Commands on keys of any type: DEL and UNLINK, EXISTS, TYPE, TTL, PTTL.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <span>
#include <vector>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/key_batch.h"

namespace onetrip {
namespace {

// TTL and PTTL answer these for keys without a time left to tell.
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

namespace {

struct KeyOutcome {
  Status status;
  bool was_there = false;
};
// One key takes no memory.
using KeyOutcomes = absl::InlinedVector<KeyOutcome, 1>;

Task<void> DeleteOne(CommandContext& context, size_t index, KeyOutcome* outcome) {
  *outcome = {};
  outcome->status = co_await context.kv.Delete(KeyAt(context, index), &outcome->was_there);
  // A key too long to be stored is not there to be removed.
  if (outcome->status.code() == StatusCode::kTooLarge) outcome->status = Status::Ok();
}

// Answers a DEL that has removed `removed` keys. Null: none failed.
void ReplyDeleted(CommandContext& context, int64_t removed, const KeyOutcome* failed) {
  if (failed == nullptr) return context.out.Integer(removed);
  ReplyStatus(context.out, failed->status,
              removed > 0 ? StorageStep::kLaterWrite : StorageStep::kWrite);
}

Task<void> LookForOne(CommandContext& context, size_t index, KeyOutcome* outcome) {
  ReadResult result;
  outcome->status = co_await context.kv.GetPart(KeyAt(context, index), kNoValue, &result);
  outcome->was_there = result.found();
}

}  // namespace

Task<void> DelCommand(CommandContext& context) {
  if (context.argv.size() == 2) {
    KeyOutcome only;
    co_await DeleteOne(context, 1, &only);
    ReplyDeleted(context, only.was_there ? 1 : 0, only.status.ok() ? nullptr : &only);
    co_return;
  }
  KeyOutcomes batch(context.kv.keys_at_once());
  int64_t removed = 0;
  for (size_t i = 1; i < context.argv.size();) {
    const size_t end = BatchEnd(context, i, 1);
    co_await RunBatch(context, i, end, 1, [&](size_t index, size_t place) {
      return DeleteOne(context, index, &batch[place]);
    });
    const std::span<const KeyOutcome> outcomes(batch.data(), end - i);
    removed += std::ranges::count_if(outcomes, &KeyOutcome::was_there);
    const KeyOutcome* const failed = WorstOf(outcomes);
    if (failed != nullptr) co_return ReplyDeleted(context, removed, failed);
    i = end;
  }
  ReplyDeleted(context, removed, nullptr);
}

Task<void> ExistsCommand(CommandContext& context) {
  KeyOutcomes batch(context.kv.keys_at_once());
  int64_t found = 0;
  for (size_t i = 1; i < context.argv.size();) {
    const size_t end = BatchEnd(context, i, 1);
    co_await RunBatch(context, i, end, 1, [&](size_t index, size_t place) {
      return LookForOne(context, index, &batch[place]);
    });
    for (const KeyOutcome& outcome : std::span(batch.data(), end - i)) {
      if (AnsweredReadFailure(context, outcome.status)) {
        co_return;
      }
      CountLookup(context, outcome.was_there);
      found += outcome.was_there ? 1 : 0;
    }
    i = end;
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
