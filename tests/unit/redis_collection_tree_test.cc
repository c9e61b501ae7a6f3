// The leaves that packed collections become, and the packed collections that these are again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/hash_value.h"
#include "redis_compat/values/set_value.h"
#include "tests/unit/redis_tree_kv.h"

namespace onetrip {
namespace {

constexpr uint32_t kElementBytesMax = 30;

std::vector<std::string> AnyElements(Rng& rng, size_t count) {
  std::set<std::string> elements;
  while (elements.size() < count) {
    std::string element(rng.Below(kElementBytesMax), 'x');
    element += std::to_string(rng.Below(1000));
    elements.insert(std::move(element));
  }
  std::vector<std::string> all(elements.begin(), elements.end());
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[rng.Below(i)]);
  return all;
}

std::string ListOf(const std::vector<std::string>& elements) {
  const std::vector<std::string_view> views(elements.begin(), elements.end());
  return ListValue({}).Push(ListEnd::kTail, views);
}

std::string Joined(const std::vector<NewLeaf>& leaves) {
  std::string entries;
  for (const NewLeaf& leaf : leaves) entries += leaf.bytes;
  return entries;
}

TEST(CollectionTree, PositionsAreWhatTheirKeysSay) {
  Rng rng(1);
  uint64_t last = 0;
  std::string last_key;
  std::vector<uint64_t> positions;
  for (int i = 0; i < 1000; ++i) positions.push_back(ScanPosition(std::to_string(i)));
  std::sort(positions.begin(), positions.end());
  for (const uint64_t position : positions) {
    EXPECT_NE(position, 0U);
    EXPECT_LT(position, uint64_t{1} << 53);
    const std::string key = PositionKey(position);
    EXPECT_LT(last_key, key);
    EXPECT_EQ(PositionFrom(key), position);
    const std::string between = ShortestBetween(last_key, key);
    if (!last_key.empty()) {
      EXPECT_GT(PositionFrom(between), last);
    }
    EXPECT_LE(PositionFrom(between), position);
    EXPECT_EQ(PositionFrom(key + '\0'), position + 1);
    last = position;
    last_key = key;
  }
}

TEST(CollectionTree, LeavesOfAListAreFullFromOneEnd) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const std::string list = ListOf(AnyElements(rng, rng.Below(100)));
    const std::string_view entries = PackedEntries(list);
    for (const ListEnd from : {ListEnd::kHead, ListEnd::kTail}) {
      const std::vector<NewLeaf> leaves = ListLeaves(entries, from, kTinyLimits);
      EXPECT_EQ(Joined(leaves), entries) << "seed " << seed;
      uint64_t elements = 0;
      for (size_t i = 0; i < leaves.size(); ++i) {
        elements += leaves[i].elements;
        EXPECT_LE(leaves[i].bytes.size(), kTinyLimits.leaf_bytes);
        EXPECT_TRUE(leaves[i].first.empty());
        const bool is_last = from == ListEnd::kHead ? i + 1 == leaves.size() : i == 0;
        if (!is_last) {
          EXPECT_GT(leaves[i].bytes.size(), kTinyLimits.leaf_bytes / 3);
        }
      }
      EXPECT_EQ(elements, PackedSize(list));
    }
  }
}

TEST(CollectionTree, ALongElementHasALeafOfItsOwn) {
  const std::string longer(1000, 'l');
  const std::string list = ListOf({"a", longer, "b", "c"});
  for (const ListEnd from : {ListEnd::kHead, ListEnd::kTail}) {
    const auto leaves = ListLeaves(PackedEntries(list), from, kTinyLimits);
    ASSERT_EQ(leaves.size(), 3U);
    EXPECT_EQ(leaves[1].elements, 1U);
    EXPECT_EQ(leaves[2].elements, 2U);
  }
  const std::string page(kPageBytesMax + 1, 'p');
  EXPECT_FALSE(MakeTree(ValueType::kList, ListOf({page, "b"}), kTinyLimits));
  EXPECT_TRUE(MakeTree(ValueType::kList, list, kTinyLimits));
}

TEST(CollectionTree, LeavesOfASetAreInTheOrderOfPositions) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const std::vector<std::string> members = AnyElements(rng, 20 + rng.Below(100));
    const std::string set =
        PackSet(MakeSet(std::vector<std::string_view>(members.begin(), members.end()), 0));
    const std::vector<NewLeaf> leaves = PositionLeaves(SetMembers(set), kTinyLimits);
    EXPECT_GT(leaves.size(), 1U);
    std::set<std::string> met;
    std::string last;
    for (const NewLeaf& leaf : leaves) {
      EXPECT_LE(leaf.bytes.size(), kTinyLimits.leaf_bytes);
      EXPECT_EQ(leaf.first.empty(), &leaf == &leaves.front());
      if (!leaf.first.empty()) {
        EXPECT_LT(last, leaf.first) << "seed " << seed;
      }
      PackedElements elements({0, static_cast<uint32_t>(leaf.elements)}, leaf.bytes, false);
      PackedElement element;
      uint64_t count = 0;
      for (; elements.Next(&element); ++count) {
        met.emplace(element.key);
        const std::string key = PositionKey(ScanPosition(element.key));
        EXPECT_GE(key, leaf.first);
        last = std::max(last, key);
      }
      EXPECT_EQ(count, leaf.elements);
    }
    EXPECT_EQ(met, std::set<std::string>(members.begin(), members.end()));
  }
}

