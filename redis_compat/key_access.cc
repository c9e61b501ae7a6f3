#include "redis_compat/key_access.h"

namespace onetrip {

Task<void> AwaitTaken(CommandContext& context) {
  context.answered_large = false;
  if (context.dropped_from != nullptr) {
    context.out.buffer().Clear();
  } else if (context.flow != nullptr) {
    co_await context.flow->AwaitTaken();
  }
}

}  // namespace onetrip
