#include "redis_compat/values/list_edit.h"

#include <algorithm>
#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/values/collection_tree.h"

namespace onetrip {
namespace {

bool SeekEnd(Tree& tree, ListEnd end, LeafPlace* leaf) {
  return end == ListEnd::kHead ? tree.First(0, leaf) : tree.Last(0, leaf);
}

ListEnd Opposite(ListEnd end) { return end == ListEnd::kHead ? ListEnd::kTail : ListEnd::kHead; }

ListValue ListOf(const LeafPlace& leaf) { return ListValue::OfEntries(leaf.bytes, leaf.elements); }

// The elements of a leaf that are numbered from `first` to below `end` in the list.
ListStretch StretchOf(const LeafPlace& leaf, uint64_t first, uint64_t end) {
  const uint64_t from = std::max(first, leaf.before) - leaf.before;
  const uint64_t to = std::min(end - leaf.before, leaf.elements);
  return ListOf(leaf).Find(from, to - from);
}

}  // namespace

ListEdit::ListEdit(Tree& tree) : tree_(&tree), packed_({}), size_(tree.elements(0)) {}

bool ListEdit::End(ListEnd end, std::string_view* element) const {
  std::string_view entries = packed_.entries();
  if (tree_ != nullptr) {
    LeafPlace leaf;
    if (!SeekEnd(*tree_, end, &leaf)) return false;
    entries = leaf.bytes;
  }
  return ListCursor(entries, end).Next(element);
}

void ListEdit::Push(ListEnd end, std::span<const std::string_view> elements) {
  if (tree_ == nullptr) {
    made_ = packed_.Push(end, elements);
    return;
  }
  uint64_t bytes = 0;
  for (const std::string_view element : elements) {
    const uint64_t entry = PackedEntryBytes(element.size());
    is_unfit_ |= entry > kPageBytesMax;
    bytes += entry;
  }
  LeafPlace leaf;
  if (!HasRoom(bytes) || !SeekEnd(*tree_, end, &leaf)) return;
  const std::string list = ListOf(leaf).Push(end, elements);
  PutLeaf(leaf, PackedEntries(list), leaf.elements + elements.size(), Opposite(end));
}

uint64_t ListEdit::Take(ListEnd end, uint64_t most, std::string* entries) {
  const uint64_t taken = std::min(most, size_);
  if (entries != nullptr) entries->clear();
  if (tree_ == nullptr) {
    const ListStretch part = packed_.AtEnd(end, taken);
    if (entries != nullptr) *entries = packed_.EntriesOf(part);
    if (taken > 0) made_ = packed_.Without(part);
    return taken;
  }
  const uint64_t first = end == ListEnd::kHead ? 0 : size_ - taken;
  if (entries != nullptr && !CopyElements(*tree_, first, taken, entries)) return taken;
  Cut(first, taken);
  return taken;
}

bool ListEdit::TakeEqual(ListEnd end, std::string_view element) {
  ListStretch found;
  if (!packed_.FindEqual(element, end, &found)) return false;
  made_ = packed_.Without(found);
  return true;
}

void ListEdit::Set(uint64_t index, std::string_view element) {
  if (tree_ == nullptr) {
    made_ = packed_.Replace(packed_.Find(index, 1), {&element, 1});
    return;
  }
  const uint64_t bytes = PackedEntryBytes(element.size());
  is_unfit_ |= bytes > kPageBytesMax;
  LeafPlace leaf;
  if (!HasRoom(bytes) || !tree_->Seek(0, index, &leaf)) return;
  const ListValue old = ListOf(leaf);
  const std::string list = old.Replace(old.Find(index - leaf.before, 1), {&element, 1});
  PutLeaf(leaf, PackedEntries(list), leaf.elements, ListEnd::kHead);
}

void ListEdit::Only(uint64_t first, uint64_t elements) {
  if (tree_ == nullptr) {
    made_ = packed_.Only(packed_.Find(first, elements));
    return;
  }
  if (elements == 0) {
    size_ = 0;
    return;
  }
  LeafPlace leaf;
  // All that both cuts need is asked for at once.
  for (const uint64_t number : {first, first + elements - 1}) tree_->Seek(0, number, &leaf);
  Cut(first + elements, size_ - first - elements);
  Cut(0, first);
}

void ListEdit::Rotate(ListEnd from) {
  if (tree_ == nullptr) {
    made_ = packed_.Rotate(from);
    return;
  }
  LeafPlace leaf;
  std::string_view moved;
  const bool is_there = SeekEnd(*tree_, Opposite(from), &leaf);
  if (!End(from, &moved) || !is_there || size_ < 2) return;
  const std::string element(moved);
  Take(from, 1, nullptr);
  const std::string_view pushed = element;
  Push(Opposite(from), {&pushed, 1});
}

bool ListEdit::HasRoom(uint64_t bytes) {
  is_too_large_ |= tree_->header().size() + tree_->leaf_bytes(0) + bytes > kMaxValueBytes;
  return !is_unfit_ && !is_too_large_;
}

void ListEdit::PutLeaf(const LeafPlace& place, std::string_view entries, uint64_t elements,
                       ListEnd from) {
  std::vector<NewLeaf> leaves;
  if (entries.size() <= tree_->limits().leaf_bytes) {
    leaves.push_back({std::string(entries), elements, {}});
  } else {
    leaves = ListLeaves(entries, from, tree_->limits());
  }
  tree_->Replace(0, place, std::move(leaves));
  UpdateHeader(tree_);
  size_ = tree_->elements(0);
}

void ListEdit::Cut(uint64_t first, uint64_t elements) {
  if (elements == 0) return;
  if (elements == size_) {
    size_ = 0;
    return;
  }
  LeafPlace left;
  LeafPlace right;
  const bool has_left = tree_->Seek(0, first, &left);
  if (!tree_->Seek(0, first + elements - 1, &right) || !has_left) return;
  const ListStretch before = StretchOf(left, left.before, first);
  const uint64_t end = first + elements;
  const ListStretch behind = StretchOf(right, end, right.before + right.elements);
  std::string entries(ListOf(left).EntriesOf(before));
  entries += ListOf(right).EntriesOf(behind);
  std::vector<NewLeaf> leaves;
  if (entries.size() <= tree_->limits().leaf_bytes) {
    leaves.push_back({std::move(entries), before.elements + behind.elements, {}});
  } else {
    leaves = ListLeaves(entries, ListEnd::kHead, tree_->limits());
  }
  tree_->ReplaceRange(0, left, right, std::move(leaves));
  UpdateHeader(tree_);
  size_ = tree_->elements(0);
}

bool CopyElements(Tree& tree, uint64_t first, uint64_t elements, std::string* entries) {
  if (!SeekNumbers(tree, 0, first, elements)) return false;
  LeafPlace leaf;
  const uint64_t end = first + elements;
  for (uint64_t next = first; next < end && tree.Seek(0, next, &leaf);) {
    *entries += ListOf(leaf).EntriesOf(StretchOf(leaf, next, end));
    next = leaf.before + leaf.elements;
  }
  return true;
}

}  // namespace onetrip
