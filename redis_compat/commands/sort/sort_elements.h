// The elements that SORT sorts, and their order.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ELEMENTS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/commands/sort/sort_options.h"
#include "redis_compat/values/value.h"

namespace onetrip {

struct SortedElement {
  std::string_view bytes;
  double number = 0;                     // by which it is sorted
  std::optional<std::string> text = {};  // or by which; nothing comes first
};

// True if a command can sort values of that type.
bool IsSortable(uint8_t type);

// The elements of a packed list, set or sorted set, in its order. `value` outlives them.
std::vector<SortedElement> ElementsOf(uint8_t type, std::string_view value);

// Sets the number by which an element is sorted. False: `text` is none.
bool SetSortNumber(std::string_view text, SortedElement* element);

// Sorts elements that have their numbers, or texts, or are to be sorted by themselves.
void SortElements(const SortOptions& options, std::vector<SortedElement>* elements);

// Leaves those that LIMIT names.
void CropElements(const SortOptions& options, std::vector<SortedElement>* elements);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_ELEMENTS_H_
