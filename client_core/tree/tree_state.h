// A tree in memory: the inside of Tree, whose parts read it, change it and give it places.
//
// A branch is a name and, once it was looked at, the page that it names. A page that is new, or
// changed, has a name without address; its name's counts and bytes are right at any time but in the
// middle of a change. A *list* is the branches of one page, or of the root; branches of *level* 0
// are leaves. Pages stay where they are in memory, lists do not move while another one changes.
#ifndef ONETRIP_CLIENT_CORE_TREE_TREE_STATE_H_
#define ONETRIP_CLIENT_CORE_TREE_TREE_STATE_H_

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client_core/tree/page.h"
#include "client_core/tree/tree.h"

namespace onetrip {

struct TreeNode;

struct TreeBranch {
  PageName name;
  std::unique_ptr<TreeNode> node;  // null: not looked at yet

  [[nodiscard]] bool is_placed() const { return !name.page.addr.is_null(); }
};
using TreeList = std::vector<TreeBranch>;

struct TreeNode {
  TreeList list;           // an inner page's
  std::string_view bytes;  // a leaf's: in `own`, or in the source
  std::string own;         // a new page's
};

struct TreeOrder {
  uint8_t height = 0;
  TreeList list;
  bool is_changed = false;
};

// One step of the way from the root to a leaf.
struct TreeStep {
  TreeList* list = nullptr;
  size_t at = 0;

  [[nodiscard]] TreeBranch& branch() const { return (*list)[at]; }
};
using TreeSteps = absl::InlinedVector<TreeStep, 4>;

struct TreeState {
  std::string header;
  std::vector<TreeOrder> orders;
  TreeLimits limits;
  const PageSource* pages = nullptr;  // null: all pages are new
  bool is_changed = false;
  bool is_damaged = false;
  std::vector<PageRef> missing;
  uint64_t missing_bytes = 0;
  std::vector<PageRef> dropped;
  std::unordered_set<uint64_t> asked;  // addresses in `missing`
  // Addresses of the inner pages that were loaded. None is in a tree twice; if it could be, a dozen
  // damaged pages would make a tree without end.
  std::unordered_set<uint64_t> inner_pages;

  // tree.cc: reading.
  bool Damaged();
  // The page of a branch; null if it is missing or damaged.
  TreeNode* Load(TreeBranch* branch, size_t level);
  bool LoadInner(const PageName& name, std::string_view bytes, size_t level, TreeNode* node);
  // Loads all pages below, or all but leaves, and itself. False: asked for what is missing.
  bool LoadAll(TreeBranch* branch, size_t level, bool inner_only);
  bool LoadAll(bool inner_only);
  // Goes down to a leaf; `choose(depth, list, before)` says which branch of a list, and adds the
  // elements of those before it.
  template <typename Choose>
  bool Descend(size_t order, Choose choose, LeafPlace* place);
  // The way to a place. REQUIRES: it is a place of this tree as it is now.
  TreeSteps StepsTo(size_t order, const LeafPlace& place);
  bool Walk(size_t order, bool forwards, LeafPlace* place);
  void NeedInwards(bool from_front, uint64_t elements);

  // tree_change.cc: leaves come and go.
  bool Replace(size_t order, const LeafPlace& from, const LeafPlace& to,
               std::vector<NewLeaf> leaves);
  // Has the page written anew.
  void Touch(TreeBranch* branch);
  // Makes an inner page's name right. REQUIRES: it is new, and has names.
  void Refresh(TreeBranch* branch) const;
  // Takes branches out, with all below. REQUIRES: inner pages are loaded.
  void Remove(TreeList* list, size_t begin, size_t end, size_t level);
  void DropAll(const TreeBranch& branch, size_t level);
  size_t Renew(const std::function<bool(const PageRef&)>& wanted, size_t most);

  // tree_place.cc: inner pages as limits say.
  void Balance();
};

TreeBranch NewLeafBranch(NewLeaf leaf);
// Bytes of an inner page with these names.
size_t TreeListBytes(const TreeList& list);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_TREE_TREE_STATE_H_
