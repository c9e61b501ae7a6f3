// Sorted sets as trees, compared with packed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/sorted_set_edit.h"
#include "redis_compat/values/sorted_set_tree.h"
#include "redis_compat/values/sorted_set_tree_range.h"
#include "tests/unit/redis_tree_kv.h"

namespace onetrip {
namespace {

constexpr CompactLimits kTableLimits{128, 64};
constexpr double kLargest = std::numeric_limits<double>::infinity();

double ScoreOf(Rng& rng) {
  constexpr double kScores[] = {0, -0.0, 1, 2, -1, 1.5, 1e300, 5e-324, kLargest, -kLargest};
  return rng.Below(2) == 0 ? kScores[rng.Below(10)] : static_cast<double>(rng.Below(40)) - 20;
}

std::string MemberOf(Rng& rng, uint64_t names) {
  std::string member = "m" + std::to_string(rng.Below(names));
  if (rng.Below(50) == 0) member.assign(rng.Below(200), static_cast<char>(rng.Below(256)));
  return member;
}

struct Assigned {
  std::string member;
  std::optional<double> score;  // nothing: it goes
};

std::vector<Assigned> AnySteps(Rng& rng, uint64_t count, uint64_t names) {
  std::vector<Assigned> steps;
  for (; count > 0; --count) {
    Assigned& step = steps.emplace_back(Assigned{MemberOf(rng, names), {}});
    if (rng.Below(4) != 0) step.score = ScoreOf(rng);
  }
  return steps;
}

// Leaves a member in `one_of`.
std::vector<Assigned> RemovalsFrom(Rng& rng, std::string_view packed, uint64_t one_of) {
  std::vector<Assigned> steps;
  PackedElements members = SortedSetMembers(packed);
  PackedElement member;
  while (members.Next(&member)) {
    if (rng.Below(one_of) != 0) steps.push_back({std::string(member.key), {}});
  }
  return steps;
}

// As ZADD and ZREM do.
template <typename Edit>
void MakeSteps(Edit& edit, const std::vector<Assigned>& steps) {
  for (const Assigned& step : steps) {
    double score = 0;
    const bool is_there = edit.Find(step.member, &score);
    if (!step.score) {
      edit.Remove(step.member);
    } else if (!is_there || score != *step.score) {
      edit.Put(step.member, *step.score);
    }
  }
}

using ElementsByMember = std::map<std::string, std::string>;

// The pages of a sorted set, and the same set in one piece.
class SetInBothForms {
 public:
  SetInBothForms(std::string packed, const TreeLimits& limits)
      : limits_(limits), packed_(std::move(packed)) {
    std::optional<Tree> tree = MakeTree(ValueType::kSortedSet, packed_, limits_);
    EXPECT_TRUE(tree.has_value());
    if (tree) pages_.Write(&*tree);
    Check();
  }

  [[nodiscard]] const std::string& packed() const { return packed_; }
  TestPages& pages() { return pages_; }

  // Runs `run(tree)` until it lacks no page.
  template <typename Run>
  void OnTree(Run run) {
    pages_.Forget();
    for (int rounds = 0;; ++rounds) {
      ASSERT_LT(rounds, 60);
      Tree tree(pages_.root(), pages_, limits_);
      run(tree);
      ASSERT_FALSE(tree.is_damaged());
      if (tree.missing().empty()) return;
      pages_.Load(tree.missing());
    }
  }

