// Fuzz target: whatever the bytes of a packed collection are, going through them stays within them,
// and a change of them is a packed collection again.
//
// The first byte of an input says if elements have values and are sorted; the second, how many
// changes follow: what to do, a key or how many of the collection's elements are before it, a
// value. The rest is the collection.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "redis_compat/values/packed_map.h"
#include "tests/fuzz/fuzz_input.h"

namespace onetrip {
namespace {

constexpr size_t kTextMax = 20;

struct FuzzChange {
  enum class Kind : uint8_t { kFind, kRemove, kPut, kKinds };
  Kind kind = Kind::kFind;
  bool is_text = false;
  uint8_t place = 0;  // the element that has the key, unless it is a text
  std::string key;
  std::string value;
};

FuzzChange TakeChange(FuzzInput* input) {
  FuzzChange change;
  const uint8_t what = input->TakeByte();
  change.kind =
      static_cast<FuzzChange::Kind>(what % static_cast<uint8_t>(FuzzChange::Kind::kKinds));
  change.is_text = (what & 0x80) != 0;
  if (change.is_text) {
    change.key = input->TakeText(input->TakeByte() % kTextMax);
  } else {
    change.place = input->TakeByte();
  }
  change.value = input->TakeText(input->TakeByte() % kTextMax);
  return change;
}

bool IsBefore(const PackedElement& a, const PackedElement& b) {
  return a.value != b.value ? a.value < b.value : a.key < b.key;
}

void GoThrough(std::string_view entries) {
  const auto check = [&](std::string_view entry) {
    CHECK(entry.data() >= entries.data() && entry.size() <= entries.size());
    CHECK(entry.data() + entry.size() <= entries.data() + entries.size());
  };
  std::string_view entry;
  PackedCursor forwards(entries);
  for (size_t before = 0; forwards.Next(&entry); before = forwards.at()) {
    CHECK(forwards.at() > before);
    check(entry);
  }
  PackedCursor backwards = PackedCursor::AtEnd(entries);
  for (size_t behind = entries.size(); backwards.Previous(&entry); behind = backwards.at()) {
    CHECK(backwards.at() < behind);
    check(entry);
    PackedCursor again = backwards;
    CHECK(again.Next(&entry) && again.at() == behind);
  }
}

// True if it is what the code that stores one would have made, and no key is there twice.
bool IsSound(std::string_view value, bool has_values) {
  PackedHeader header;
  if (!LoadPackedHeader(value, &header)) return value.empty();
  std::string again = PackedHeaderBytes(header);
  PackedElements elements(value, has_values);
  PackedElement element;
  std::vector<std::string_view> keys;
  while (elements.Next(&element)) {
    keys.push_back(element.key);
    AppendPackedEntry(element.key, &again);
    if (has_values) AppendPackedEntry(element.value, &again);
  }
  std::sort(keys.begin(), keys.end());
  const bool is_single = std::adjacent_find(keys.begin(), keys.end()) == keys.end();
  return is_single && keys.size() == header.elements && again == value;
}

bool IsSorted(std::string_view value, bool has_values) {
  PackedElements elements(value, has_values);
  PackedElement before;
  PackedElement element;
  for (bool first = true; elements.Next(&element); first = false) {
    if (!first && !IsBefore(before, element)) return false;
    before = element;
  }
  return true;
}

std::string_view KeyOf(const FuzzChange& change, std::string_view value, bool has_values) {
  if (change.is_text) return change.key;
  PackedElements elements(value, has_values);
  PackedElement element;
  for (int left = change.place; left >= 0 && elements.Next(&element);) --left;
  return element.key;
}

void Change(std::string_view value, bool has_values, bool is_sorted,
            const std::deque<FuzzChange>& changes) {
  const bool was_sound = IsSound(value, has_values);
  const bool was_sorted = IsSorted(value, has_values);
  PackedMap map(value, has_values);
  for (const FuzzChange& change : changes) {
    const std::string_view key = KeyOf(change, value, has_values);
    const bool was_there = map.Find(key);
    std::string_view new_value;
    if (has_values) new_value = change.value;
    const uint64_t size = map.size();
    std::string_view found;
    switch (change.kind) {
      case FuzzChange::Kind::kRemove:
        CHECK(map.Remove(key) == was_there && !map.Find(key));
        break;
      case FuzzChange::Kind::kPut:
        CHECK(map.Put(key, new_value) == !was_there);
        CHECK(map.Find(key, &found) && found == new_value);
        break;
      default:
        CHECK(map.size() == size);
    }
  }
  const std::string made = map.Finish(map.flags(), is_sorted ? IsBefore : nullptr);
  GoThrough(PackedEntries(made));
  PackedHeader header;
  CHECK(LoadPackedHeader(made, &header) && header.elements == static_cast<uint32_t>(map.size()));
  if (was_sound) CHECK(IsSound(made, has_values));
  if (was_sound && was_sorted && is_sorted) CHECK(IsSorted(made, has_values));
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::FuzzInput input(data, size);
  const uint8_t kind = input.TakeByte();
  std::deque<onetrip::FuzzChange> changes;
  for (int left = input.TakeByte() % 32; left > 0; --left) {
    changes.push_back(onetrip::TakeChange(&input));
  }
  const std::string value = input.TakeRest();
  onetrip::GoThrough(onetrip::PackedEntries(value));
  onetrip::Change(value, (kind & 1) != 0, (kind & 2) != 0, changes);
  return 0;
}
