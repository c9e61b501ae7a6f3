// Arguments and replies that several commands on lists have in common.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_LIST_TERMS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_LIST_TERMS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/values/list_edit.h"
#include "redis_compat/values/list_value.h"

namespace onetrip {

inline constexpr int64_t kIndexMax = std::numeric_limits<int64_t>::max();

// Takes LEFT or RIGHT.
inline ListEnd TakeListEnd(ArgumentReader& arguments) {
  return arguments.TakeOneOf({"LEFT", "RIGHT"}) == 0 ? ListEnd::kHead : ListEnd::kTail;
}

// The elements between two indexes, both ends included, counted from 0, or from the end when
// negative: as LRANGE counts. None, if the first one is behind the last.
struct ListRange {
  int64_t first = 0;
  int64_t last = -1;
};
struct ListPart {
  uint64_t first = 0;
  uint64_t elements = 0;
};
inline ListPart PartOfList(uint64_t size, ListRange range) {
  const auto elements = static_cast<int64_t>(size);
  const int64_t first =
      range.first >= 0 ? range.first : std::max<int64_t>(0, elements + range.first);
  const int64_t last = std::min(elements - 1, range.last >= 0 ? range.last : elements + range.last);
  if (first > last) return {};
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(last - first + 1)};
}

// The element at an index that counts like this; nothing: there is none.
inline std::optional<uint64_t> PositionOf(uint64_t size, int64_t index) {
  const int64_t position = index >= 0 ? index : static_cast<int64_t>(size) + index;
  if (position < 0 || position >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<uint64_t>(position);
}

// A change of a list, packed or a tree.
class ListMutation : public CollectionMutation {
 public:
  explicit ListMutation(CommandContext& context) : CollectionMutation(context, ValueType::kList) {}

  [[nodiscard]] bool takes_trees() const override { return true; }

 protected:
  // As CollectionMutation's.
  virtual Change ApplyTo(ListEdit& list) = 0;
  // For the end of ApplyTo(): the list gets the changes, or goes if no element is left.
  Change Replace(ListEdit& list);

 private:
  Change ApplyTo(std::string_view current) final;
  Change ApplyToTree(Tree& tree) final;
};

// Reads elements of a list, packed or a tree.
class ListPartReader final : public TreeReader {
 public:
  explicit ListPartReader(ListRange range) : range_(range) {}

  void Read(const RecordView& record, Tree& tree) override;
  // Once the list has been read: `packed`, which outlives it, or what Read() has seen.
  void Begin(const ReadResult& result, std::string_view packed);

  // Those that there are.
  [[nodiscard]] uint64_t elements() const { return elements_; }
  [[nodiscard]] std::string_view entries() const { return entries_; }
  // The first one; nothing: there is none.
  [[nodiscard]] std::optional<std::string_view> first() const;

 private:
  const ListRange range_;
  uint64_t elements_ = 0;
  std::string copied_;  // from a tree
  std::string_view entries_;
};

// Answers with an array of `elements`, from one end of their entries on, which outlive it.
// `holder` keeps those of a large list.
Task<void> ReplyElements(CommandContext& context, std::string_view entries, uint64_t elements,
                         ListEnd from, std::shared_ptr<LargeValue> holder = nullptr);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_LISTS_LIST_TERMS_H_
