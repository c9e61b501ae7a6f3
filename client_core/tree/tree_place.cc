// Inner pages as limits say, and places for the pages that have none.
#include <algorithm>
#include <iterator>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/tree/tree_state.h"

namespace onetrip {
namespace {

// However long their first keys are: with each level there are fewer pages.
constexpr size_t kNamesMin = 2;

// Bytes of the names of an order in the root.
size_t TopBytes(const TreeList& list) {
  if (list.empty()) return 0;
  PageName first = list.front().name;
  const size_t bytes = TreeListBytes(list) - PageNameBytes(first);
  first.first.clear();
  return bytes + PageNameBytes(first);
}

// One order's inner pages on their way to the sizes that they are to have.
class OrderBalance {
 public:
  OrderBalance(TreeState* state, TreeOrder* order)
      : state_(*state),
        order_(*order),
        inner_bytes_(std::max<uint32_t>(1, state->limits.inner_bytes)),
        top_bytes_(state->limits.root_bytes / state->orders.size()) {}

  void Run() {
    if (order_.height > 0) BalanceList(&order_.list, order_.height);
    while (PullUp()) {
    }
    while (PushDown()) {
    }
  }

 private:
  void BalanceList(TreeList* list, size_t level) {
    TreeList to;
    to.reserve(list->size());
    for (TreeBranch& branch : *list) {
      if (!branch.is_placed()) {
        if (level > 1) BalanceList(&branch.node->list, level - 1);
        state_.Refresh(&branch);
      }
      if (!branch.is_placed() && branch.name.page.bytes > inner_bytes_) {
        Divide(std::move(branch), level, &to);
      } else {
        Put(std::move(branch), level, &to);
      }
    }
    *list = std::move(to);
  }

  // Behind the others, or into the last of them.
  void Put(TreeBranch branch, size_t level, TreeList* to) {
    to->push_back(std::move(branch));
    while (to->size() > 1 && CanJoin((*to)[to->size() - 2], to->back())) {
      JoinInto(&(*to)[to->size() - 2], &to->back(), level);
      to->pop_back();
    }
  }

  [[nodiscard]] bool CanJoin(const TreeBranch& a, const TreeBranch& b) const {
    if (!a.node || !b.node || (a.is_placed() && b.is_placed())) return false;
    return a.node->list.size() + b.node->list.size() <= kNamesMin ||
           uint64_t{a.name.page.bytes} + b.name.page.bytes <= uint64_t{inner_bytes_} * 3 / 4;
  }

