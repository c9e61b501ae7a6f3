#include "redis_compat/commands/sort/sort_elements.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "redis_compat/protocol/ascii.h"
#include "redis_compat/values/packed_map.h"

namespace onetrip {
namespace {

int Sign(const std::optional<std::string>& text) { return text.has_value() ? 1 : 0; }

// Compares texts as Redis does, which shows them to strcoll() unless they are stored.
int CompareTexts(std::string_view a, std::string_view b, bool is_stored) {
  return is_stored ? a.compare(b) : UntilNul(a).compare(UntilNul(b));
}

int Compare(const SortOptions& options, const SortedElement& a, const SortedElement& b) {
  const bool is_stored = options.target.has_value();
  if (!options.is_alphabetic) {
    if (a.number != b.number) return a.number < b.number ? -1 : 1;
    return a.bytes.compare(b.bytes);
  }
  if (!options.by) return CompareTexts(a.bytes, b.bytes, is_stored);
  if (!a.text || !b.text) return Sign(a.text) - Sign(b.text);
  return CompareTexts(*a.text, *b.text, is_stored);
}

}  // namespace

bool IsSortable(uint8_t type) {
  const auto value_type = static_cast<ValueType>(type);
  return value_type == ValueType::kList || value_type == ValueType::kSet ||
         value_type == ValueType::kSortedSet;
}

std::vector<SortedElement> ElementsOf(uint8_t type, std::string_view value) {
  PackedElements all(value, /*has_values=*/static_cast<ValueType>(type) == ValueType::kSortedSet);
  std::vector<SortedElement> elements;
  PackedElement element;
  while (all.Next(&element)) elements.push_back({element.key});
  return elements;
}

bool SetSortNumber(std::string_view text, SortedElement* element) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  element->number = std::strtod(copy.c_str(), &end);
  return *end == '\0' && errno != ERANGE && !std::isnan(element->number);
}

void SortElements(const SortOptions& options, std::vector<SortedElement>* elements) {
  std::stable_sort(elements->begin(), elements->end(),
                   [&options](const SortedElement& a, const SortedElement& b) {
                     const int order = Compare(options, a, b);
                     return options.is_descending ? order > 0 : order < 0;
                   });
}

void CropElements(const SortOptions& options, std::vector<SortedElement>* elements) {
  const auto size = static_cast<int64_t>(elements->size());
  const int64_t start = std::clamp<int64_t>(options.start, 0, size);
  const int64_t left = size - start;
  const int64_t count = options.count < 0 ? left : std::min(options.count, left);
  elements->erase(elements->begin() + start + count, elements->end());
  elements->erase(elements->begin(), elements->begin() + start);
}

}  // namespace onetrip
