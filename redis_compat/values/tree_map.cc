#include "redis_compat/values/tree_map.h"

#include <utility>
#include <vector>

#include "redis_compat/values/collection_tree.h"

namespace onetrip {

bool CopyElementsAt(Tree& tree, std::span<const uint64_t> positions, bool has_values,
                    std::string* entries) {
  LeafPlace leaf;
  for (const uint64_t position : positions) {
    const bool is_in_leaf = position >= leaf.before && position - leaf.before < leaf.elements;
    if (!is_in_leaf && !tree.Seek(0, position, &leaf)) continue;
    PackedElements elements = ElementsOf(leaf, has_values);
    PackedElement element;
    size_t at = 0;
    for (uint64_t left = position - leaf.before; elements.Next(&element) && left > 0; --left) {
      at = elements.at();
    }
    *entries += leaf.bytes.substr(at, elements.at() - at);
  }
  return tree.missing().empty();
}

TreeMap::TreeMap(Tree& tree, bool has_values)
    : tree_(tree), has_values_(has_values), size_(tree.elements(0)) {}

TreeMap::Touched* TreeMap::Touch(std::string_view key) {
  const uint64_t position = ScanPosition(key);
  LeafPlace place;
  if (!tree_.SeekKey(0, PositionKey(position), &place)) return nullptr;
  const auto found = touched_.find(place.before);
  if (found != touched_.end()) return &found->second;
  PackedMap map(ElementsOf(place, has_values_), has_values_);
  Touched touched{std::move(place), std::move(map), position};
  return &touched_.emplace(touched.place.before, std::move(touched)).first->second;
}

uint64_t TreeMap::entry_bytes() const {
  uint64_t bytes = tree_.leaf_bytes(0);
  for (const auto& [before, touched] : touched_) {
    bytes += touched.map.entry_bytes() - touched.place.bytes.size();
  }
  return bytes;
}

bool TreeMap::Find(std::string_view key, std::string_view* value) {
  Touched* const leaf = Touch(key);
  return leaf != nullptr && leaf->map.Find(key, value);
}

bool TreeMap::Put(std::string_view key, std::string_view value) {
  Touched* const leaf = Touch(key);
  const bool is_new = leaf != nullptr && leaf->map.Put(key, value);
  size_ += is_new ? 1 : 0;
  return is_new;
}

bool TreeMap::Remove(std::string_view key) {
  Touched* const leaf = Touch(key);
  const bool was_there = leaf != nullptr && leaf->map.Remove(key);
  size_ -= was_there && size_ > 0 ? 1 : 0;
  return was_there;
}

bool TreeMap::Fits(const PackedMap& map) const {
  if (map.entry_bytes() <= kPageBytesMax) return true;
  const std::string leaf = map.Finish(0);
  return FitPages(PositionLeaves(PackedElements(leaf, has_values_), tree_.limits()));
}

void TreeMap::WriteLeaf(const Touched& touched) {
  LeafPlace place;
  if (!tree_.SeekKey(0, PositionKey(touched.position), &place)) return;
  std::string entries;
  uint64_t elements = touched.map.size();
  const std::string_view seen = touched.place.bytes;
  if (place.bytes.data() == seen.data() && place.bytes.size() == seen.size()) {
    touched.map.AppendEntries(&entries);
  } else {
    // One beside it was so small that the two have become one.
    PackedMap map(ElementsOf(place, has_values_), has_values_);
    touched.map.RepeatOn(&map);
    map.AppendEntries(&entries);
    elements = map.size();
  }
  std::vector<NewLeaf> leaves;
  if (entries.size() > tree_.limits().leaf_bytes) {
    const PackedHeader header{0, static_cast<uint32_t>(elements)};
    leaves = PositionLeaves(PackedElements(header, entries, has_values_), tree_.limits());
  } else {
    leaves.push_back({std::move(entries), elements, {}});
  }
  tree_.Replace(0, place, std::move(leaves));
}

bool TreeMap::Finish(uint8_t flags) {
  if (!tree_.missing().empty()) return true;
  for (const auto& [before, touched] : touched_) {
    if (!Fits(touched.map)) return false;
  }
  for (const auto& [before, touched] : touched_) {
    if (touched.map.changed()) WriteLeaf(touched);
  }
  UpdateHeader(&tree_, flags);
  return true;
}

}  // namespace onetrip
