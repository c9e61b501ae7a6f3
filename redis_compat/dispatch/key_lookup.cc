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
    if (map.Find(key, &value)) in_tree_.try_emplace(key, value);
  }
}

void KeyLookup::Begin(const ReadResult& result, std::string_view packed) {
  is_tree_ = IsTree(result);
  packed_ = packed;
  if (!is_tree_ && keys_.size() > 1) packed_map_.emplace(packed, has_values());
}

bool KeyLookup::Find(size_t index, std::string_view* value) {
  if (is_tree_) {
    const auto found = in_tree_.find(keys_[index]);
    if (found != in_tree_.end() && value != nullptr) *value = found->second;
    return found != in_tree_.end();
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
