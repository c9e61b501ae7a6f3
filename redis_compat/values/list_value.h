// Lists as packed collections: one entry an element, the head first.
//
// A list that a command changes is made of stretches of the old one's entries, and of new ones.
// What stays is copied as it lies, without a look at the elements in it; places near either end are
// found from there. Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_LIST_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_LIST_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "redis_compat/values/packed.h"

namespace onetrip {

enum class ListEnd : uint8_t { kHead, kTail };

// Elements that stand side by side, by the bytes that their entries are among those of the list.
struct ListStretch {
  size_t begin = 0;
  size_t end = 0;
  uint64_t elements = 0;
};

// Goes through elements from one end on.
class ListCursor {
 public:
  // `entries` outlive it.
  ListCursor(std::string_view entries, ListEnd from)
      : cursor_(from == ListEnd::kHead ? PackedCursor(entries) : PackedCursor::AtEnd(entries)),
        from_(from) {}

  // Steps over the next element and gives it. False: there is none.
  bool Next(std::string_view* element) {
    return from_ == ListEnd::kHead ? cursor_.Next(element) : cursor_.Previous(element);
  }
  // The byte at which it stands.
  [[nodiscard]] size_t at() const { return cursor_.at(); }

 private:
  PackedCursor cursor_;
  ListEnd from_;
};

class ListValue {
 public:
  static constexpr uint64_t kAll = UINT64_MAX;

  // `value` outlives it; empty, or no packed collection: it has no elements.
  explicit ListValue(std::string_view value);
  // `elements`, whose entries lie elsewhere than behind a header.
  static ListValue OfEntries(std::string_view entries, uint64_t elements) {
    ListValue list({});
    list.header_.elements = static_cast<uint32_t>(elements);
    list.entries_ = entries;
    return list;
  }

  // Elements, by the header.
  [[nodiscard]] uint64_t size() const { return header_.elements; }
  [[nodiscard]] std::string_view entries() const { return entries_; }
  [[nodiscard]] std::string_view EntriesOf(const ListStretch& part) const {
    return entries_.substr(part.begin, part.end - part.begin);
  }

  // `elements` of them from the one at `index` on. REQUIRES: there are as many.
  [[nodiscard]] ListStretch Find(uint64_t index, uint64_t elements) const;
  // Those at one end: `most` of them, or all.
  [[nodiscard]] ListStretch AtEnd(ListEnd end, uint64_t most) const;
  // The first element that equals this one. False: none does.
  bool FindEqual(std::string_view element, ListEnd from, ListStretch* found) const;

  // Each makes another list of this one; with no element left it is a header alone.
  //
  // With `elements` at one end, pushed there one after the other.
  [[nodiscard]] std::string Push(ListEnd end, std::span<const std::string_view> elements) const;
  // With `elements` in the place of a stretch of it.
  [[nodiscard]] std::string Replace(const ListStretch& part,
                                    std::span<const std::string_view> elements) const;
  [[nodiscard]] std::string Without(const ListStretch& part) const { return Replace(part, {}); }
  // A stretch of it alone.
  [[nodiscard]] std::string Only(const ListStretch& part) const;
  // Without the elements that equal this one: the first `most` of them. Empty, and nothing is
  // `removed`: it would be the same list.
  [[nodiscard]] std::string WithoutEqual(std::string_view element, ListEnd from, uint64_t most,
                                         uint64_t* removed) const;
  // With its last element first, or its first one last, as it comes from the other end.
  [[nodiscard]] std::string Rotate(ListEnd from) const;

 private:
  // The byte at which the element at `index` begins, or the entries end.
  [[nodiscard]] size_t PlaceOf(uint64_t index) const;
  // The header of a list of `elements`, with room for their entries behind it.
  [[nodiscard]] std::string Begin(uint64_t elements, size_t entry_bytes) const;

  PackedHeader header_;
  std::string_view entries_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_LIST_VALUE_H_
