#include "redis_compat/dispatch/element_scan.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/scan_options.h"
#include "redis_compat/values/packed_map.h"

namespace onetrip {
namespace {

// Clients may keep a cursor in 53 bits.
constexpr unsigned kCursorBits = 53;

// Never 0, by which a walk begins and ends.
uint64_t PositionOf(std::string_view key) {
  return (XXH3_64bits(key.data(), key.size()) >> (64 - kCursorBits)) | 1;
}

struct Scanned {
  PackedElement element;
  uint64_t position = 0;
};

// The elements from `*cursor` on, about `count`, and where the next ones begin; 0: nowhere.
std::vector<Scanned> ElementsFrom(PackedElements elements, int64_t count, uint64_t* cursor) {
  std::vector<Scanned> found;
  PackedElement element;
  while (elements.Next(&element)) {
    const uint64_t position = PositionOf(element.key);
    if (position >= *cursor) found.push_back({element, position});
  }
  *cursor = 0;
  const auto wanted = static_cast<uint64_t>(count);
  if ((elements.flags() & kPackedTable) == 0 || found.size() <= wanted) return found;
  const auto end = found.begin() + static_cast<ptrdiff_t>(wanted);
  std::nth_element(found.begin(), end, found.end(),
                   [](const Scanned& a, const Scanned& b) { return a.position < b.position; });
  *cursor = end->position;
  // All of one position are shown at once, or the walk would never go on.
  const auto is_behind = [cursor](const Scanned& one) { return one.position >= *cursor; };
  if (std::all_of(found.begin(), found.end(), is_behind)) {
    const uint64_t only = *cursor;
    *cursor = 0;
    for (const Scanned& one : found) {
      const bool is_next = one.position > only && (*cursor == 0 || one.position < *cursor);
      if (is_next) *cursor = one.position;
    }
    if (*cursor == 0) return found;
  }
  found.erase(std::remove_if(found.begin(), found.end(), is_behind), found.end());
  return found;
}

}  // namespace

Task<void> ScanElements(CommandContext& context, ValueType type, bool values, ReplyScanned reply,
                        ReplyScanned in_table) {
  ArgumentReader arguments(context.argv, 2);
  uint64_t cursor = TakeScanCursor(arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, type, &value)) co_return;
  ScanOptions options;
  // Redis looks at the options of a key that is there.
  if (result.found()) ReadScanOptions(arguments, ScanOf::kElements, &options);
  if (arguments.AnsweredError(context.out)) co_return;

  std::vector<Scanned> found;
  const PackedElements elements(value, values);
  if (result.found())
    found = ElementsFrom(elements, options.count, &cursor);
  else
    cursor = 0;
  if (in_table != nullptr && (elements.flags() & kPackedTable) != 0) reply = in_table;
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const Scanned& one) { return !options.Fits(one.element.key); }),
              found.end());
  context.out.Array(2);
  context.out.Bulk(std::to_string(cursor));
  context.out.Array(found.size() * (values ? 2 : 1));
  ReplyPace pace(result.holder());
  for (const Scanned& one : found) {
    reply(context.out, one.element);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

}  // namespace onetrip
