// Trees change by change: which pages a change needs, writes and leaves behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/tree/tree.h"
#include "tests/unit/tree_pages.h"

namespace onetrip {
namespace {

// Ten elements of ten bytes fill a leaf.
constexpr TreeLimits kTenLimits{100, 200, 100, 400};

std::string Key(int number) {
  const std::string digits = std::to_string(number);
  return std::string(9 - digits.size(), '0') + digits;
}

// A tree of one order with keys in a memory, one commit after the other.
class TreeChangeTest : public testing::Test {
 protected:
  // Leaves of `in_leaf` elements each, with keys 0, 10, 20, ...
  void Make(int leaves, int in_leaf) {
    std::vector<NewLeaf> all;
    all.reserve(static_cast<size_t>(leaves));
    for (int leaf = 0; leaf < leaves; ++leaf) {
      all.push_back(LeafOf(leaf * in_leaf, (leaf + 1) * in_leaf));
    }
    std::vector<std::vector<NewLeaf>> orders;
    orders.push_back(std::move(all));
    Tree tree("header", std::move(orders), kTenLimits);
    root_ = PlaceTree(&tree, &memory_, nullptr);
  }
  static NewLeaf LeafOf(int begin, int end) {
    NewLeaf leaf;
    for (int i = begin; i < end; ++i) AppendElement(Key(10 * i), &leaf.bytes);
    leaf.elements = static_cast<uint64_t>(end - begin);
    leaf.first = Key(10 * begin);
    return leaf;
  }

  [[nodiscard]] Tree Open() const {
    TreeRoot root;
    CHECK(LoadTreeRoot(root_, &root));
    return {std::move(root), loaded_, kTenLimits};
  }
  // Loads what is missing; the number of pages.
  size_t LoadMissing(const Tree& tree) {
    for (const PageRef& page : tree.missing()) CHECK(loaded_.Load(memory_, page));
    return tree.missing().size();
  }
  void LoadAll(bool inner_only) {
    for (;;) {
      Tree tree = Open();
      if (tree.NeedAll(inner_only)) return;
      CHECK(LoadMissing(tree) > 0);
    }
  }
  // Loads the way to a leaf, and nothing else.
  void LoadWay(uint64_t number) {
    for (;;) {
      Tree tree = Open();
      LeafPlace place;
      if (tree.Seek(0, number, &place)) return;
      CHECK(LoadMissing(tree) == 1);
    }
  }
  TreeContents Contents(const std::string& root) {
    TreeContents contents;
    EXPECT_EQ(TreeCheck(memory_, kTenLimits, {true}).Read(root, &contents), "");
    return contents;
  }
  static LeafPlace PlaceOf(Tree* tree, uint64_t number) {
    LeafPlace place;
    EXPECT_TRUE(tree->Seek(0, number, &place));
    return place;
  }

  std::string root_;
  PageMemory memory_;
  LoadedPages loaded_;
};

TEST_F(TreeChangeTest, AReadAsksForOnePageOfEachLevel) {
  Make(200, 8);
  ASSERT_GE(Contents(root_).height, 2);
  size_t pages = 0;
  LeafPlace place;
  for (;;) {
    Tree tree = Open();
    if (tree.SeekKey(0, Key(5555), &place)) break;
    ASSERT_EQ(LoadMissing(tree), 1U);
    ++pages;
  }
  EXPECT_EQ(pages, static_cast<size_t>(Contents(root_).height) + 1);
  EXPECT_LE(place.before, 555U);
  EXPECT_GT(place.before + place.elements, 555U);
}

TEST_F(TreeChangeTest, AChangeWritesThePagesOnItsWayAndDropsTheOldOnes) {
  Make(200, 8);
  const TreeContents before = Contents(root_);
  LoadWay(800);
  Tree tree = Open();
  const LeafPlace place = PlaceOf(&tree, 800);
  ASSERT_TRUE(tree.Replace(0, place, {LeafOf(800, 807)}));
  std::vector<PageRef> placed;
  root_ = PlaceTree(&tree, &memory_, &placed);
  EXPECT_EQ(placed.size(), static_cast<size_t>(before.height) + 1);
  EXPECT_EQ(tree.dropped().size(), placed.size());
  const TreeContents after = Contents(root_);
  EXPECT_EQ(after.orders[0].size(), before.orders[0].size() - 1);
  EXPECT_EQ(after.pages.size(), before.pages.size());
}

TEST_F(TreeChangeTest, SumsAreRightBeforeThePagesAreBalanced) {
  Make(200, 8);
  LoadWay(800);
  Tree tree = Open();
  uint64_t elements = 8;
  for (const int end : {807, 810, 805}) {
    ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 800), {LeafOf(800, end)}));
    elements = static_cast<uint64_t>(end) - 800;
    EXPECT_EQ(tree.elements(0), 1592 + elements);
    EXPECT_EQ(tree.leaf_bytes(0), 10 * (1592 + elements));
  }
  LeafPlace last;
  ASSERT_FALSE(tree.Last(0, &last));
  LoadMissing(tree);
  const size_t root_bytes = tree.RootBytes();
  tree.Balance();
  EXPECT_EQ(tree.RootBytes(), root_bytes);
  EXPECT_EQ(tree.elements(0), 1592 + elements);
  root_ = PlaceTree(&tree, &memory_, nullptr);
  Contents(root_);
}