TEST(CollectionTree, JoinedLeavesAreThePackedCollection) {
  Rng rng(3);
  const std::vector<std::string> elements = AnyElements(rng, 60);
  HashEdit edit((std::string_view()));
  for (const std::string& element : elements) edit.Put(element, element);
  const std::string hash = edit.Finish({.elements = 10, .bytes = 64});
  std::optional<Tree> tree = MakeTree(ValueType::kHash, hash, kTinyLimits);
  ASSERT_TRUE(tree);
  std::string joined;
  ASSERT_TRUE(JoinLeaves(*tree, &joined));
  EXPECT_EQ(joined.size(), hash.size());
  EXPECT_EQ(joined.substr(0, kPackedHeaderBytes), hash.substr(0, kPackedHeaderBytes));
  PackedMap fields(joined, /*has_values=*/true);
  for (const std::string& element : elements) {
    std::string_view value;
    EXPECT_TRUE(fields.Find(element, &value));
    EXPECT_EQ(value, element);
  }

  const std::string list = ListOf(elements);
  tree = MakeTree(ValueType::kList, list, kTinyLimits);
  ASSERT_TRUE(tree && JoinLeaves(*tree, &joined));
  EXPECT_EQ(joined, list);
}

TEST(CollectionTree, SmallOnesAndIntegerSetsStayPacked) {
  std::vector<std::string> integers;
  for (int i = 100; i < 300; ++i) integers.push_back(std::to_string(i));
  const std::vector<std::string_view> members(integers.begin(), integers.end());
  EXPECT_FALSE(MakeTree(ValueType::kSet, PackSet(MakeSet(members, 512)), kTinyLimits));
  EXPECT_TRUE(MakeTree(ValueType::kSet, PackSet(MakeSet(members, 10)), kTinyLimits));
  EXPECT_FALSE(MakeTree(ValueType::kList, ListOf({"a", "b"}), kTinyLimits));
  EXPECT_FALSE(MakeTree(ValueType::kList, "no packed collection", kTinyLimits));
}

// Changes `pages` as a store does: `change` is called anew when pages are missing.
template <typename ChangeTree>
void ChangeTreeIn(TestPages* pages, ChangeTree change) {
  pages->Forget();
  for (int rounds = 0; rounds < 100; ++rounds) {
    Tree tree(pages->root(), *pages, kTinyLimits);
    change(tree);
    ASSERT_FALSE(tree.is_damaged());
    if (tree.missing().empty()) {
      pages->Write(&tree);
      return;
    }
    pages->Load(tree.missing());
  }
  FAIL() << "pages are missing again and again";
}

std::string JoinedPages(TestPages* pages) {
  std::string joined;
  for (bool done = false; !done;) {
    Tree tree(pages->root(), *pages, kTinyLimits);
    done = JoinLeaves(tree, &joined);
    pages->Load(tree.missing());
  }
  return joined;
}

// Several mutations share a write: each sees the tree as the ones before have left it.
TEST(CollectionTree, ChangesInTurnAreOneWrite) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const std::vector<std::string> elements = AnyElements(rng, 200);
    std::set<std::string> model(elements.begin(), elements.begin() + 100);
    const std::vector<std::string_view> first(elements.begin(), elements.begin() + 100);
    std::optional<Tree> made = MakeTree(ValueType::kSet, PackSet(MakeSet(first, 0)), kTinyLimits);
    ASSERT_TRUE(made);
    TestPages pages;
    pages.Write(&*made);
    for (int write = 0; write < 5; ++write) {
      struct Step {
        bool adds;
        std::vector<std::string_view> members;
      };
      std::vector<Step> steps(1 + rng.Below(4));
      for (Step& step : steps) {
        step.adds = rng.Below(2) == 0;
        for (uint64_t i = rng.Below(30); i > 0; --i) {
          step.members.push_back(elements[rng.Below(elements.size())]);
        }
      }
      ChangeTreeIn(&pages, [&](Tree& tree) {
        for (const Step& step : steps) {
          SetEdit set(tree);
          for (const std::string_view member : step.members) {
            step.adds ? set.Add(member) : set.Remove(member);
          }
          if (set.size() > 0) {
            EXPECT_TRUE(set.tree()->Finish(kPackedTable));
          }
        }
      });
      for (const Step& step : steps) {
        for (const std::string_view member : step.members) {
          step.adds ? (void)model.emplace(member) : (void)model.erase(std::string(member));
        }
      }
      const std::string joined = JoinedPages(&pages);
      PackedElements members = SetMembers(joined);
      ASSERT_EQ(members.size(), model.size()) << "seed " << seed;
      PackedElement member;
      std::set<std::string> met;
      while (members.Next(&member)) met.emplace(member.key);
      ASSERT_EQ(met, model) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace onetrip
