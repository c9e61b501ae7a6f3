#include "client_core/tree/tree.h"

#include <algorithm>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/tree/tree_state.h"

namespace onetrip {

bool TreeState::Damaged() {
  is_damaged = true;
  return false;
}

TreeNode* TreeState::Load(TreeBranch* branch, size_t level) {
  if (branch->node) return branch->node.get();
  const PageRef& page = branch->name.page;
  const std::string_view* bytes = pages == nullptr ? nullptr : pages->Find(page);
  if (bytes == nullptr) {
    if (asked.insert(page.addr.bits()).second) {
      missing.push_back(page);
      missing_bytes += page.bytes;
    }
    return nullptr;
  }
  auto node = std::make_unique<TreeNode>();
  const bool is_sound = bytes->size() == page.bytes &&
                        (level == 0 || LoadInner(branch->name, *bytes, level, node.get()));
  if (!is_sound) {
    Damaged();
    return nullptr;
  }
  node->bytes = *bytes;
  branch->node = std::move(node);
  return branch->node.get();
}

bool TreeState::LoadInner(const PageName& name, std::string_view bytes, size_t level,
                          TreeNode* node) {
  TreeTop top;
  if (!LoadInnerBelow(name, bytes, level, &top) ||
      !inner_pages.insert(name.page.addr.bits()).second) {
    return false;
  }
  node->list.reserve(top.names.size());
  for (PageName& below : top.names) node->list.push_back({std::move(below), nullptr});
  return true;
}

bool TreeState::LoadAll(TreeBranch* branch, size_t level, bool inner_only) {
  if (level == 0 && inner_only) return true;
  TreeNode* node = Load(branch, level);
  if (node == nullptr) return false;
  if (level == 0 || (level == 1 && inner_only)) return true;
  bool is_loaded = true;
  for (TreeBranch& below : node->list) is_loaded &= LoadAll(&below, level - 1, inner_only);
  return is_loaded;
}

bool TreeState::LoadAll(bool inner_only) {
  bool is_loaded = !is_damaged;
  for (TreeOrder& order : orders) {
    for (TreeBranch& branch : order.list) is_loaded &= LoadAll(&branch, order.height, inner_only);
  }
  return is_loaded;
}

template <typename Choose>
bool TreeState::Descend(size_t order, Choose choose, LeafPlace* place) {
  if (is_damaged || orders[order].list.empty()) return false;
  LeafPlace found;
  TreeList* list = &orders[order].list;
  for (size_t level = orders[order].height;; --level) {
    const size_t at = choose(found.path.size(), *list, &found.before);
    if (at >= list->size()) return false;
    TreeBranch& branch = (*list)[at];
    TreeNode* node = Load(&branch, level);
    if (node == nullptr) return false;
    found.path.push_back(static_cast<uint32_t>(at));
    if (at + 1 < list->size()) found.last = (*list)[at + 1].name.first;
    if (level == 0) {
      found.bytes = node->bytes;
      found.elements = branch.name.elements;
      *place = std::move(found);
      return true;
    }
    list = &node->list;
  }
}

TreeSteps TreeState::StepsTo(size_t order, const LeafPlace& place) {
  CHECK(place.path.size() == orders[order].height + size_t{1});
  TreeSteps steps;
  TreeList* list = &orders[order].list;
  for (const uint32_t at : place.path) {
    CHECK(list != nullptr && at < list->size());
    steps.push_back({list, at});
    TreeNode* node = steps.back().branch().node.get();
    list = node == nullptr ? nullptr : &node->list;
  }
  return steps;
}

bool TreeState::Walk(size_t order, bool forwards, LeafPlace* place) {
  TreeSteps steps = StepsTo(order, *place);
  const auto has_more = [&](const TreeStep& step) {
    return forwards ? step.at + 1 < step.list->size() : step.at > 0;
  };
  while (!steps.empty() && !has_more(steps.back())) steps.pop_back();
  if (steps.empty()) return false;
  steps.back().at += forwards ? 1 : -1;
  const auto choose = [&](size_t depth, const TreeList& list, uint64_t* before) {
    size_t at = forwards ? 0 : list.size() - 1;
    if (depth < steps.size()) at = steps[depth].at;
    for (size_t i = 0; i < at; ++i) *before += list[i].name.elements;
    return at;
  };
  return Descend(order, choose, place);
}

void TreeState::NeedInwards(bool from_front, uint64_t elements) {
  TreeList* list = &orders[0].list;
  for (size_t level = orders[0].height; level > 0 && !list->empty(); --level) {
    TreeNode* const node = (from_front ? list->front() : list->back()).node.get();
    if (node == nullptr) return;
    list = &node->list;
  }
  uint64_t needed = 0;
  for (size_t i = 0; i < list->size() && needed < elements; ++i) {
    TreeBranch& leaf = (*list)[from_front ? i : list->size() - 1 - i];
    if (leaf.node) continue;
    // The first one that is not there may be none that a change has met.
    if (needed == 0 && !asked.contains(leaf.name.page.addr.bits())) return;
    if (needed > 0 && missing_bytes + leaf.name.page.bytes > limits.loaded_bytes / 4) return;
    Load(&leaf, 0);
    needed += leaf.name.elements;
  }
}

Tree::Tree(TreeRoot root, const PageSource& pages, const TreeLimits& limits)
    : state_(std::make_unique<TreeState>()) {
  state_->header = std::move(root.header);
  state_->limits = limits;
  state_->pages = &pages;
  state_->orders.resize(root.tops.size());
  for (size_t i = 0; i < root.tops.size(); ++i) {
    TreeOrder& order = state_->orders[i];
    order.height = root.tops[i].height;
    order.list.reserve(root.tops[i].names.size());
    for (PageName& name : root.tops[i].names) order.list.push_back({std::move(name), nullptr});
  }
}

Tree::Tree(std::string header, std::vector<std::vector<NewLeaf>> orders, const TreeLimits& limits)
    : state_(std::make_unique<TreeState>()) {
  CHECK(!orders.empty() && orders.size() <= kTreeTopsMax);
  state_->header = std::move(header);
  state_->limits = limits;
  state_->is_changed = true;
  state_->orders.resize(orders.size());
  for (size_t i = 0; i < orders.size(); ++i) {
    state_->orders[i].is_changed = true;
    for (NewLeaf& leaf : orders[i]) {
      if (leaf.elements == 0 || leaf.bytes.empty()) continue;
      state_->orders[i].list.push_back(NewLeafBranch(std::move(leaf)));
    }
  }
}

Tree::~Tree() = default;
Tree::Tree(Tree&&) noexcept = default;
Tree& Tree::operator=(Tree&&) noexcept = default;

const TreeLimits& Tree::limits() const { return state_->limits; }
const std::string& Tree::header() const { return state_->header; }

void Tree::set_header(std::string header) {
  if (header == state_->header) return;
  state_->header = std::move(header);
  state_->is_changed = true;
}

size_t Tree::orders() const { return state_->orders.size(); }

uint64_t Tree::elements(size_t order) const {
  uint64_t elements = 0;
  for (const TreeBranch& branch : state_->orders[order].list) elements += branch.name.elements;
  return elements;
}

uint64_t Tree::leaf_bytes(size_t order) const {
  uint64_t bytes = 0;
  for (const TreeBranch& branch : state_->orders[order].list) bytes += branch.name.leaf_bytes;
  return bytes;
}

bool Tree::Seek(size_t order, uint64_t number, LeafPlace* place) {
  const auto choose = [number](size_t /*depth*/, const TreeList& list, uint64_t* before) {
    size_t at = 0;
    for (; at < list.size() && number - *before >= list[at].name.elements; ++at) {
      *before += list[at].name.elements;
    }
    return at;
  };
  return state_->Descend(order, choose, place);
}

bool Tree::SeekKey(size_t order, std::string_view key, LeafPlace* place) {
  const auto choose = [key](size_t /*depth*/, const TreeList& list, uint64_t* before) {
    // Keys below the first name's are in its page, too.
    const auto behind = std::upper_bound(list.begin() + 1, list.end(), key,
                                         [](std::string_view wanted, const TreeBranch& branch) {
                                           return wanted < branch.name.first;
                                         });
    const auto at = static_cast<size_t>(behind - list.begin()) - 1;
    for (size_t i = 0; i < at; ++i) *before += list[i].name.elements;
    return at;
  };
  return state_->Descend(order, choose, place);
}

bool Tree::First(size_t order, LeafPlace* place) { return Seek(order, 0, place); }

bool Tree::Last(size_t order, LeafPlace* place) {
  const auto choose = [](size_t /*depth*/, const TreeList& list, uint64_t* /*before*/) {
    return list.size() - 1;
  };
  if (!state_->Descend(order, choose, place)) return false;
  place->before = elements(order) - place->elements;
  return true;
}

bool Tree::Next(size_t order, LeafPlace* place) { return state_->Walk(order, true, place); }
bool Tree::Previous(size_t order, LeafPlace* place) { return state_->Walk(order, false, place); }

bool Tree::Replace(size_t order, const LeafPlace& place, std::vector<NewLeaf> leaves) {
  return state_->Replace(order, place, place, std::move(leaves));
}

bool Tree::ReplaceRange(size_t order, const LeafPlace& from, const LeafPlace& to,
                        std::vector<NewLeaf> leaves) {
  return state_->Replace(order, from, to, std::move(leaves));
}

size_t Tree::Renew(const std::function<bool(const PageRef&)>& wanted, size_t most) {
  return state_->Renew(wanted, most);
}

bool Tree::changed() const { return state_->is_changed; }
bool Tree::has_root() const { return state_->pages != nullptr; }
const std::vector<PageRef>& Tree::missing() const { return state_->missing; }
uint64_t Tree::missing_bytes() const { return state_->missing_bytes; }
bool Tree::is_damaged() const { return state_->is_damaged; }
bool Tree::NeedAll(bool inner_only) { return state_->LoadAll(inner_only); }
void Tree::NeedInwards(uint64_t elements) {
  for (const bool from_front : {true, false}) state_->NeedInwards(from_front, elements);
}
const std::vector<PageRef>& Tree::dropped() const { return state_->dropped; }

}  // namespace onetrip