// A batch of pops asks for the leaves that it will meet together.
TEST_F(TreeChangeTest, WhoChangesAnEndAsksForTheLeavesInwardsToo) {
  for (const bool front : {true, false}) {
    Make(200, 8);
    LoadWay(front ? 0 : 1599);
    Tree tree = Open();
    tree.NeedInwards(20);
    EXPECT_TRUE(tree.missing().empty()) << "no change has met a leaf that is not there";
    LeafPlace end;
    ASSERT_TRUE(front ? tree.First(0, &end) : tree.Last(0, &end));
    ASSERT_EQ(end.before, front ? 0U : 1592U);
    ASSERT_TRUE(tree.Replace(0, end, {}));
    ASSERT_FALSE(front ? tree.First(0, &end) : tree.Last(0, &end));
    ASSERT_EQ(tree.missing().size(), 1U);
    tree.NeedInwards(20);
    EXPECT_EQ(tree.missing().size(), 3U);
    LoadMissing(tree);
    Tree again = Open();
    for (const uint64_t number : {8, 16, 24}) {
      EXPECT_TRUE(again.Seek(0, front ? number : 1599 - number, &end)) << number;
    }
  }
}

TEST_F(TreeChangeTest, WhoChangesTheMiddleAsksForThatLeafAlone) {
  Make(200, 8);
  LoadAll(true);
  Tree tree = Open();
  LeafPlace place;
  ASSERT_FALSE(tree.Seek(0, 800, &place));
  tree.NeedInwards(100);
  EXPECT_EQ(tree.missing().size(), 1U);
}

TEST_F(TreeChangeTest, TheOldTreeReadsAsItDid) {
  Make(50, 8);
  const std::string old_root = root_;
  const TreeContents before = Contents(root_);
  LoadAll(false);
  Tree tree = Open();
  ASSERT_TRUE(tree.ReplaceRange(0, PlaceOf(&tree, 3), PlaceOf(&tree, 333), {}));
  root_ = PlaceTree(&tree, &memory_, nullptr);
  EXPECT_EQ(Contents(old_root).orders, before.orders);
}

TEST_F(TreeChangeTest, ALeafThatIsLeftOutGoesWithThePagesAboveThatItEmpties) {
  Make(40, 8);
  while (Contents(root_).height > 0 || !Contents(root_).orders[0].empty()) {
    LoadedPages fresh;
    loaded_ = fresh;
    const TreeContents before = Contents(root_);
    for (;;) {
      Tree tree = Open();
      LeafPlace place;
      if (tree.First(0, &place) && tree.Replace(0, place, {NewLeaf()})) {
        std::vector<PageRef> placed;
        root_ = PlaceTree(&tree, &memory_, &placed);
        ASSERT_EQ(Contents(root_).pages.size(),
                  before.pages.size() + placed.size() - tree.dropped().size());
        break;
      }
      ASSERT_GT(LoadMissing(tree), 0U);
    }
    ASSERT_EQ(Contents(root_).orders[0].size(), before.orders[0].size() - 8);
  }
  EXPECT_TRUE(Contents(root_).pages.empty());
}

TEST_F(TreeChangeTest, AnOrderWithoutLeavesTakesSome) {
  Make(0, 0);
  Tree tree = Open();
  LeafPlace place;
  EXPECT_FALSE(tree.First(0, &place) || tree.Last(0, &place) || tree.Seek(0, 0, &place) ||
               tree.SeekKey(0, "key", &place));
  ASSERT_TRUE(tree.Replace(0, place, {LeafOf(0, 5), NewLeaf(), LeafOf(5, 9)}));
  root_ = PlaceTree(&tree, &memory_, nullptr);
  EXPECT_EQ(Contents(root_).orders[0].size(), 9U);
  EXPECT_EQ(Contents(root_).leaves, 2U);
}

