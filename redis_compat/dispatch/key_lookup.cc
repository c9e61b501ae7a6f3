#include "redis_compat/dispatch/key_lookup.h"

#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {

void KeyLookup::Read(const RecordView& record, Tree& tree) {
  in_tree_.clear();
  if (!IsOfType(&record, type_)) return;
  TreeMap map(tree, has_values());
  for (const std::string_view key : keys_) {
    std::string_view value;
    const bool found = map.Find(key, &value);
    in_tree_.push_back(found ? std::optional<std::string>(value) : std::nullopt);
  }
}

void KeyLookup::Begin(const ReadResult& result, std::string_view packed) {
  is_tree_ = IsTree(result);
  packed_ = packed;
  if (!is_tree_ && keys_.size() > 1) packed_map_.emplace(packed, has_values());
}

bool KeyLookup::Find(size_t index, std::string_view* value) {
  if (is_tree_) {
    if (index >= in_tree_.size() || !in_tree_[index]) return false;
    if (value != nullptr) *value = *in_tree_[index];
    return true;
  }
  if (packed_map_) return packed_map_->Find(keys_[index], value);
  PackedElements elements(packed_, has_values());
  PackedElement element;
  while (elements.Next(&element)) {
    if (element.key != keys_[index]) continue;
    if (value != nullptr) *value = element.value;
    return true;
  }
  return false;
}

}  // namespace onetrip
