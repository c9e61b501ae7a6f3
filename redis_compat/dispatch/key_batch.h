// Commands over several keys: where the storage waits for a network, some of the keys are worked on
// at the same time, so that they wait together and not one behind the other.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_KEY_BATCH_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_KEY_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "client_core/coro/sync.h"
#include "redis_compat/dispatch/key_access.h"

namespace onetrip {

// Behind the keys that are worked on together with argv[first], of which every `step`-th argument
// is one.
inline size_t BatchEnd(const CommandContext& context, size_t first, size_t step) {
  return std::min(context.argv.size(), first + context.kv.keys_at_once() * step);
}

// True if other connections should have their turn before the command works on argv[first, end).
inline bool EndsTurn(size_t first, size_t end, size_t step = 1) {
  constexpr size_t kKeysPerTurn = 256;
  return first / step / kKeysPerTurn != end / step / kKeysPerTurn;
}

// Runs work(index, place), a Task<void>, for every key in argv[first, end), which is one batch;
// `place` counts them from 0. Goes on when all have ended. Of many keys it lets other connections
// have their turn.
template <typename Work>
Task<void> RunBatch(CommandContext& context, size_t first, size_t end, size_t step, Work work) {
  if (EndsTurn(first, end, step)) [[unlikely]]
    co_await context.kv.Yield();
  if (first + step >= end) {
    PrefetchAhead(context, first, step);
    co_return co_await work(first, size_t{0});
  }
  std::vector<Task<void>> tasks;
  for (size_t i = first; i < end; i += step) tasks.push_back(work(i, tasks.size()));
  co_await WhenAll(std::move(tasks));
}

// Returns one of several outcomes, each with a `status`, that failed: rather one whose effect is
// not known. Null: none failed.
template <typename Outcome>
const Outcome* WorstOf(std::span<const Outcome> outcomes) {
  const Outcome* worst = nullptr;
  for (const Outcome& outcome : outcomes) {
    const bool unknown = outcome.status.code() == StatusCode::kUnknownOutcome;
    if (!outcome.status.ok() && (worst == nullptr || unknown)) worst = &outcome;
  }
  return worst;
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_KEY_BATCH_H_
