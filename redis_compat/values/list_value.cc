#include "redis_compat/values/list_value.h"

#include <algorithm>

namespace onetrip {

ListValue::ListValue(std::string_view value) {
  if (LoadPackedHeader(value, &header_)) entries_ = PackedEntries(value);
  header_.elements = static_cast<uint32_t>(
      std::min<uint64_t>(header_.elements, entries_.size() / kPackedEntryBytesMin));
}

size_t ListValue::PlaceOf(uint64_t index) const {
  const bool is_nearer_to_head = index <= size() / 2;
  ListCursor cursor(entries_, is_nearer_to_head ? ListEnd::kHead : ListEnd::kTail);
  std::string_view element;
  uint64_t steps = is_nearer_to_head ? index : size() - std::min(index, size());
  while (steps > 0 && cursor.Next(&element)) --steps;
  return cursor.at();
}

ListStretch ListValue::Find(uint64_t index, uint64_t elements) const {
  const size_t begin = PlaceOf(index);
  const uint64_t behind = size() - std::min(size(), index + elements);
  size_t end = begin;
  if (behind < elements) {
    end = std::max(begin, PlaceOf(index + elements));
  } else {
    PackedCursor cursor(entries_, begin);
    std::string_view element;
    for (uint64_t i = 0; i < elements && cursor.Next(&element); ++i) end = cursor.at();
  }
  return {begin, end, elements};
}

ListStretch ListValue::AtEnd(ListEnd end, uint64_t most) const {
  const uint64_t elements = std::min(most, size());
  return Find(end == ListEnd::kHead ? 0 : size() - elements, elements);
}

bool ListValue::FindEqual(std::string_view element, ListEnd from, ListStretch* found) const {
  ListCursor cursor(entries_, from);
  std::string_view other;
  size_t at = cursor.at();
  while (cursor.Next(&other)) {
    if (other == element) {
      *found = {std::min(at, cursor.at()), std::max(at, cursor.at()), 1};
      return true;
    }
    at = cursor.at();
  }
  return false;
}

std::string ListValue::Begin(uint64_t elements, size_t entry_bytes) const {
  PackedHeader header = header_;
  header.elements = static_cast<uint32_t>(elements);
  std::string list;
  list.reserve(kPackedHeaderBytes + entry_bytes);
  list.resize(kPackedHeaderBytes);
  StorePackedHeader(header, &list);
  return list;
}

namespace {

size_t BytesOf(std::span<const std::string_view> elements) {
  size_t bytes = 0;
  for (const std::string_view element : elements) bytes += PackedEntryBytes(element.size());
  return bytes;
}

}  // namespace

std::string ListValue::Push(ListEnd end, std::span<const std::string_view> elements) const {
  std::string list = Begin(size() + elements.size(), entries_.size() + BytesOf(elements));
  if (end == ListEnd::kTail) {
    list += entries_;
    for (const std::string_view element : elements) AppendPackedEntry(element, &list);
    return list;
  }
  for (size_t left = elements.size(); left > 0; --left) {
    AppendPackedEntry(elements[left - 1], &list);
  }
  list += entries_;
  return list;
}

std::string ListValue::Replace(const ListStretch& part,
                               std::span<const std::string_view> elements) const {
  const std::string_view before = entries_.substr(0, part.begin);
  const std::string_view behind = entries_.substr(part.end);
  std::string list = Begin(size() - std::min(size(), part.elements) + elements.size(),
                           before.size() + BytesOf(elements) + behind.size());
  list += before;
  for (const std::string_view element : elements) AppendPackedEntry(element, &list);
  list += behind;
  return list;
}

std::string ListValue::Only(const ListStretch& part) const {
  std::string list = Begin(part.elements, part.end - part.begin);
  list += EntriesOf(part);
  return list;
}

std::string ListValue::WithoutEqual(std::string_view element, ListEnd from, uint64_t most,
                                    uint64_t* removed) const {
  *removed = 0;
  size_t first = 0;
  if (from == ListEnd::kTail) {
    // All that equal it from there on are the ones to remove.
    ListCursor back(entries_, from);
    std::string_view other;
    first = entries_.size();
    for (uint64_t left = most; left > 0 && back.Next(&other);) {
      if (other != element) continue;
      first = back.at();
      --left;
    }
  }
  std::string list;
  size_t copied = 0;
  PackedCursor cursor(entries_, first);
  std::string_view other;
  for (size_t at = first; *removed < most && cursor.Next(&other); at = cursor.at()) {
    if (other != element) continue;
    if (list.empty()) list = Begin(0, entries_.size());
    list += entries_.substr(copied, at - copied);
    copied = cursor.at();
    ++*removed;
  }
  if (*removed == 0) return {};
  list += entries_.substr(copied);
  PackedHeader header = header_;
  header.elements -= static_cast<uint32_t>(std::min(size(), *removed));
  StorePackedHeader(header, &list);
  return list;
}

std::string ListValue::Rotate(ListEnd from) const {
  const ListStretch moved = AtEnd(from, 1);
  const size_t at = from == ListEnd::kHead ? moved.end : moved.begin;
  std::string list = Begin(size(), entries_.size());
  list += entries_.substr(at);
  list += entries_.substr(0, at);
  return list;
}

}  // namespace onetrip
