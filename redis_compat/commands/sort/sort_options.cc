#include "redis_compat/commands/sort/sort_options.h"

#include "redis_compat/commands/sort/handlers.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {

SortPattern::SortPattern(std::string_view text) : text_(text), asterisk_(UntilNul(text).find('*')) {
  if (!has_asterisk()) return;
  constexpr std::string_view kArrow = "->";
  behind_asterisk_ = text_.substr(asterisk_ + 1);
  const std::string_view searched = UntilNul(behind_asterisk_);
  const size_t arrow = searched.find(kArrow);
  // An arrow at the end is a part of the key.
  if (arrow == std::string_view::npos || arrow + kArrow.size() == searched.size()) return;
  field_ = behind_asterisk_.substr(arrow + kArrow.size());
  behind_asterisk_ = behind_asterisk_.substr(0, arrow);
}

std::string SortPattern::KeyOf(std::string_view element) const {
  std::string key(text_.substr(0, asterisk_));
  key.append(element);
  key.append(behind_asterisk_);
  return key;
}

void ReadSortOptions(ArgumentReader& arguments, bool may_store, SortOptions* options) {
  std::string_view pattern;
  while (arguments.HasMore()) {
    if (arguments.Word("ASC")) {
      options->is_descending = false;
    } else if (arguments.Word("LIMIT", 2)) {
      options->start = arguments.TakeInteger();
      options->count = arguments.TakeInteger();
    } else if (arguments.Value("BY", &pattern)) {
      options->by.emplace(pattern);
      if (!options->by->has_asterisk()) options->is_sorted = false;
    } else if (arguments.Value("GET", &pattern)) {
      options->get.emplace_back(pattern);
    } else {
      const bool known = arguments.Flag("DESC", &options->is_descending) ||
                         arguments.Flag("ALPHA", &options->is_alphabetic) ||
                         (may_store && arguments.Value("STORE", &options->target));
      if (!known) arguments.SyntaxError();
    }
  }
}

size_t FindSortTarget(std::span<const std::string_view> argv) {
  size_t target = 0;
  for (size_t i = 2; i < argv.size(); ++i) {
    if (EqualsIgnoreCase(argv[i], "LIMIT")) {
      i += 2;
    } else if (EqualsIgnoreCase(argv[i], "BY") || EqualsIgnoreCase(argv[i], "GET")) {
      ++i;
    } else if (EqualsIgnoreCase(argv[i], "STORE") && i + 1 < argv.size()) {
      target = i + 1;
    }
  }
  return target;
}

}  // namespace onetrip
