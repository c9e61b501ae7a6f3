// PackedMap: changes to the elements of a packed hash, set or sorted set, each found by its key:
// field or member.
//
// The changes lie beside the collection until Finish() makes a new one of both, in one pass.
// Looking up a few keys scans the collection, looking up many makes an index of it. Pure; one
// thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_PACKED_MAP_H_
#define ONETRIP_REDIS_COMPAT_VALUES_PACKED_MAP_H_

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/values/packed.h"

namespace onetrip {

struct PackedElement {
  std::string_view key;
  std::string_view value;  // empty in a set
};

// Goes through the elements of a packed collection.
class PackedElements {
 public:
  // `value` outlives it; empty, or no packed collection: there are none. `has_values`: two entries
  // are an element.
  PackedElements(std::string_view value, bool has_values);
  // `header.elements` of them, whose entries lie elsewhere than behind a header.
  PackedElements(const PackedHeader& header, std::string_view entries, bool has_values)
      : header_(header), entries_(entries), cursor_(entries), has_values_(has_values) {}

  // Elements, by the header.
  [[nodiscard]] uint64_t size() const { return header_.elements; }
  [[nodiscard]] uint8_t flags() const { return header_.flags; }

  // Gives the next one. False: there is none.
  bool Next(PackedElement* element);
  // Gives the one before, from behind the last one on.
  bool Previous(PackedElement* element);
  void GoToEnd() { cursor_ = PackedCursor::AtEnd(entries_); }
  void GoToBegin() { cursor_ = PackedCursor(entries_); }
  // To a byte at which an element begins, or the last one ends.
  void GoTo(size_t at) { cursor_ = PackedCursor(entries_, at); }
  // The byte at which the next element begins, counted from the first entry.
  [[nodiscard]] size_t at() const { return cursor_.at(); }
  [[nodiscard]] std::string_view entries() const { return entries_; }

 private:
  PackedHeader header_;
  std::string_view entries_;
  PackedCursor cursor_;
  bool has_values_;
};

class PackedMap {
 public:
  // Returns true if an element stands before another one in the collection.
  using Before = bool (*)(const PackedElement&, const PackedElement&);

  // As PackedElements.
  PackedMap(std::string_view value, bool has_values)
      : PackedMap(PackedElements(value, has_values), has_values) {}
  PackedMap(const PackedElements& elements, bool has_values)
      : base_(elements), has_values_(has_values), size_(base_.size()) {}

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] uint8_t flags() const { return base_.flags(); }
  // True if Put() or Remove() has changed something.
  [[nodiscard]] bool changed() const { return !changes_.empty(); }

  // Looks a key up; its value, too, unless `value` is null.
  bool Find(std::string_view key, std::string_view* value = nullptr);
  // Gives a key a value; true: it is new. Both outlive the map, unless they are of the collection.
  bool Put(std::string_view key, std::string_view value = {});
  // Removes a key; false: it is not there. `key` outlives the map.
  bool Remove(std::string_view key);

  // The collection with the changes; with no element left a header alone. Without `before` an
  // element that gets another value stays where it is, and new ones come last, in the order in
  // which they came; with it, all are where it says. REQUIRES: the collection is in that order.
  [[nodiscard]] std::string Finish(uint8_t flags, Before before = nullptr) const;
  // The same without a header.
  void AppendEntries(std::string* to, Before before = nullptr) const;
  // The bytes that these take.
  [[nodiscard]] uint64_t entry_bytes() const;
  // Makes the changes to another collection.
  void RepeatOn(PackedMap* other) const;

 private:
  static constexpr size_t kNowhere = SIZE_MAX;
  // Lookups that scan; those behind them use an index.
  static constexpr size_t kScansMax = 8;

  // Where an element of the collection lies.
  struct Place {
    size_t at = kNowhere;
    size_t bytes = 0;
    std::string_view value;
  };
  struct Change {
    PackedElement element;
    Place place;  // the one that it replaces or removes
    bool is_there = false;
  };

  // The change of a key; null: there is none.
  Change* FindChange(std::string_view key);
  Place FindPlace(std::string_view key);
  void AddChange(const Change& change);
  void AppendElement(const PackedElement& element, std::string* to) const;

  const PackedElements base_;
  const bool has_values_;
  uint64_t size_;
  size_t scans_ = 0;
  absl::flat_hash_map<std::string_view, Place> places_;  // all of them, or not made yet
  std::vector<Change> changes_;
  absl::flat_hash_map<std::string_view, size_t> changed_keys_;  // once there are many
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_PACKED_MAP_H_
