// TreeSortedSetEdit: a sorted set that is held as a tree, and that a command changes.
//
// Changes lie beside the tree until they are written into its leaves: one pass over those of each
// order that they touch. Pages that are missing are asked for as soon as it is known that they are
// needed; what comes out then is of no account. One thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_EDIT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_EDIT_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/tree/tree.h"
#include "redis_compat/values/sorted_set_tree.h"

namespace onetrip {

class TreeSortedSetEdit {
 public:
  // `tree` outlives it, and is not changed elsewhere.
  TreeSortedSetEdit(Tree& tree, const CompactLimits& limits);

  [[nodiscard]] Tree& tree() const { return tree_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  // Bytes that the sorted set would take as a packed value.
  [[nodiscard]] uint64_t packed_bytes() const { return packed_bytes_; }

  // As PackedSortedSetEdit's; all members outlive the edit.
  bool Find(std::string_view member, double* score);
  bool Put(std::string_view member, double score);
  bool Remove(std::string_view member);
  // Removes a member that is there, with that score, and was not looked up.
  void RemoveKnown(const ScoredMember& one);

  // Writes the changes into the tree. False: it should be a packed value. REQUIRES: size() > 0.
  bool Finish();
  // Makes a packed value of the tree and the changes. False: pages are missing. REQUIRES: as it was
  // before Finish(), or that was false.
  bool FinishPacked(std::string* packed);

 private:
  // A member that was looked up: in the tree, and now.
  struct Member {
    std::string_view name;
    std::optional<double> before;
    std::optional<double> now;
  };
  // A change of the leaves by score, at its key: a member leaves or comes.
  struct Step {
    std::string key;
    ScoredMember one;
    bool comes = false;
  };
  // One of those by position: a member gets a score, or leaves.
  struct Assignment {
    std::string key;
    const Member* member = nullptr;
  };

  Member& Look(std::string_view name);
  void Set(Member* member, std::optional<double> score);
  [[nodiscard]] std::vector<Step> Steps() const;
  [[nodiscard]] std::vector<Assignment> Assignments() const;
  // False: pages are missing, or no page could hold a leaf, and fits_ is false.
  bool EditByPosition(std::span<const Assignment> all);
  bool EditByScore(std::span<const Step> all);
  [[nodiscard]] std::string Assigned(const LeafPlace& leaf, std::span<const Assignment> here,
                                     uint64_t* elements) const;

  Tree& tree_;
  const CompactLimits limits_;
  uint8_t flags_ = 0;
  uint64_t size_ = 0;
  uint64_t packed_bytes_ = 0;
  bool fits_ = true;
  std::vector<Member> members_;
  absl::flat_hash_map<std::string_view, size_t> numbers_;  // in members_
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_EDIT_H_
