// The rows of the command table about sorting. See key_rows.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ROWS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ROWS_H_

#include <array>

#include "redis_compat/commands/sort/handlers.h"
#include "redis_compat/dispatch/row_terms.h"

namespace onetrip {

inline constexpr uint32_t kCatSort = kCatSet | kCatSortedSet | kCatList | kCatSlow | kCatDangerous;
// The words of Redis's reply to COMMAND INFO.
inline constexpr char kSortPatternNotes[] =
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the "
    "content of the key we sort";
inline constexpr char kSortStoreNotes[] =
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear "
    "anywhere "
    "in the argument array";

inline constexpr auto kSortRows = std::to_array<CommandRow>({
    {.name = "sort",
     .syntax = "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] "
               "[ALPHA] [STORE destination]",
     .summary = "Sorts a list, a set or a sorted set, and tells or stores the outcome",
     .since = "1.0.0",
     .complexity = "O(N*log(N)) in the number of elements, O(N) without sorting",
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .categories = kCatWrite | kCatSort,
     .keys = OneKey(kKeyRo | kKeyAccess),
     .more_keys = KeyToFind(2, kKeyOw | kKeyUpdate, kSortStoreNotes, FindSortTarget),
     .unnamed_keys = kSortPatternNotes,
     .awaited = SortCommand},
    {.name = "sort_ro",
     .syntax = "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] "
               "[ALPHA]",
     .summary = "Sorts a list, a set or a sorted set",
     .since = "7.0.0",
     .complexity = "O(N*log(N)) in the number of elements, O(N) without sorting",
     .arity = -2,
     .flags = kReadOnly,
     .categories = kCatRead | kCatSort,
     .keys = OneKey(kKeyRo | kKeyAccess),
     .unnamed_keys = kSortPatternNotes,
     .awaited = SortRoCommand},
});

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ROWS_H_
