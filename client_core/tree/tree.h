// Tree: a collection as a persistent counted B+ tree: elements in leaves, found by their key or by
// their number, in one order or several.
//
// A tree is looked at and changed in memory. Pages come from a PageSource when they are first
// needed; one that is not there is asked for in missing(), and what needed it has done nothing: its
// caller loads the pages and begins anew with another Tree. A change rewrites the pages from the
// leaf up to the root, in memory. Place() then gives the new pages their addresses, and dropped()
// names those whose place they took: the pages below an untouched name are shared by both trees.
//
// Pure, and knows nothing of what elements are. Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_TREE_TREE_H_
#define ONETRIP_CLIENT_CORE_TREE_TREE_H_

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/tree/page.h"

namespace onetrip {

// The sizes at which pages are divided and joined.
struct TreeLimits {
  uint32_t leaf_bytes = 1536;  // the most in a leaf that more than one element shares
  uint32_t inner_bytes = 512;  // ... in an inner page
  uint32_t root_bytes = 1024;  // ... in the names of all orders in the root
  // A collection that takes more than this as one value becomes a tree, and one that takes less
  // than a quarter of it none.
  uint32_t packed_bytes = 8192;
  // The most that a command reads of pages; with more it sees the whole collection as one value.
  uint32_t loaded_bytes = 1024 * 1024;
  // The most new pages that a change writes while it holds a pin.
  uint32_t pinned_bytes = 256 * 1024;
};

struct TreeState;  // tree_state.h

class PageSource {
 public:
  virtual ~PageSource() = default;
  // The bytes of a page, which live as long as the source; null: they are not here.
  virtual const std::string_view* Find(const PageRef& page) const = 0;
};

// A leaf that is to be. An empty one is none.
struct NewLeaf {
  std::string bytes;
  uint64_t elements = 0;
  std::string first;  // as PageName's; the first one in the place of another leaf keeps that one's
};

// A leaf of a tree; of use until the tree changes.
struct LeafPlace {
  absl::InlinedVector<uint32_t, 4> path;  // which name on each level, from the root's down
  std::string_view bytes;
  uint64_t elements = 0;
  uint64_t before = 0;    // elements of the order that stand in leaves before this one
  std::string_view last;  // no key in it is that large; empty: no leaf follows
};

class Tree {
 public:
  // The tree of a root; `pages` outlives it.
  Tree(TreeRoot root, const PageSource& pages, const TreeLimits& limits);
  // A new tree; `orders` has the leaves of each order, one behind the other.
  Tree(std::string header, std::vector<std::vector<NewLeaf>> orders, const TreeLimits& limits);
  ~Tree();
  Tree(Tree&&) noexcept;
  Tree& operator=(Tree&&) noexcept;

  [[nodiscard]] const TreeLimits& limits() const;
  [[nodiscard]] const std::string& header() const;
  void set_header(std::string header);
  [[nodiscard]] size_t orders() const;
  // Elements of one order, and bytes in its leaves.
  [[nodiscard]] uint64_t elements(size_t order) const;
  [[nodiscard]] uint64_t leaf_bytes(size_t order) const;

  // Each is false where there is no such leaf, where a page is missing, and where one is damaged.
  //
  // The leaf that holds the element of that number, counted from 0.
  bool Seek(size_t order, uint64_t number, LeafPlace* place);
  // The leaf that holds `key` if any does: the last one that may begin with it, or before it.
  bool SeekKey(size_t order, std::string_view key, LeafPlace* place);
  bool First(size_t order, LeafPlace* place);
  bool Last(size_t order, LeafPlace* place);
  bool Next(size_t order, LeafPlace* place);
  bool Previous(size_t order, LeafPlace* place);

  // Elements with keys have to come where SeekKey() finds them: none has a key that is too small
  // for the first of the leaves that go, or reaches the last one's `last`.
  //
  // Puts `leaves` in the place of a leaf; in an order without leaves, at a place without a path.
  // One that is small is joined with one beside it. False: a page is missing, perhaps one beside
  // the way to the leaf, with which Balance() is to join a small one; and nothing was changed.
  bool Replace(size_t order, const LeafPlace& place, std::vector<NewLeaf> leaves);
  // Takes all of the leaves of an order out of it that lie between two, both included, and puts
  // `leaves` there. As Replace().
  bool ReplaceRange(size_t order, const LeafPlace& from, const LeafPlace& to,
                    std::vector<NewLeaf> leaves);
  // Has a page of the tree written anew, elsewhere, and those above it; for regions that leave.
  // `wanted` says which; at most `most` of them. Needs all inner pages. Their number.
  size_t Renew(const std::function<bool(const PageRef&)>& wanted, size_t most);

  [[nodiscard]] bool changed() const;
  // It was made from a root, not from leaves.
  [[nodiscard]] bool has_root() const;
  // The pages that were needed and are not there.
  [[nodiscard]] const std::vector<PageRef>& missing() const;
  [[nodiscard]] uint64_t missing_bytes() const;
  // A page was not what its name says.
  [[nodiscard]] bool is_damaged() const;
  // Asks for all pages below that are not there yet: for the caller that needs everything.
  // `inner_only`: but for leaves. True: they are there.
  bool NeedAll(bool inner_only);
  // Where a leaf at an end of the first order is missing, or the one beside it, asks for those
  // inwards of it, too, until they have `elements`, or `missing` a quarter of `loaded_bytes`: for
  // the caller that has that number of changes there.
  void NeedInwards(uint64_t elements);
  // Names all pages, those without a place but for. REQUIRES: NeedAll(true).
  void ForEachPage(const std::function<void(const PageName&, bool is_leaf)>& visit) const;

  // Divides and joins inner pages as limits say. Once, behind the last change.
  void Balance();
  // The sizes of the pages that have no place, those below first. REQUIRES: Balance().
  [[nodiscard]] std::vector<uint32_t> NewPageBytes() const;
  // Gives them places in that order, and each page's bytes to `write`; they live as long as the
  // tree. REQUIRES: as many refs, with address and class.
  void Place(std::span<const PageRef> places,
             const std::function<void(const PageRef&, std::string_view bytes)>& write);
  // The root, once all pages have their place.
  [[nodiscard]] std::string EncodeRoot() const;
  // The bytes that it takes.
  [[nodiscard]] size_t RootBytes() const;
  // The pages of the old tree that the new one does not name.
  [[nodiscard]] const std::vector<PageRef>& dropped() const;

 private:
  std::unique_ptr<TreeState> state_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_TREE_TREE_H_
