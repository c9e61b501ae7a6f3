// The rows of the command table about HyperLogLogs. See key_rows.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HYPERLOGLOG_ROWS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HYPERLOGLOG_ROWS_H_

#include <array>

#include "redis_compat/commands/hyperloglog/handlers.h"
#include "redis_compat/dispatch/row_terms.h"

namespace onetrip {

inline constexpr auto kHyperLogLogRows = std::to_array<CommandRow>({
    {.name = "pfadd",
     .syntax = "key [element [element ...]]",
     .summary = "Adds elements whose number is to be estimated",
     .since = "2.8.9",
     .complexity = "O(N) in the number of elements",
     .group = CommandGroup::kHyperLogLog,
     .arity = -2,
     .flags = kWrite | kDenyOom | kFast | kOverlaps,
     .categories = kCatWrite | kCatHyperLogLog | kCatFast,
     .keys = OneKey(kKeyRw | kKeyInsert),
     .awaited = PfAddCommand},
    {.name = "pfcount",
     .syntax = "key [key ...]",
     .summary = "Estimates how many different elements were added to the keys",
     .since = "2.8.9",
     .complexity = "O(N) in the number of keys, each a large constant; less for one that was "
                   "counted before",
     .group = CommandGroup::kHyperLogLog,
     .arity = -2,
     // It remembers what it has counted of one key.
     .flags = kReadOnly | kMayWrite,
     .categories = kCatRead | kCatHyperLogLog | kCatSlow,
     .keys = {1, -1, 1, kKeyRw | kKeyAccess,
              "RW because it may change the internal representation of the key, and propagate to "
              "replicas"},
     .awaited = PfCountCommand},
    {.name = "pfdebug",
     .syntax = "subcommand key",
     .summary = "Shows how a HyperLogLog is stored",
     .since = "2.8.9",
     .complexity = "O(1), with a large constant",
     .group = CommandGroup::kHyperLogLog,
     .arity = 3,
     .flags = kWrite | kDenyOom | kAdmin,
     .categories = kCatWrite | kCatHyperLogLog | kCatOperator,
     .keys = {2, 2, 1, kKeyRw | kKeyAccess, {}},
     .awaited = PfDebugCommand},
    {.name = "pfmerge",
     .syntax = "destkey sourcekey [sourcekey ...]",
     .summary = "Adds to a key all elements of others",
     .since = "2.8.9",
     .complexity = "O(N) in the number of keys",
     .group = CommandGroup::kHyperLogLog,
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .categories = kCatWrite | kCatHyperLogLog | kCatSlow,
     .keys = OneKey(kKeyRw | kKeyAccess | kKeyInsert),
     .more_keys = {2, -1, 1, kKeyRo | kKeyAccess, {}},
     .awaited = PfMergeCommand},
});

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_HYPERLOGLOG_HYPERLOGLOG_ROWS_H_
