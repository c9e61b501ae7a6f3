#include "redis_compat/commands/lists/list_terms.h"

#include <utility>

namespace onetrip {

Change ListMutation::ApplyTo(std::string_view current) {
  ListEdit list(current);
  return ApplyTo(list);
}

Change ListMutation::ApplyToTree(Tree& tree) {
  ListEdit list(tree);
  return ApplyTo(list);
}

Change ListMutation::Replace(ListEdit& list) {
  if (list.tree() == nullptr) return CollectionMutation::Replace(list.TakeMade());
  if (list.is_too_large()) return Refuse(kCollectionTooLargeError);
  if (list.is_unfit()) return ApplyToJoined(*list.tree());
  return list.size() == 0 ? Change::Delete() : KeepTree(*list.tree());
}

void ListPartReader::Read(const RecordView& record, Tree& tree) {
  copied_.clear();
  elements_ = 0;
  if (!IsOfType(&record, ValueType::kList)) return;
  const ListPart part = PartOfList(tree.elements(0), range_);
  elements_ = part.elements;
  CopyElements(tree, part.first, part.elements, &copied_);
}

void ListPartReader::Begin(const ReadResult& result, std::string_view packed) {
  entries_ = copied_;
  if (IsTree(result)) return;
  const ListValue list(packed);
  const ListPart part = PartOfList(list.size(), range_);
  elements_ = part.elements;
  entries_ = list.EntriesOf(list.Find(part.first, part.elements));
}

std::optional<std::string_view> ListPartReader::first() const {
  std::string_view element;
  if (elements_ == 0 || !PackedCursor(entries_).Next(&element)) return std::nullopt;
  return element;
}

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