TEST_F(TreeChangeTest, ASmallLeafJoinsTheNextOne) {
  Make(3, 5);
  LoadWay(5);
  Tree tree = Open();
  ASSERT_FALSE(tree.Replace(0, PlaceOf(&tree, 5), {LeafOf(5, 6)})) << "the next one is missing";
  EXPECT_FALSE(tree.changed());
  EXPECT_TRUE(tree.dropped().empty());
  EXPECT_EQ(tree.elements(0), 15U);
  ASSERT_EQ(LoadMissing(tree), 1U);
  Tree again = Open();
  ASSERT_TRUE(again.Replace(0, PlaceOf(&again, 5), {LeafOf(5, 6)}));
  EXPECT_EQ(PlaceOf(&again, 5).elements, 6U);
  EXPECT_EQ(again.dropped().size(), 2U);
  root_ = PlaceTree(&again, &memory_, nullptr);
  const TreeContents after = Contents(root_);
  EXPECT_EQ(after.leaves, 2U);
  EXPECT_EQ(after.orders[0].size(), 11U);
}

TEST_F(TreeChangeTest, ASmallLeafBesideALargeOneJoinsThePreviousOneOrNone) {
  std::vector<std::vector<NewLeaf>> orders(1);
  orders[0] = {LeafOf(0, 5), LeafOf(5, 10), LeafOf(10, 20)};
  Tree tree("", std::move(orders), kTenLimits);
  ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 5), {LeafOf(5, 6)}));
  EXPECT_EQ(PlaceOf(&tree, 0).elements, 6U);
  EXPECT_EQ(PlaceOf(&tree, 6).elements, 10U);
  ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 0), {LeafOf(0, 2)}));
  EXPECT_EQ(PlaceOf(&tree, 0).elements, 2U) << "together they would be divided soon";
}

TEST_F(TreeChangeTest, ARangeGoesWithoutTheLeavesBetweenBeingLoaded) {
  Make(300, 8);
  const TreeContents before = Contents(root_);
  ASSERT_GE(before.height, 2);
  LoadWay(10);
  LoadWay(2300);
  size_t rounds = 0;
  for (;; ++rounds) {
    Tree tree = Open();
    const LeafPlace from = PlaceOf(&tree, 10);
    const LeafPlace to = PlaceOf(&tree, 2300);
    if (tree.ReplaceRange(0, from, to, {LeafOf(static_cast<int>(from.before), 15)})) {
      std::vector<PageRef> placed;
      root_ = PlaceTree(&tree, &memory_, &placed);
      const TreeContents after = Contents(root_);
      EXPECT_EQ(after.orders[0].size(), before.orders[0].size() - (to.before + to.elements) + 15);
      EXPECT_EQ(after.pages.size(), before.pages.size() + placed.size() - tree.dropped().size());
      std::set<uint64_t> dropped;
      for (const PageRef& page : tree.dropped()) {
        EXPECT_TRUE(dropped.insert(page.addr.bits()).second);
        EXPECT_TRUE(before.pages.contains(page.addr.bits()));
      }
      break;
    }
    EXPECT_FALSE(tree.changed());
    ASSERT_GT(LoadMissing(tree), 0U);
  }
  EXPECT_LE(rounds, 3U);
  EXPECT_LE(loaded_.size(), before.inner_pages + 4) << "two leaves, and one to join";
}

TEST_F(TreeChangeTest, ASmallInnerPageJoinsOneBesideItThatWasNotOnTheWay) {
  constexpr int kLeaves = 200;
  Make(kLeaves, 8);
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    if (leaf % 10 == 0) continue;
    loaded_ = LoadedPages();  // each change finds the pages on its way alone
    for (;;) {
      Tree tree = Open();
      LeafPlace place;
      if (tree.SeekKey(0, Key(10 * 8 * leaf), &place) && tree.Replace(0, place, {})) {
        root_ = PlaceTree(&tree, &memory_, nullptr);
        break;
      }
      ASSERT_GT(LoadMissing(tree), 0U);
    }
  }
  const TreeContents after = Contents(root_);
  EXPECT_EQ(after.leaves, 20U);
  EXPECT_LE(after.inner_pages, 11U);
}

