// The options of SORT, and the patterns that BY and GET give.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_OPTIONS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/argument_reader.h"

namespace onetrip {

// Names a value for each element: the element itself ("#"), the string at a key that has the
// element in place of the first asterisk, or a field of the hash at such a key ("key*->field").
class SortPattern {
 public:
  // `text` outlives it.
  explicit SortPattern(std::string_view text);

  [[nodiscard]] bool is_element() const { return text_ == "#"; }
  // Without it, it names the same for all elements, which is nothing.
  [[nodiscard]] bool has_asterisk() const { return asterisk_ != std::string_view::npos; }
  // REQUIRES: has_asterisk().
  [[nodiscard]] std::string KeyOf(std::string_view element) const;
  // Nothing: the key is a string.
  [[nodiscard]] std::optional<std::string_view> field() const { return field_; }

 private:
  std::string_view text_;
  size_t asterisk_;
  std::string_view behind_asterisk_;
  std::optional<std::string_view> field_;
};

struct SortOptions {
  bool is_sorted = true;  // false: by a pattern without an asterisk
  bool is_descending = false;
  bool is_alphabetic = false;
  std::optional<SortPattern> by = std::nullopt;  // nothing: the elements themselves
  int64_t start = 0;
  int64_t count = -1;  // negative: all
  std::vector<SortPattern> get = {};
  std::optional<std::string_view> target = std::nullopt;
};

// Takes all options that are left. `may_store`: STORE is one of them.
void ReadSortOptions(ArgumentReader& arguments, bool may_store, SortOptions* options);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SORT_SORT_OPTIONS_H_
