// Sorted sets in either form, packed or a tree: their members by range, and changes to them.
//
// Where pages of a tree are missing, all that comes out is of no account. One thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_EDIT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_EDIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis_compat/values/sorted_set_tree_edit.h"
#include "redis_compat/values/sorted_set_value.h"

namespace onetrip {

// The members of a range, in its order.
class SelectedMembers {
 public:
  SelectedMembers() = default;
  SelectedMembers(const SelectedMembers&) = delete;
  SelectedMembers& operator=(const SelectedMembers&) = delete;

  // `value` outlives it.
  void Select(std::string_view value, const MemberRange& range);
  // Copies what is selected.
  void Select(Tree& tree, const MemberRange& range);

  [[nodiscard]] uint64_t count() const { return span_.count; }
  // Gives the next one. False: there is none.
  bool Next(PackedElement* member);
  // Next() begins anew.
  void Rewind();
  // REQUIRES: selected from a packed value.
  [[nodiscard]] const MemberSpan& span() const { return span_; }

 private:
  std::string copied_;
  PackedElements members_{PackedHeader(), {}, /*has_values=*/true};
  MemberSpan span_;
  bool reverse_ = false;
  uint64_t told_ = 0;
};

// A sorted set that a command changes.
class SortedSetEdit {
 public:
  // `value` outlives it; empty: there is none.
  SortedSetEdit(std::string_view value, const CompactLimits& limits)
      : value_(value), packed_(value, limits) {}
  SortedSetEdit(Tree& tree, const CompactLimits& limits)
      : packed_(std::string_view(), limits), tree_(std::in_place, tree, limits) {}

  // Null: it is packed.
  [[nodiscard]] TreeSortedSetEdit* tree() { return tree_ ? &*tree_ : nullptr; }

  [[nodiscard]] uint64_t size() const { return tree_ ? tree_->size() : packed_.size(); }
  // All members outlive the edit.
  bool Find(std::string_view member, double* score) {
    return tree_ ? tree_->Find(member, score) : packed_.Find(member, score);
  }
  // True: it is new.
  bool Put(std::string_view member, double score) {
    return tree_ ? tree_->Put(member, score) : packed_.Put(member, score);
  }
  bool Remove(std::string_view member) {
    return tree_ ? tree_->Remove(member) : packed_.Remove(member);
  }
  // For the two below nothing else is changed. `members` stays as it is until the end of the edit.
  void Select(const MemberRange& range, SelectedMembers* members);
  void Remove(SelectedMembers* members);

  // The sorted set as it is now. REQUIRES: it is packed.
  [[nodiscard]] std::string Finish() const;

 private:
  std::string_view value_;
  PackedSortedSetEdit packed_;
  std::optional<MemberSpan> removed_;
  std::optional<TreeSortedSetEdit> tree_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_EDIT_H_
