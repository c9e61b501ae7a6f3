// Pages that rotted: reading and changing a tree of them ends, and finds the damage or another
// tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"
#include "client_core/tree/tree.h"
#include "tests/support/scale.h"
#include "tests/unit/tree_pages.h"

namespace onetrip {
namespace {

constexpr TreeLimits kRottenLimits{100, 120, 120, 400};

struct RottenTree {
  std::string root;
  PageMemory memory;
};

RottenTree SoundTree(Rng* rng) {
  std::vector<std::vector<NewLeaf>> orders;
  for (const bool has_keys : {false, true}) {
    Texts texts;
    for (uint64_t left = rng->Below(400); left > 0; --left) {
      texts.push_back(std::string(rng->Below(12), 't') + std::to_string(left + 1000));
    }
    if (has_keys) std::sort(texts.begin(), texts.end());
    orders.push_back(LeavesOf(texts, has_keys, kRottenLimits.leaf_bytes));
  }
  RottenTree made;
  Tree tree("header", std::move(orders), kRottenLimits);
  made.root = PlaceTree(&tree, &made.memory, nullptr);
  return made;
}

std::string& SomePage(PageMemory* memory, Rng* rng) {
  auto page = memory->pages().begin();
  std::advance(page, rng->Below(memory->pages().size()));
  return page->second;
}

void Damage(std::string* bytes, Rng* rng) {
  if (bytes->empty()) return;
  const size_t at = rng->Below(bytes->size());
  switch (rng->Below(6)) {
    case 0:
      bytes->resize(at);
      break;
    case 1:
      bytes->append(*bytes);
      break;
    case 2:
      (*bytes)[at] = static_cast<char>(rng->Next());
      break;
    case 3:
      bytes->replace(at, 8,
                     std::string(8, static_cast<char>(rng->Next())).substr(0, bytes->size() - at));
      break;
    default:
      (*bytes)[at] ^= static_cast<char>(1 << rng->Below(8));
  }
}

void Rot(RottenTree* tree, Rng* rng) {
  for (uint64_t left = 1 + rng->Below(3); left > 0; --left) {
    if (rng->Below(4) == 0 || tree->memory.pages().empty()) {
      Damage(&tree->root, rng);
    } else if (rng->Below(4) == 0) {
      std::string& page = SomePage(&tree->memory, rng);
      page = SomePage(&tree->memory, rng);
    } else {
      Damage(&SomePage(&tree->memory, rng), rng);
    }
  }
}

NewLeaf SomeLeaf(Rng* rng) {
  NewLeaf leaf;
  leaf.bytes.assign(rng->Below(150), 'n');
  leaf.elements = rng->Below(5);
  leaf.first.assign(rng->Below(10), static_cast<char>(rng->Next()));
  return leaf;
}

// Each leaf at most once, there and back.
void WalkAll(Tree* tree, size_t order, size_t pages) {
  LeafPlace place;
  size_t steps = 0;
  for (bool is_there = tree->First(order, &place); is_there; is_there = tree->Next(order, &place)) {
    ASSERT_LE(++steps, pages);
  }
  steps = 0;
  for (bool is_there = tree->Last(order, &place); is_there;
       is_there = tree->Previous(order, &place)) {
    ASSERT_LE(++steps, pages);
  }
}

void ChangeSome(Tree* tree, Rng* rng) {
  for (uint64_t left = rng->Below(10); left > 0; --left) {
    const size_t order = rng->Below(tree->orders());
    LeafPlace from;
    LeafPlace to;
    const bool is_found = rng->Below(2) == 0
                              ? tree->Seek(order, rng->Below(tree->elements(order) + 1), &from)
                              : tree->SeekKey(order, std::string(rng->Below(10), 't'), &from);
    if (!is_found) continue;
    std::vector<NewLeaf> leaves;
    for (uint64_t more = rng->Below(4); more > 0; --more) leaves.push_back(SomeLeaf(rng));
    if (rng->Below(3) > 0 || !tree->Seek(order, rng->Below(tree->elements(order)), &to) ||
        to.path < from.path) {
      tree->Replace(order, from, std::move(leaves));
    } else {
      tree->ReplaceRange(order, from, to, std::move(leaves));
    }
  }
  if (rng->Below(3) == 0) {
    tree->Renew([&](const PageRef&) { return rng->Below(3) == 0; }, rng->Below(10));
  }
}

// True: the damage was seen.
bool UseAll(RottenTree* rotten, Rng* rng) {
  TreeRoot root;
  if (!LoadTreeRoot(rotten->root, &root)) return true;
  LoadedPages loaded;
  const PageMemory memory = rotten->memory;
  for (const auto& [addr, bytes] : memory.pages()) {
    PageRef page;
    page.addr = GlobalAddr(addr);
    if (rng->Below(50) > 0) loaded.Load(memory, page);
  }
  Tree reading(root, loaded, kRottenLimits);
  for (size_t order = 0; order < reading.orders(); ++order) {
    WalkAll(&reading, order, memory.pages().size());
  }
  reading.NeedAll(false);
  size_t pages = 0;
  reading.ForEachPage([&](const PageName&, bool) { ++pages; });
  EXPECT_LE(reading.missing().size(), pages);

  Tree tree(root, loaded, kRottenLimits);
  if (rng->Below(2) == 0) tree.NeedAll(rng->Below(2) == 0);
  ChangeSome(&tree, rng);
  const std::string changed = PlaceTree(&tree, &rotten->memory, nullptr);
  EXPECT_EQ(changed.size(), tree.RootBytes());
  TreeRoot again;
  EXPECT_TRUE(tree.is_damaged() || LoadTreeRoot(changed, &again));
  return reading.is_damaged() || !reading.missing().empty();
}

TEST(TreeDamageTest, WalksAndChangesEnd) {
  int seen = 0;
  const int count = Scaled(6000);
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(static_cast<uint64_t>(seed));
    RottenTree tree = SoundTree(&rng);
    Rot(&tree, &rng);
    if (UseAll(&tree, &rng)) ++seen;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen, count / 4);
}

// Each page names the page below it many times; to look at all of it would take longer than there
// is time.
TEST(TreeDamageTest, PagesThatNameOnePageManyTimesAreDamaged) {
  PageMemory memory;
  PageName name;
  std::string bytes = "leaf";
  name.elements = 1;
  name.leaf_bytes = bytes.size();
  for (int level = 0; level <= kTreeHeightMax; ++level) {
    name.page = memory.Allocate(static_cast<uint32_t>(bytes.size()));
    name.page.bytes = static_cast<uint32_t>(bytes.size());
    name.page.checksum = PageChecksum(bytes);
    memory.Write(name.page, bytes);
    bytes.clear();
    for (int i = 0; i < 16; ++i) AppendPageName(name, &bytes);
    if (level == kTreeHeightMax) break;
    name.elements *= 16;
    name.leaf_bytes *= 16;
  }
  TreeRoot root;
  root.tops.push_back({kTreeHeightMax, {name, name}});
  LoadedPages loaded;
  for (const auto& [addr, page_bytes] : memory.pages()) {
    PageRef page;
    page.addr = GlobalAddr(addr);
    loaded.Load(memory, page);
  }
  Tree tree(root, loaded, TreeLimits());
  EXPECT_FALSE(tree.NeedAll(false));
  EXPECT_TRUE(tree.is_damaged());
}

TEST(TreeDamageTest, CountsThatDoNotAddUpAreDamage) {
  Rng rng(1);
  RottenTree made = SoundTree(&rng);
  TreeRoot root;
  ASSERT_TRUE(LoadTreeRoot(made.root, &root));
  ASSERT_GT(root.tops[1].height, 0);
  LoadedPages loaded;
  for (const auto& [addr, bytes] : made.memory.pages()) {
    PageRef page;
    page.addr = GlobalAddr(addr);
    loaded.Load(made.memory, page);
  }
  LeafPlace place;
  for (int what = 0; what < 4; ++what) {
    TreeRoot other = root;
    PageName& name = other.tops[1].names[0];
    if (what == 1) ++name.elements;
    if (what == 2) --name.leaf_bytes;
    if (what == 3) --name.page.bytes;
    Tree tree(other, loaded, kRottenLimits);
    EXPECT_EQ(tree.First(1, &place), what == 0);
    EXPECT_EQ(tree.is_damaged(), what != 0);
    EXPECT_TRUE(tree.missing().empty());
    EXPECT_EQ(tree.NeedAll(false), what == 0);
  }
}

}  // namespace
}  // namespace onetrip
