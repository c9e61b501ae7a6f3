#include "redis_compat/commands/lists/list_terms.h"

#include <utility>

namespace onetrip {

Task<void> ReplyElements(CommandContext& context, std::string_view entries, uint64_t elements,
                         ListEnd from, std::shared_ptr<LargeValue> holder) {
  context.out.Array(elements);
  ListCursor cursor(entries, from);
  ReplyPace pace(std::move(holder));
  std::string_view element;
  for (; elements > 0; --elements) {
    cursor.Next(&element) ? context.out.Bulk(element) : context.out.Null();
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

}  // namespace onetrip
