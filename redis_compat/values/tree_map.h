// TreeMap: changes to the elements of a hash or set that is held as a tree, each found by its key.
// MapEdit: the same of one that is held in either form.
//
// The changes lie beside the leaves that they are for until Finish() writes each of these once.
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_TREE_MAP_H_
#define ONETRIP_REDIS_COMPAT_VALUES_TREE_MAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client_core/tree/tree.h"
#include "redis_compat/values/packed_map.h"

namespace onetrip {

// The elements in a leaf.
inline PackedElements ElementsOf(const LeafPlace& leaf, bool has_values) {
  return PackedElements({0, static_cast<uint32_t>(leaf.elements)}, leaf.bytes, has_values);
}

// Appends the elements at these positions of a tree's order, as entries. False: pages are missing.
bool CopyElementsAt(Tree& tree, std::span<const uint64_t> positions, bool has_values,
                    std::string* entries);

// Where pages are missing, what it says is of no account, and Finish() changes nothing.
class TreeMap {
 public:
  // `tree` outlives it, and is not changed by others meanwhile.
  TreeMap(Tree& tree, bool has_values);

  [[nodiscard]] Tree& tree() const { return tree_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  // The bytes of all entries, with the changes.
  [[nodiscard]] uint64_t entry_bytes() const;

  // As PackedMap's; but keys and values of the collection live until Finish() only.
  bool Find(std::string_view key, std::string_view* value = nullptr);
  bool Put(std::string_view key, std::string_view value = {});
  bool Remove(std::string_view key);

  // Changes the tree, and its header, which gets these flags, too; once. False: a leaf would be
  // longer than a page may be, and nothing was changed. REQUIRES: elements are left.
  bool Finish(uint8_t flags);

 private:
  // A leaf in which something was looked up.
  struct Touched {
    LeafPlace place;
    PackedMap map;
    uint64_t position = 0;  // one that it holds, if any leaf does
  };

  // The leaf that holds a key, if any does; null: a page is missing.
  Touched* Touch(std::string_view key);
  [[nodiscard]] bool Fits(const PackedMap& map) const;
  void WriteLeaf(const Touched& touched);

  Tree& tree_;
  const bool has_values_;
  uint64_t size_;
  std::map<uint64_t, Touched> touched_;  // by the number of elements in the leaves before
};

class MapEdit {
 public:
  // `value` outlives it; empty: there is none.
  MapEdit(std::string_view value, bool has_values) : packed_(value, has_values) {}
  MapEdit(Tree& tree, bool has_values)
      : packed_(std::string_view(), has_values), tree_(std::in_place, tree, has_values) {}

  // Null: it is packed.
  [[nodiscard]] TreeMap* tree() { return tree_ ? &*tree_ : nullptr; }
  [[nodiscard]] const PackedMap& packed() const { return packed_; }

  [[nodiscard]] uint64_t size() const { return tree_ ? tree_->size() : packed_.size(); }
  bool Find(std::string_view key, std::string_view* value = nullptr) {
    return tree_ ? tree_->Find(key, value) : packed_.Find(key, value);
  }
  bool Put(std::string_view key, std::string_view value = {}) {
    return tree_ ? tree_->Put(key, value) : packed_.Put(key, value);
  }
  bool Remove(std::string_view key) { return tree_ ? tree_->Remove(key) : packed_.Remove(key); }

 private:
  PackedMap packed_;
  std::optional<TreeMap> tree_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_TREE_MAP_H_
