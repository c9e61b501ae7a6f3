// Leaves that come and go: the pages above them are written anew.
#include <algorithm>
#include <iterator>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/tree/tree_state.h"

namespace onetrip {
namespace {

// Smaller than that, a page joins with one beside it ...
constexpr uint64_t SmallPageBytes(uint32_t limit) { return limit / 4; }
// ... if together they are not larger than that, so that the next change does not divide them.
constexpr uint64_t JoinedPageBytes(uint32_t limit) { return uint64_t{limit} * 3 / 4; }

// The bytes of some names of a page.
uint64_t NamesBytes(const TreeList& list, size_t begin, size_t end) {
  uint64_t bytes = 0;
  for (size_t i = begin; i < end; ++i) bytes += PageNameBytes(list[i].name);
  return bytes;
}

// One change of an order, from the look at it to the end.
class LeafChange {
 public:
  LeafChange(TreeState* state, size_t order, std::vector<NewLeaf> leaves)
      : state_(*state), order_(state->orders[order]), leaves_(std::move(leaves)) {}

  // The ways to the first leaf that goes and to the last one.
  void SetWays(TreeSteps left, TreeSteps right) {
    left_ = std::move(left);
    right_ = std::move(right);
    last_ = left_.size() - 1;
    while (fork_ < last_ && left_[fork_].at == right_[fork_].at) ++fork_;
    CHECK(left_[fork_].at <= right_[fork_].at);
    begin_ = left_[last_].at;
    end_ = fork_ == last_ ? right_[last_].at + 1 : left_[last_].list->size();
  }

  // Joins the leaf that comes with one beside it, if it is small. False: a page is missing.
  bool Join();
  // False: an inner page is missing; what goes with it is not known.
  bool LoadBetween();
  // Balance() is to find the pages with which small ones on the way are to be joined.
  bool LoadBesideSmall();
  // Nothing is missing any more.
  void Apply();

 private:
  [[nodiscard]] size_t Level(size_t depth) const { return last_ - depth; }
  bool LoadBeside(size_t depth, uint64_t bytes);
  // A leaf comes in the place of one that goes.
  [[nodiscard]] bool IsOneForOne() const {
    return fork_ == last_ && end_ - begin_ == 1 && leaves_.size() == 1;
  }
  void PutOneForOne();
  void TakeOutBetween();
  void PutLeaves();