  // Runs `change(edit)` on both. False: the set is no tree any more.
  template <typename Change>
  bool Edit(Change change) {
    PackedSortedSetEdit packed_edit(packed_, kTableLimits);
    change(packed_edit);
    std::string packed = packed_edit.Finish();
    bool is_tree = true;
    bool is_left = true;
    std::string made;
    pages_.Forget();
    for (int rounds = 0; rounds < 60; ++rounds) {
      Tree tree(pages_.root(), pages_, limits_);
      TreeSortedSetEdit edit(tree, kTableLimits);
      change(edit);
      is_left = edit.size() > 0;
      is_tree = is_left && edit.Finish();
      if (is_left && !is_tree) edit.FinishPacked(&made);
      EXPECT_FALSE(tree.is_damaged());
      if (tree.missing().empty()) {
        EXPECT_EQ(edit.size(), packed_edit.size());
        EXPECT_EQ(edit.packed_bytes(), packed.size());
        if (is_tree && tree.changed()) pages_.Write(&tree);
        break;
      }
      pages_.Load(tree.missing());
    }
    packed_ = std::move(packed);
    if (is_tree) {
      Check();
    } else if (is_left) {
      EXPECT_EQ(made, packed_);
    }
    return is_tree;
  }

  // Each of the edits is made to the tree that the one before has left.
  template <typename Steps>
  void EditTogether(const std::vector<Steps>& edits) {
    for (const Steps& steps : edits) {
      PackedSortedSetEdit edit(packed_, kTableLimits);
      MakeSteps(edit, steps);
      packed_ = edit.Finish();
    }
    OnTree([&](Tree& tree) {
      for (const Steps& steps : edits) {
        TreeSortedSetEdit edit(tree, kTableLimits);
        MakeSteps(edit, steps);
        ASSERT_TRUE(edit.Finish());
      }
      if (tree.missing().empty() && tree.changed()) pages_.Write(&tree);
    });
    Check();
  }

  void Check() {
    OnTree([&](Tree& tree) {
      std::string joined;
      if (!JoinLeaves(tree, &joined)) return;
      ASSERT_EQ(joined, packed_);
      ElementsByMember by_score;
      ElementsByMember by_position;
      CheckOrder(tree, kByScore, &by_score);
      CheckOrder(tree, kByPosition, &by_position);
      ASSERT_EQ(by_score, by_position);
      ASSERT_EQ(by_score.size(), PackedSize(packed_));
    });
  }

 private:
  // No key is in a leaf in which it would not be found.
  void CheckOrder(Tree& tree, SortedSetOrder order, ElementsByMember* elements) {
    LeafPlace leaf;
    std::string last;
    ASSERT_TRUE(tree.First(order, &leaf));
    do {
      std::string highest;
      PackedElements members = LeafMembers(leaf);
      PackedElement element;
      uint64_t count = 0;
      uint64_t keys = 0;
      for (; members.Next(&element); ++count) {
        const std::string key =
            order == kByScore ? ScoreKey(ScoredOf(element)) : MemberKey(element.key);
        ASSERT_LT(last, key);
        ASSERT_TRUE(leaf.last.empty() || key < leaf.last);
        keys += key == highest ? 0 : 1;
        highest = std::max(highest, key);
        ASSERT_TRUE(elements->emplace(element.key, element.value).second);
      }
      ASSERT_EQ(members.at(), leaf.bytes.size());
      ASSERT_EQ(count, leaf.elements);
      ASSERT_TRUE(keys == 1 || leaf.bytes.size() <= limits_.leaf_bytes);
      last = highest;
    } while (tree.Next(order, &leaf));
  }

