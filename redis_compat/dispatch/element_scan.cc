#include "redis_compat/dispatch/element_scan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/scan_options.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {
namespace {

struct Scanned {
  PackedElement element;
  uint64_t position = 0;
};

// The elements from `*cursor` on, about `count`, and where the next ones begin; 0: nowhere.
std::vector<Scanned> ElementsFrom(PackedElements elements, int64_t count, uint64_t* cursor) {
  std::vector<Scanned> found;
  PackedElement element;
  while (elements.Next(&element)) {
    const uint64_t position = ScanPosition(element.key);
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

// Reads the part of a tree that a step of a walk shows, or all of it, where that is shown at once.
class ScanReader final : public TreeReader {
 public:
  // About `count` elements from `cursor` on.
  ScanReader(ValueType type, bool values, uint64_t cursor, int64_t count)
      : type_(type),
        values_(values),
        order_(type == ValueType::kSortedSet ? kByPosition : 0),
        cursor_(cursor),
        count_(static_cast<uint64_t>(count)) {}

  void Read(const RecordView& record, Tree& tree) override;

  // The elements, as a packed collection.
  [[nodiscard]] std::string_view packed() const { return packed_; }
  // The position from which on it has not read; 0: nowhere.
  [[nodiscard]] uint64_t rest() const { return rest_; }

 private:
  // Sorted sets have two orders; the first one is by score.
  static constexpr size_t kByPosition = 1;

  // Copies leaves until they have more than enough. Those that follow are asked for, too.
  void ReadLeaves(Tree& tree);

  const ValueType type_;
  const bool values_;
  const size_t order_;
  const uint64_t cursor_;
  const uint64_t count_;
  std::string packed_;
  uint64_t rest_ = 0;
};

void ScanReader::Read(const RecordView& record, Tree& tree) {
  rest_ = 0;
  packed_.clear();
  if (!IsOfType(&record, type_) || order_ >= tree.orders()) return;
  if ((HeaderOf(tree).flags & kPackedTable) != 0) {
    ReadLeaves(tree);
  } else {
    JoinLeaves(tree, &packed_);
  }
}

void ScanReader::ReadLeaves(Tree& tree) {
  packed_ = tree.header();
  LeafPlace leaf;
  const std::string from =
      cursor_ == 0 ? std::string() : PositionKey(std::min(cursor_, kScanPositionMax));
  if (!tree.SeekKey(order_, from, &leaf)) return;
  SeekNumbers(tree, order_, leaf.before, std::min(count_, tree.elements(order_) - leaf.before));
  uint64_t elements = 0;
  for (bool more = true; more; more = tree.Next(order_, &leaf)) {
    PackedElements all = ElementsOf(leaf, values_);
    PackedElement element;
    for (size_t at = 0; all.Next(&element); at = all.at()) {
      if (ScanPosition(element.key) < cursor_) continue;
      packed_ += leaf.bytes.substr(at, all.at() - at);
      ++elements;
    }
    rest_ = leaf.last.empty() ? 0 : PositionFrom(leaf.last);
    if (elements > count_) break;
  }
  StorePackedHeader({HeaderOf(tree).flags, static_cast<uint32_t>(elements)}, &packed_);
}

}  // namespace

Task<void> ScanElements(CommandContext& context, ValueType type, bool values, ReplyScanned reply,
                        ReplyScanned in_table) {
  ArgumentReader arguments(context.argv, 2);
  uint64_t cursor = TakeScanCursor(arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  ScanOptions options;
  ReadScanOptions(arguments, ScanOf::kElements, &options);
  ReadResult result;
  ScanReader reader(type, values, cursor, options.count);
  const ValueRange wanted{.reader = &reader};
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), wanted, &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, type, &value)) co_return;
  // Redis looks at the options of a key that is there.
  if (result.found() && arguments.AnsweredError(context.out)) co_return;

  std::vector<Scanned> found;
  const PackedElements elements(IsTree(result) ? reader.packed() : value, values);
  if (result.found())
    found = ElementsFrom(elements, options.count, &cursor);
  else
    cursor = 0;
  if (IsTree(result) && cursor == 0) cursor = reader.rest();
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