TEST_F(TreeChangeTest, PagesAreWrittenAnewWithThoseAbove) {
  Make(100, 8);
  const TreeContents before = Contents(root_);
  const uint64_t some_leaf = *before.pages.begin();  // leaves are placed first
  const auto wanted = [&](const PageRef& page) { return page.addr.bits() == some_leaf; };
  LoadAll(true);
  {
    Tree tree = Open();
    EXPECT_EQ(tree.Renew(wanted, 10), 0U);
    EXPECT_FALSE(tree.changed());
    ASSERT_EQ(LoadMissing(tree), 1U);
  }
  Tree tree = Open();
  EXPECT_EQ(tree.Renew(wanted, 0), 0U);
  EXPECT_EQ(tree.Renew(wanted, 10), 1U);
  std::vector<PageRef> placed;
  root_ = PlaceTree(&tree, &memory_, &placed);
  EXPECT_EQ(placed.size(), static_cast<size_t>(before.height) + 1);
  EXPECT_EQ(tree.dropped().size(), placed.size());
  const TreeContents after = Contents(root_);
  EXPECT_FALSE(after.pages.contains(some_leaf));
  EXPECT_EQ(after.orders, before.orders);
  EXPECT_EQ(Open().Renew([](const PageRef&) { return false; }, 10), 0U);
}

TEST_F(TreeChangeTest, AnElementThatNoCutDividesHasALeafOfItsOwn) {
  Make(3, 8);
  LoadAll(false);
  Tree tree = Open();
  NewLeaf huge;
  huge.bytes.assign(kPageBytesMax, 'x');
  huge.elements = 1;
  huge.first = Key(161);
  ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 16), {LeafOf(16, 17), std::move(huge)}));
  EXPECT_EQ(tree.elements(0), 18U);
  EXPECT_EQ(PlaceOf(&tree, 17).bytes.size(), kPageBytesMax);
  root_ = PlaceTree(&tree, &memory_, nullptr);
  LoadMissing(Open());
  Tree again = Open();
  LeafPlace place;
  while (!again.Seek(0, 17, &place)) {
    ASSERT_GT(LoadMissing(again), 0U);
    again = Open();
  }
  EXPECT_EQ(place.bytes.size(), kPageBytesMax);
}

TEST_F(TreeChangeTest, AnotherHeaderAloneChangesTheRootAlone) {
  Make(30, 8);
  Tree tree = Open();
  tree.set_header("header");
  EXPECT_FALSE(tree.changed());
  tree.set_header("another");
  EXPECT_TRUE(tree.changed());
  std::vector<PageRef> placed;
  root_ = PlaceTree(&tree, &memory_, &placed);
  EXPECT_TRUE(placed.empty() && tree.dropped().empty());
  EXPECT_EQ(Contents(root_).header, "another");
}

// Leaves in front of one may go, and its own first key may be long.
TEST_F(TreeChangeTest, TheFirstNameInTheRootHasNoKey) {
  std::vector<std::vector<NewLeaf>> orders(1);
  for (const size_t bytes : {1U, 5'000U, 50'000U}) {
    NewLeaf leaf;
    leaf.first = std::string(bytes, 'k');
    AppendElement(leaf.first, &leaf.bytes);
    leaf.elements = 1;
    orders[0].push_back(std::move(leaf));
  }
  Tree made("", std::move(orders), {});
  root_ = PlaceTree(&made, &memory_, nullptr);
  LoadAll(/*inner_only=*/false);
  Tree tree = Open();
  ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 0), {}));
  ASSERT_TRUE(tree.Replace(0, PlaceOf(&tree, 0), {}));
  const size_t bytes = tree.RootBytes();
  root_ = PlaceTree(&tree, &memory_, nullptr);
  EXPECT_EQ(root_.size(), bytes);
  EXPECT_LT(bytes, 200U);
}

// One name is longer than a page is to be.
TEST_F(TreeChangeTest, LongFirstKeysMakeNoTreeWithoutEnd) {
  std::vector<std::vector<NewLeaf>> orders(1);
  Texts texts;
  for (int i = 0; i < 500; ++i) texts.push_back(std::string(150, 'k') + Key(i));
  orders[0] = LeavesOf(texts, true, kTenLimits.leaf_bytes);
  Tree tree("", std::move(orders), kTenLimits);
  root_ = PlaceTree(&tree, &memory_, nullptr);
  const TreeContents contents = Contents(root_);
  EXPECT_EQ(contents.orders[0], texts);
  EXPECT_LE(contents.height, 10);
}

}  // namespace
}  // namespace onetrip