  const TreeLimits limits_;
  TestPages pages_;
  std::string packed_;
};

// A packed set of as many members at most.
std::string ManyMembers(Rng& rng, uint64_t members, uint64_t names, bool of_one_score = false) {
  std::deque<std::string> kept;
  PackedSortedSetEdit edit("", kTableLimits);
  for (uint64_t i = 0; i < members; ++i) {
    edit.Put(kept.emplace_back(MemberOf(rng, names)), of_one_score ? 3 : ScoreOf(rng));
  }
  return edit.Finish();
}

TEST(SortedSetTree, KeysCompareAsScoresDo) {
  const double scores[] = {-kLargest, -1e300, -2,  -1.5,  -5e-324, 0,
                           5e-324,    1,      1.5, 1e300, kLargest};
  for (size_t i = 1; i < std::size(scores); ++i) {
    EXPECT_LT(ScoreKey(scores[i - 1]), ScoreKey(scores[i]));
  }
  EXPECT_EQ(ScoreKey(-0.0), ScoreKey(0.0));
  EXPECT_LT(ScoreKey({"b", 1}), ScoreKey({"ba", 1}));
  EXPECT_LT(ScoreKey({"b", 1}), ScoreKey({"a", 2}));
}

TEST(SortedSetTree, RandomEditsKeepBothOrdersWhatThePackedSetIs) {
  uint64_t left = 0;
  for (uint64_t seed = 1; seed <= 30 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const uint64_t names = 100 + rng.Below(200);
    SetInBothForms set(ManyMembers(rng, 100, names), kTinyLimits);
    bool is_tree = true;
    for (int round = 0; round < 50 && is_tree && !testing::Test::HasFailure(); ++round) {
      const uint64_t count = 1 + rng.Below(rng.Below(4) == 0 ? 80 : 4);
      std::vector<Assigned> steps = AnySteps(rng, count, names);
      if (round > 40) steps = RemovalsFrom(rng, set.packed(), seed % 2 == 0 ? 4 : 20);
      is_tree = set.Edit([&](auto& edit) { MakeSteps(edit, steps); });
    }
    left += is_tree ? 1 : 0;
  }
  EXPECT_EQ(left, 0U);
}

TEST(SortedSetTree, EditsOfOneTreeFollowEachOther) {
  for (uint64_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    SetInBothForms set(ManyMembers(rng, 200, 200), kTinyLimits);
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<Assigned>> edits;
      for (int i = 0; i < 4; ++i) edits.push_back(AnySteps(rng, 1 + rng.Below(20), 200));
      set.EditTogether(edits);
    }
  }
}

TEST(SortedSetTree, RisingScoresLeaveFullLeaves) {
  Rng rng(3);
  const TreeLimits limits{
      .leaf_bytes = 256, .inner_bytes = 200, .root_bytes = 200, .packed_bytes = 1000};
  std::deque<std::string> names;
  PackedSortedSetEdit first("", kTableLimits);
  for (int i = 0; i < 300; ++i) first.Put(names.emplace_back("n" + std::to_string(i)), i);
  SetInBothForms set(first.Finish(), limits);
  for (int i = 300; i < 600; ++i) {
    const std::string& name = names.emplace_back("n" + std::to_string(i));
    ASSERT_TRUE(set.Edit([&](auto& edit) { edit.Put(name, i); }));
  }
  set.OnTree([&](Tree& tree) {
    if (!tree.NeedAll(false)) return;
    uint64_t leaves = 0;
    LeafPlace leaf;
    for (bool more = tree.First(kByScore, &leaf); more; more = tree.Next(kByScore, &leaf)) ++leaves;
    EXPECT_GT(tree.leaf_bytes(kByScore), leaves * 256 * 9 / 10);
  });
}

TEST(SortedSetTree, AMemberThatIsTooLongMakesItPacked) {
  Rng rng(4);
  SetInBothForms set(ManyMembers(rng, 100, 1000), kTinyLimits);
  const std::string longest(kTreeMemberBytesMax, 'a');
  const std::string too_long(kPageBytesMax + 1, 'b');
  EXPECT_TRUE(set.Edit([&](auto& edit) { edit.Put(longest, 1); }));
  EXPECT_FALSE(set.Edit([&](auto& edit) {
    edit.Put(too_long, 2);
    edit.Remove(longest);
  }));
  EXPECT_FALSE(MakeTree(ValueType::kSortedSet, set.packed(), kTinyLimits).has_value());
}

MemberRange AnyRange(Rng& rng, MemberRange::By by, std::string* low, std::string* high) {
  MemberRange range;
  range.by = by;
  range.reverse = rng.Below(2) == 0;
  range.first = static_cast<int64_t>(rng.Below(300)) - 150;
  range.last = static_cast<int64_t>(rng.Below(300)) - 150;
  if (rng.Below(3) == 0) range.offset = static_cast<int64_t>(rng.Below(60)) - 1;
  if (rng.Below(3) == 0) range.count = static_cast<int64_t>(rng.Below(60)) - 2;
  range.min_score = {ScoreOf(rng), rng.Below(2) == 0};
  range.max_score = {ScoreOf(rng), rng.Below(2) == 0};
  const auto bound = [&](const char* open_end) {
    if (rng.Below(5) == 0) return std::string(open_end);
    return (rng.Below(2) == 0 ? "[" : "(") + MemberOf(rng, 1000);
  };
  *low = bound(rng.Below(9) == 0 ? "+" : "-");
  *high = bound(rng.Below(9) == 0 ? "-" : "+");
  EXPECT_TRUE(ParseLexBound(*low, &range.min_member));
  EXPECT_TRUE(ParseLexBound(*high, &range.max_member));
  return range;
}

TEST(SortedSetTree, RangesSelectWhatThePackedSetHas) {
  uint64_t selected = 0;
  for (uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool of_one_score = seed % 3 == 0;
    SetInBothForms set(ManyMembers(rng, 20 + rng.Below(150), 1000, of_one_score), kTinyLimits);
    for (int i = 0; i < 60; ++i) {
      const auto by = static_cast<MemberRange::By>(rng.Below(3));
      std::string low;
      std::string high;
      const MemberRange range = AnyRange(rng, by, &low, &high);
      SelectedMembers expected;
      expected.Select(set.packed(), range);
      selected += expected.count();
      set.OnTree([&](Tree& tree) {
        SelectedMembers found;
        found.Select(tree, range);
        if (!tree.missing().empty()) return;
        ASSERT_EQ(found.count(), expected.count());
        expected.Rewind();
        PackedElement a;
        PackedElement b;
        while (expected.Next(&a)) {
          ASSERT_TRUE(found.Next(&b));
          ASSERT_EQ(a.key, b.key);
          ASSERT_EQ(a.value, b.value);
        }
        ASSERT_FALSE(found.Next(&b));
        RankSpan span;
        ASSERT_TRUE(SelectRanks(tree, range, &span));
        ASSERT_EQ(span.count(), expected.count());
      });
    }
  }
  EXPECT_GT(selected, 10'000U);
}

TEST(SortedSetTree, MembersAreFoundByName) {
  Rng rng(5);
  SetInBothForms set(ManyMembers(rng, 300, 3000), kTinyLimits);
  PackedElements members = SortedSetMembers(set.packed());
  PackedElement member;
  for (uint64_t i = 0; members.Next(&member); ++i) {
    set.OnTree([&](Tree& tree) {
      double score = 0;
      uint64_t rank = 0;
      const bool is_found = FindScore(tree, member.key, &score);
      const bool is_ranked = FindRank(tree, member.key, &rank);
      if (!tree.missing().empty()) return;
      EXPECT_TRUE(is_found && is_ranked);
      EXPECT_EQ(score, LoadScore(member.value));
      EXPECT_EQ(rank, i);
    });
  }
  set.OnTree([&](Tree& tree) {
    double score = 0;
    EXPECT_FALSE(FindScore(tree, "none", &score));
  });
}

TEST(SortedSetTree, ARangeTakesARoundForEachLevel) {
  Rng rng(6);
  SetInBothForms set(ManyMembers(rng, 2000, 20'000), kTinyLimits);
  const uint64_t rounds = set.pages().rounds();
  MemberRange range;
  range.first = 100;
  range.last = 1700;
  set.OnTree([&](Tree& tree) {
    SelectedMembers found;
    found.Select(tree, range);
  });
  EXPECT_LE(set.pages().rounds(), rounds + set.pages().root().tops[kByScore].height + 3);
}

}  // namespace
}  // namespace onetrip