  void JoinInto(TreeBranch* to, TreeBranch* from, size_t level) {
    state_.Touch(to);
    state_.Touch(from);
    TreeList& list = to->node->list;
    TreeList& more = from->node->list;
    list.insert(list.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
    if (level > 1)
      BalanceList(&list, level - 1);  // two that are beside each other now may join, too
    state_.Refresh(to);
  }

  // Into pages of about the same size.
  void Divide(TreeBranch branch, size_t level, TreeList* to) {
    TreeList names = std::move(branch.node->list);
    uint64_t left = TreeListBytes(names);
    for (size_t i = 0; i < names.size();) {
      const uint64_t parts = (left + inner_bytes_ - 1) / inner_bytes_;
      const uint64_t wanted = (left + parts - 1) / parts;
      TreeBranch part;
      part.node = std::make_unique<TreeNode>();
      TreeList& list = part.node->list;
      uint64_t bytes = 0;
      for (; i < names.size(); ++i) {
        const uint64_t more = PageNameBytes(names[i].name);
        const bool is_full = bytes + more > inner_bytes_ || bytes + more / 2 > wanted;
        if (list.size() >= kNamesMin && is_full) break;
        list.push_back(std::move(names[i]));
        bytes += more;
      }
      left -= bytes;
      state_.Refresh(&part);
      Put(std::move(part), level, to);
    }
  }

  // The only page of the top level gives its names to the root, if they have room there.
  bool PullUp() {
    if (order_.height == 0 || order_.list.size() != 1) return false;
    TreeBranch& only = order_.list.front();
    if (!only.node || TopBytes(only.node->list) > top_bytes_) return false;
    state_.Touch(&only);
    TreeList list = std::move(only.node->list);
    order_.list = std::move(list);
    --order_.height;
    return true;
  }

  bool PushDown() {
    if (order_.height == kTreeHeightMax || order_.list.size() < 2) return false;
    if (TopBytes(order_.list) <= top_bytes_) return false;
    TreeBranch page;
    page.node = std::make_unique<TreeNode>();
    page.node->list = std::move(order_.list);
    ++order_.height;
    order_.list.clear();
    Divide(std::move(page), order_.height, &order_.list);
    return true;
  }

  TreeState& state_;
  TreeOrder& order_;
  const uint32_t inner_bytes_;
  const uint64_t top_bytes_;
};

// Pages without a place, those below first.
template <typename Branch, typename Visit>
void ForEachNewPage(Branch& branch, size_t level, const Visit& visit) {
  if (branch.is_placed()) return;
  if (level > 0) {
    for (auto& below : branch.node->list) ForEachNewPage(below, level - 1, visit);
  }
  visit(branch, level);
}

void VisitPlacedPages(const TreeList& list, size_t level,
                      const std::function<void(const PageName&, bool is_leaf)>& visit) {
  for (const TreeBranch& branch : list) {
    if (branch.is_placed()) visit(branch.name, level == 0);
    if (level > 0 && branch.node) VisitPlacedPages(branch.node->list, level - 1, visit);
  }
}

}  // namespace

void TreeState::Balance() {
  if (is_damaged) return;
  for (TreeOrder& order : orders) {
    if (order.is_changed) OrderBalance(this, &order).Run();
  }
}

void Tree::Balance() { state_->Balance(); }

void Tree::ForEachPage(const std::function<void(const PageName&, bool is_leaf)>& visit) const {
  for (const TreeOrder& order : state_->orders) VisitPlacedPages(order.list, order.height, visit);
}

std::vector<uint32_t> Tree::NewPageBytes() const {
  std::vector<uint32_t> bytes;
  for (const TreeOrder& order : state_->orders) {
    for (const TreeBranch& branch : order.list) {
      ForEachNewPage(branch, order.height, [&](const TreeBranch& page, size_t /*level*/) {
        bytes.push_back(page.name.page.bytes);
      });
    }
  }
  return bytes;
}

void Tree::Place(std::span<const PageRef> places,
                 const std::function<void(const PageRef&, std::string_view bytes)>& write) {
  size_t next = 0;
  const auto place = [&](TreeBranch& branch, size_t level) {
    TreeNode& node = *branch.node;
    if (level > 0) {
      node.own.clear();
      for (const TreeBranch& below : node.list) AppendPageName(below.name, &node.own);
      node.bytes = node.own;
    }
    CHECK(next < places.size() && node.bytes.size() == branch.name.page.bytes);
    PageRef page = places[next++];
    page.bytes = branch.name.page.bytes;
    page.checksum = PageChecksum(node.bytes);
    CHECK(!page.addr.is_null() && page.size_class.is_valid() && !page.size_class.is_root());
    CHECK(page.bytes <= page.size_class.bytes());
    branch.name.page = page;
    write(page, node.bytes);
  };
  for (TreeOrder& order : state_->orders) {
    for (TreeBranch& branch : order.list) ForEachNewPage(branch, order.height, place);
  }
  CHECK(next == places.size());
}

std::string Tree::EncodeRoot() const {
  TreeRoot root;
  root.header = state_->header;
  for (const TreeOrder& order : state_->orders) {
    TreeTop& top = root.tops.emplace_back();
    top.height = order.height;
    for (const TreeBranch& branch : order.list) {
      CHECK(branch.is_placed());
      top.names.push_back(branch.name);
    }
    // It counts as lower than any key, whatever it says, and what it says may be long.
    if (!top.names.empty()) top.names.front().first.clear();
  }
  return EncodeTreeRoot(root);
}

size_t Tree::RootBytes() const {
  size_t bytes = TreeRootBytes(state_->header.size(), orders());
  for (const TreeOrder& order : state_->orders) bytes += TopBytes(order.list);
  return bytes;
}

}  // namespace onetrip
