// The rows of the command table about transactions.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_TRANSACTION_ROWS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_TRANSACTION_ROWS_H_

#include <array>

#include "redis_compat/commands/transactions/handlers.h"
#include "redis_compat/dispatch/row_terms.h"

namespace onetrip {

inline constexpr uint32_t kTransactionFast = kSession | kFast | kAllowBusy;
inline constexpr uint32_t kCatTransactionFast = kCatFast | kCatTransaction;

inline constexpr auto kTransactionRows = std::to_array<CommandRow>({
    {.name = "multi",
     .summary = "Begins a transaction: the commands that follow are queued",
     .since = "1.2.0",
     .complexity = "O(1)",
     .group = CommandGroup::kTransactions,
     .arity = 1,
     .flags = kTransactionFast | kNotQueued,
     .categories = kCatTransactionFast,
     .immediate = MultiCommand},
    {.name = "exec",
     .summary = "Runs the queued commands, unless a watched key has changed",
     .since = "1.2.0",
     .complexity = "That of the queued commands",
     .group = CommandGroup::kTransactions,
     .arity = 1,
     .flags = kSession | kSkipSlowlog | kNotQueued | kRunsQueue,
     .categories = kCatSlow | kCatTransaction,
     .awaited = ExecCommand},
    {.name = "discard",
     .summary = "Drops the queued commands",
     .since = "2.0.0",
     .complexity = "O(N) in the number of queued commands",
     .group = CommandGroup::kTransactions,
     .arity = 1,
     .flags = kTransactionFast | kNotQueued,
     .categories = kCatTransactionFast,
     .immediate = DiscardCommand},
    {.name = "watch",
     .syntax = "key [key ...]",
     .summary = "Makes the next EXEC depend on keys staying as they are",
     .since = "2.2.0",
     .complexity = "O(1) for every key",
     .group = CommandGroup::kTransactions,
     .arity = -2,
     .flags = kTransactionFast | kNotQueued,
     .categories = kCatTransactionFast,
     .keys = AllKeys(kKeyRo),
     .awaited = WatchCommand},
    {.name = "unwatch",
     .summary = "Forgets about all watched keys",
     .since = "2.2.0",
     .complexity = "O(1)",
     .group = CommandGroup::kTransactions,
     .arity = 1,
     .flags = kTransactionFast,
     .categories = kCatTransactionFast,
     .immediate = UnwatchCommand},
});

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_TRANSACTIONS_TRANSACTION_ROWS_H_