  TreeState& state_;
  TreeOrder& order_;
  std::vector<NewLeaf> leaves_;
  TreeSteps left_;
  TreeSteps right_;
  size_t last_ = 0;   // step of both ways, which leads to a leaf
  size_t fork_ = 0;   // the step where they part; the last one if they do not
  size_t begin_ = 0;  // the leaves that go, in the first one's list
  size_t end_ = 0;
};

bool LeafChange::Join() {
  if (leaves_.size() != 1) return true;
  NewLeaf& leaf = leaves_.front();
  if (leaf.bytes.size() >= SmallPageBytes(state_.limits.leaf_bytes)) return true;
  TreeList& list = *left_[last_].list;
  const auto fits = [&](size_t at) {
    return list[at].name.page.bytes + leaf.bytes.size() <=
           JoinedPageBytes(state_.limits.leaf_bytes);
  };
  const bool with_next = end_ < list.size() && fits(end_);
  if (!with_next && (begin_ == 0 || !fits(begin_ - 1))) return true;
  TreeBranch& beside = list[with_next ? end_ : begin_ - 1];
  const TreeNode* node = state_.Load(&beside, 0);
  if (node == nullptr) return false;
  if (with_next && Planted(Bug::kJoinDropsLeaf)) {
    ++end_;
    return true;
  }
  leaf.elements += beside.name.elements;
  if (with_next) {
    leaf.bytes += node->bytes;
    ++end_;
  } else {
    leaf.bytes.insert(0, node->bytes);
    --begin_;
  }
  return true;
}

bool LeafChange::LoadBetween() {
  bool is_loaded = true;
  const auto load = [&](TreeList* list, size_t begin, size_t end, size_t depth) {
    for (size_t i = begin; i < end; ++i) {
      is_loaded &= state_.LoadAll(&(*list)[i], Level(depth), true);
    }
  };
  for (size_t depth = fork_; depth < last_; ++depth) {
    if (depth == fork_) {
      load(left_[depth].list, left_[depth].at + 1, right_[depth].at, depth);
    } else {
      load(left_[depth].list, left_[depth].at + 1, left_[depth].list->size(), depth);
      load(right_[depth].list, 0, right_[depth].at, depth);
    }
  }
  return is_loaded;
}

bool LeafChange::LoadBesideSmall() {
  if (leaves_.size() > 1) return true;  // it grows
  bool is_loaded = true;
  uint64_t gone = NamesBytes(*left_[last_].list, begin_ + leaves_.size(), end_);
  for (size_t depth = last_; depth-- > 0;) {
    const TreeStep& step = left_[depth];
    const uint64_t bytes = step.branch().name.page.bytes - gone;  // once the change is made
    size_t end = step.at + 1;
    if (depth == fork_) end = std::max(end, right_[depth].at);
    if (depth > fork_) end = step.list->size();
    gone = NamesBytes(*step.list, bytes > 0 ? step.at + 1 : step.at, end);
    if (bytes > 0) is_loaded &= LoadBeside(depth, bytes);
  }
  return is_loaded;
}

bool LeafChange::LoadBeside(size_t depth, uint64_t bytes) {
  const uint32_t limit = state_.limits.inner_bytes;
  if (bytes >= SmallPageBytes(limit)) return true;
  TreeList& list = *left_[depth].list;
  const size_t at = left_[depth].at;
  const auto fits = [&](size_t beside) {
    return list[beside].name.page.bytes + bytes <= JoinedPageBytes(limit);
  };
  const bool next_stays = fork_ == last_ || depth < fork_;
  if (next_stays && at + 1 < list.size() && fits(at + 1)) {
    return state_.Load(&list[at + 1], Level(depth)) != nullptr;
  }
  return at == 0 || !fits(at - 1) || state_.Load(&list[at - 1], Level(depth)) != nullptr;
}

void LeafChange::Apply() {
  order_.is_changed = true;
  for (size_t depth = 0; depth < last_; ++depth) {
    state_.Touch(&left_[depth].branch());
    state_.Touch(&right_[depth].branch());
  }
  if (IsOneForOne()) {
    PutOneForOne();
    return;
  }
  if (fork_ < last_) TakeOutBetween();
  PutLeaves();
  for (size_t depth = last_; depth-- > 0;) {
    if (left_[depth + 1].list->empty()) {
      state_.Remove(left_[depth].list, left_[depth].at, left_[depth].at + 1, Level(depth));
    } else {
      state_.Refresh(&left_[depth].branch());
    }
  }
  if (order_.list.empty()) order_.height = 0;
}

// The names above stay, but for their sums: all becomes as Refresh() would have it, without a look
// at what lies beside the way.
void LeafChange::PutOneForOne() {
  TreeBranch& branch = (*left_[last_].list)[begin_];
  state_.DropAll(branch, 0);
  const uint64_t elements_before = branch.name.elements;
  const uint64_t leaf_bytes_before = branch.name.leaf_bytes;
  const size_t name_bytes_before = PageNameBytes(branch.name);
  leaves_.front().first = std::move(branch.name.first);
  branch = NewLeafBranch(std::move(leaves_.front()));
  // A loss is added modulo 2^64, and 2^32.
  const uint64_t elements = branch.name.elements - elements_before;
  const uint64_t leaf_bytes = branch.name.leaf_bytes - leaf_bytes_before;
  size_t name_bytes = PageNameBytes(branch.name) - name_bytes_before;
  for (size_t depth = last_; depth-- > 0;) {
    PageName& above = left_[depth].branch().name;
    const size_t above_bytes = PageNameBytes(above);
    if (!Planted(Bug::kPageCountKept)) above.elements += elements;
    above.leaf_bytes += leaf_bytes;
    above.page.bytes += static_cast<uint32_t>(name_bytes);
    name_bytes = PageNameBytes(above) - above_bytes;
  }
}

// Takes out all that lies between the two ways, the last leaf included, but for leaves beside the
// first one.
void LeafChange::TakeOutBetween() {
  for (size_t depth = last_; depth > fork_; --depth) {
    const bool goes = depth == last_ || right_[depth + 1].list->empty();
    TreeList* list = right_[depth].list;
    state_.Remove(list, 0, right_[depth].at + (goes ? 1 : 0), Level(depth));
    if (!goes) state_.Refresh(&list->front());
  }
  for (size_t depth = fork_ + 1; depth < last_; ++depth) {
    const TreeStep& from = left_[depth];
    state_.Remove(from.list, from.at + 1, from.list->size(), Level(depth));
  }
  const TreeStep& from = left_[fork_];
  const bool goes = right_[fork_ + 1].list->empty();
  state_.Remove(from.list, from.at + 1, right_[fork_].at + (goes ? 1 : 0), Level(fork_));
  if (!goes) state_.Refresh(&(*from.list)[from.at + 1]);
}

void LeafChange::PutLeaves() {
  TreeList& list = *left_[last_].list;
  if (!leaves_.empty()) leaves_.front().first = list[begin_].name.first;
  for (size_t i = begin_; i < end_; ++i) state_.DropAll(list[i], 0);
  const size_t kept = std::min(leaves_.size(), end_ - begin_);
  for (size_t i = 0; i < kept; ++i) list[begin_ + i] = NewLeafBranch(std::move(leaves_[i]));
  list.erase(list.begin() + static_cast<ptrdiff_t>(begin_ + kept),
             list.begin() + static_cast<ptrdiff_t>(end_));
  TreeList more;
  for (size_t i = kept; i < leaves_.size(); ++i)
    more.push_back(NewLeafBranch(std::move(leaves_[i])));
  list.insert(list.begin() + static_cast<ptrdiff_t>(begin_ + kept),
              std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The branches, in order of the tree, that are to be renewed.
struct RenewPlan {
  const std::function<bool(const PageRef&)>& wanted;
  size_t most;
  std::unordered_set<const TreeBranch*> chosen;
};

bool ChoosePages(TreeState* state, TreeList* list, size_t level, RenewPlan* plan) {
  bool is_loaded = true;
  for (TreeBranch& branch : *list) {
    if (plan->chosen.size() == plan->most) break;
    if (branch.is_placed() && plan->wanted(branch.name.page)) {
      plan->chosen.insert(&branch);
      is_loaded &= state->Load(&branch, level) != nullptr;
    }
    if (level > 0) is_loaded &= ChoosePages(state, &branch.node->list, level - 1, plan);
  }
  return is_loaded;
}

// True: some were.
bool RenewPages(TreeState* state, TreeList* list, size_t level, const RenewPlan& plan) {
  bool is_any = false;
  for (TreeBranch& branch : *list) {
    const bool is_below = level > 0 && RenewPages(state, &branch.node->list, level - 1, plan);
    if (!is_below && !plan.chosen.contains(&branch)) continue;
    state->Touch(&branch);
    is_any = true;
  }
  return is_any;
}

}  // namespace

bool TreeState::Replace(size_t order, const LeafPlace& from, const LeafPlace& to,
                        std::vector<NewLeaf> leaves) {
  if (is_damaged) return false;
  std::erase_if(leaves,
                [](const NewLeaf& leaf) { return leaf.elements == 0 || leaf.bytes.empty(); });
  TreeOrder& changed = orders[order];
  if (changed.list.empty()) {
    CHECK(from.path.empty() && to.path.empty());
    for (NewLeaf& leaf : leaves) changed.list.push_back(NewLeafBranch(std::move(leaf)));
    changed.is_changed = true;
    is_changed = true;
    return true;
  }
  LeafChange change(this, order, std::move(leaves));
  change.SetWays(StepsTo(order, from), StepsTo(order, to));
  bool is_loaded = change.LoadBetween();
  is_loaded &= change.Join();
  is_loaded &= change.LoadBesideSmall();
  if (!is_loaded) return false;
  is_changed = true;
  change.Apply();
  return true;
}

void TreeState::Touch(TreeBranch* branch) {
  if (!branch->is_placed()) return;
  dropped.push_back(branch->name.page);
  PageRef page;
  page.bytes = branch->name.page.bytes;
  branch->name.page = page;
}

void TreeState::Refresh(TreeBranch* branch) const {
  const TreeList& list = branch->node->list;
  PageName& name = branch->name;
  const uint64_t elements_before = name.elements;
  name.elements = 0;
  name.leaf_bytes = 0;
  for (const TreeBranch& below : list) {
    name.elements += below.name.elements;
    name.leaf_bytes += below.name.leaf_bytes;
  }
  if (Planted(Bug::kPageCountKept) && elements_before != 0) name.elements = elements_before;
  name.page.bytes = static_cast<uint32_t>(TreeListBytes(list));
  // Where leaves went from its front, the keys between belong to the leaf before it.
  name.first = list.front().name.first;
}

void TreeState::Remove(TreeList* list, size_t begin, size_t end, size_t level) {
  for (size_t i = begin; i < end; ++i) DropAll((*list)[i], level);
  list->erase(list->begin() + static_cast<ptrdiff_t>(begin),
              list->begin() + static_cast<ptrdiff_t>(end));
}

void TreeState::DropAll(const TreeBranch& branch, size_t level) {
  if (branch.is_placed()) dropped.push_back(branch.name.page);
  if (level == 0) return;
  CHECK(branch.node != nullptr);
  for (const TreeBranch& below : branch.node->list) DropAll(below, level - 1);
}

size_t TreeState::Renew(const std::function<bool(const PageRef&)>& wanted, size_t most) {
  if (most == 0 || !LoadAll(true)) return 0;
  RenewPlan plan{wanted, most, {}};
  bool is_loaded = true;
  for (TreeOrder& order : orders) {
    is_loaded &= ChoosePages(this, &order.list, order.height, &plan);
  }
  if (!is_loaded || plan.chosen.empty()) return 0;
  is_changed = true;
  for (TreeOrder& order : orders) {
    order.is_changed |= RenewPages(this, &order.list, order.height, plan);
  }
  return plan.chosen.size();
}

TreeBranch NewLeafBranch(NewLeaf leaf) {
  CHECK(leaf.bytes.size() <= kPageBytesMax);
  TreeBranch branch;
  branch.name.page.bytes = static_cast<uint32_t>(leaf.bytes.size());
  branch.name.elements = leaf.elements;
  branch.name.leaf_bytes = leaf.bytes.size();
  branch.name.first = std::move(leaf.first);
  branch.node = std::make_unique<TreeNode>();
  branch.node->own = std::move(leaf.bytes);
  branch.node->bytes = branch.node->own;
  return branch;
}

size_t TreeListBytes(const TreeList& list) {
  size_t bytes = 0;
  for (const TreeBranch& branch : list) bytes += PageNameBytes(branch.name);
  return bytes;
}

}  // namespace onetrip
