// Fuzz target: whatever a tree's root and pages are, going through the tree ends, and so does a
// change of it; a tree that is sound is sound when it was changed.
//
// The first byte of an input says how many changes follow: what to do, where (two bytes), how many
// leaves, and elements, text and bytes of one. Then the root and the pages, each behind two bytes
// that count it; their addresses are as TreeFuzzPage() says.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/tree/tree.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tree_seeds.h"

namespace onetrip {
namespace {

constexpr size_t kPagesMax = 4096;
constexpr uint64_t kElementsMax = 1ULL << 50;  // above it, a few more may be too many

struct FuzzTreeChange {
  uint8_t what = 0;
  uint16_t where = 0;
  uint8_t leaves = 0;
  NewLeaf leaf;
};

FuzzTreeChange TakeTreeChange(FuzzInput* input) {
  FuzzTreeChange change;
  change.what = input->TakeByte();
  change.where = input->Take<uint16_t>();
  change.leaves = input->TakeByte() % 8;
  change.leaf.elements = input->TakeByte();
  change.leaf.bytes = input->TakeText(input->TakeByte());
  change.leaf.first = change.leaf.bytes.substr(0, change.leaf.bytes.size() / 4);
  return change;
}

class FuzzPages : public PageSource {
 public:
  const std::string_view* Find(const PageRef& page) const override {
    const uint64_t number = page.addr.bits() / kObjectAlignBytes - 1;
    return number < views_.size() ? &views_[number] : nullptr;
  }
  void Add(std::string bytes) { pages_.push_back(std::move(bytes)); }
  // No page is added any more.
  void Close() { views_.assign(pages_.begin(), pages_.end()); }
  [[nodiscard]] size_t size() const { return pages_.size(); }

 private:
  std::deque<std::string> pages_;  // which stay where they are
  std::vector<std::string_view> views_;
};

void GoThroughTree(const TreeRoot& root, const FuzzPages& pages) {
  Tree tree(root, pages, kTreeFuzzLimits);
  for (size_t order = 0; order < tree.orders(); ++order) {
    const uint64_t elements = tree.elements(order);
    LeafPlace place;
    uint64_t seen = 0;
    for (bool is_there = tree.First(order, &place); is_there; is_there = tree.Next(order, &place)) {
      CHECK(place.before == seen && place.elements > 0);
      seen += place.elements;
      CHECK(seen <= elements);
    }
    CHECK(seen == elements || tree.is_damaged() || !tree.missing().empty());
    for (bool is_there = tree.Last(order, &place); is_there;
         is_there = tree.Previous(order, &place)) {
      CHECK(place.before + place.elements <= elements);
    }
  }
  CHECK(!tree.changed() && tree.dropped().empty());
}

bool IsSoundTree(const TreeRoot& root, const FuzzPages& pages) {
  Tree tree(root, pages, kTreeFuzzLimits);
  return tree.NeedAll(false) && !tree.is_damaged();
}

void ChangeTree(const FuzzTreeChange& change, Tree* tree) {
  const size_t order = change.what % tree->orders();
  if ((change.what & 0xe0) == 0xe0) {
    tree->Renew([&](const PageRef& page) { return page.addr.bits() % 48 == change.where % 48; },
                change.leaves);
    return;
  }
  LeafPlace from;
  LeafPlace to;
  const bool is_found = (change.what & 0x40) != 0 ? tree->SeekKey(order, change.leaf.bytes, &from)
                                                  : tree->Seek(order, change.where % 512, &from);
  if (!is_found && tree->elements(order) > 0) return;
  const std::vector<NewLeaf> leaves(change.leaves, change.leaf);
  const uint64_t before = tree->elements(order);
  const bool is_range =
      (change.what & 0x80) != 0 && tree->Seek(order, from.before + change.where / 512, &to);
  if (!is_range) to = from;
  uint64_t added = 0;
  if (!change.leaf.bytes.empty()) added = change.leaf.elements * change.leaves;
  const bool is_done =
      is_range ? tree->ReplaceRange(order, from, to, leaves) : tree->Replace(order, from, leaves);
  const uint64_t taken = to.before + to.elements - from.before;
  CHECK(tree->elements(order) == (is_done ? before - taken + added : before));
}

std::string PlaceFuzzTree(Tree* tree, FuzzPages* pages) {
  tree->Balance();
  std::vector<PageRef> places;
  for (const uint32_t bytes : tree->NewPageBytes()) {
    places.push_back(TreeFuzzPage(pages->size() + places.size(), bytes));
  }
  tree->Place(places,
              [&](const PageRef&, std::string_view bytes) { pages->Add(std::string(bytes)); });
  CHECK(tree->NewPageBytes().empty());
  const std::string root = tree->EncodeRoot();
  CHECK(root.size() == tree->RootBytes());
  return root;
}

void ChangeAll(const TreeRoot& root, const std::vector<FuzzTreeChange>& changes, FuzzPages* pages) {
  const bool was_sound = IsSoundTree(root, *pages);
  for (const TreeTop& top : root.tops) {
    if (ElementsIn(top) > kElementsMax || LeafBytesIn(top) > kElementsMax) return;
  }
  Tree tree(root, *pages, kTreeFuzzLimits);
  for (const FuzzTreeChange& change : changes) ChangeTree(change, &tree);
  std::vector<uint64_t> elements;
  for (size_t order = 0; order < tree.orders(); ++order) elements.push_back(tree.elements(order));
  const std::string value = PlaceFuzzTree(&tree, pages);
  TreeRoot changed;
  CHECK(LoadTreeRoot(value, &changed));
  for (size_t order = 0; order < tree.orders(); ++order) {
    CHECK(ElementsIn(changed.tops[order]) == elements[order]);
  }
  pages->Close();
  if (was_sound) CHECK(IsSoundTree(changed, *pages));
  GoThroughTree(changed, *pages);
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::FuzzInput input(data, size);
  std::vector<onetrip::FuzzTreeChange> changes;
  for (int left = input.TakeByte() % 16; left > 0; --left) {
    changes.push_back(onetrip::TakeTreeChange(&input));
  }
  const std::string value = input.TakeText(input.Take<uint16_t>());
  onetrip::FuzzPages pages;
  while (!input.empty() && pages.size() < onetrip::kPagesMax) {
    pages.Add(input.TakeText(input.Take<uint16_t>()));
  }
  pages.Close();
  onetrip::TreeRoot root;
  if (!onetrip::LoadTreeRoot(value, &root)) return 0;
  CHECK(onetrip::EncodeTreeRoot(root) == value);
  onetrip::GoThroughTree(root, pages);
  onetrip::ChangeAll(root, changes, &pages);
  return 0;
}
