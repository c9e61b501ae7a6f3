// ListEdit: a list that a command changes, packed or a tree (collection_tree.h).
//
// Of a tree a change takes the leaves in which it begins and ends. Leaves at an end are filled
// before another one is begun, so that elements that are pushed at one end and taken from the other
// leave full leaves between. Where pages are missing nothing is changed, and what it says is of no
// account. Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_LIST_EDIT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_LIST_EDIT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client_core/tree/tree.h"
#include "redis_compat/values/list_value.h"

namespace onetrip {

class ListEdit {
 public:
  // `value` outlives it; empty: there is none.
  explicit ListEdit(std::string_view value) : packed_(value), size_(packed_.size()) {}
  explicit ListEdit(Tree& tree);

  // Null: it is packed.
  [[nodiscard]] Tree* tree() const { return tree_; }
  // Elements.
  [[nodiscard]] uint64_t size() const { return size_; }
  // Gives the element at an end. False: there is none.
  bool End(ListEnd end, std::string_view* element) const;

  // The changes. Of a packed list, which gets one of them, they make another one. All of its
  // elements are not taken out of a tree: size() tells that it is to go.
  //
  // Pushes elements one after the other.
  void Push(ListEnd end, std::span<const std::string_view> elements);
  // Takes `most` elements, or all, and gives their entries in the order of the list, unless
  // `entries` is null.
  uint64_t Take(ListEnd end, uint64_t most, std::string* entries);
  // Removes the element that equals this one and is nearest to the end. REQUIRES: it is packed.
  bool TakeEqual(ListEnd end, std::string_view element);
  // REQUIRES: there is an element at `index`.
  void Set(uint64_t index, std::string_view element);
  // Keeps `elements` from the one at `first` on. REQUIRES: there are as many.
  void Only(uint64_t first, uint64_t elements);
  // Takes an element from one end to the other.
  void Rotate(ListEnd from);

  // The packed list as it is now. REQUIRES: it is packed, and was changed.
  [[nodiscard]] std::string TakeMade() { return std::move(made_); }
  // A change was not made to the tree: an element is longer than a page may be, or the list would
  // be longer than a value.
  [[nodiscard]] bool is_unfit() const { return is_unfit_; }
  [[nodiscard]] bool is_too_large() const { return is_too_large_; }

 private:
  // True if elements of that many bytes may come to the tree.
  bool HasRoom(uint64_t bytes);
  void PutLeaf(const LeafPlace& place, std::string_view entries, uint64_t elements, ListEnd from);
  // Takes elements out of the tree, which are not all of them.
  void Cut(uint64_t first, uint64_t elements);

  Tree* tree_ = nullptr;
  const ListValue packed_;
  uint64_t size_;
  std::string made_;
  bool is_unfit_ = false;
  bool is_too_large_ = false;
};

// Appends the entries of elements in a tree. False: pages are missing.
bool CopyElements(Tree& tree, uint64_t first, uint64_t elements, std::string* entries);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_LIST_EDIT_H_
