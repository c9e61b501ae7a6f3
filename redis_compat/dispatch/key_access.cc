#include "redis_compat/dispatch/key_access.h"

#include <memory>
#include <utility>

namespace onetrip {

Task<void> AwaitTaken(CommandContext& context) {
  const std::shared_ptr<LargeValue> answered = std::move(context.answered_large);
  if (context.dropped_from != nullptr) context.out.buffer().Clear();
  // Dropped ones, too: it notices that the connection has ended.
  if (context.flow != nullptr) {
    const bool is_taken = co_await context.flow->AwaitTaken();
    if (!is_taken && answered != nullptr) answered->share = {};
  }
}

Task<void> AwaitTurn(CommandContext& context) {
  if (context.turn == nullptr) co_return;
  co_await context.turn->Await();
  if (context.flow != nullptr) co_await context.flow->Relieve();
}

}  // namespace onetrip
