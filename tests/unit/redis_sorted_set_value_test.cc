// Sorted sets as packed collections, compared with std::map.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/sorted_set_algebra.h"
#include "redis_compat/values/sorted_set_value.h"

namespace onetrip {
namespace {

constexpr CompactLimits kLimits{128, 64};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Scores = std::map<std::string, double>;
using Members = std::vector<std::pair<std::string, double>>;

Members MembersOf(std::string_view value) {
  Members all;
  PackedElements elements = SortedSetMembers(value);
  PackedElement element;
  while (elements.Next(&element)) all.emplace_back(element.key, LoadScore(element.value));
  EXPECT_EQ(all.size(), elements.size());
  return all;
}

Members InOrder(const Scores& scores) {
  std::set<std::pair<double, std::string>> ordered;
  for (const auto& [member, score] : scores) ordered.emplace(score, member);
  Members all;
  for (const auto& [score, member] : ordered) all.emplace_back(member, score);
  return all;
}

std::string Packed(const Scores& scores) {
  const Members all = InOrder(scores);
  std::vector<ScoredMember> members;
  for (const auto& [member, score] : all) members.push_back({member, score});
  return PackSortedSet(members, kLimits);
}

double AnyScore(Rng& rng) {
  constexpr double kScores[] = {0, -0.0, 1, 2, -1, 1.5, 1e300, 5e-324, kInfinity, -kInfinity};
  return rng.Below(2) == 0 ? kScores[rng.Below(10)] : static_cast<double>(rng.Below(40)) - 20;
}

std::string AnyMember(Rng& rng, uint64_t names) {
  std::string member = "m" + std::to_string(rng.Below(names));
  if (rng.Below(50) == 0) member.assign(rng.Below(200), static_cast<char>(rng.Below(256)));
  return member;
}

Scores AnyScores(Rng& rng, uint64_t names) {
  Scores scores;
  for (uint64_t i = rng.Below(names); i > 0; --i) scores[AnyMember(rng, names)] = AnyScore(rng);
  return scores;
}

TEST(SortedSetValue, ScoresComeBackBitForBit) {
  for (const double score : {0.0, -0.0, 1.0, -2.5, 1e308, 5e-324, kInfinity, -kInfinity}) {
    const PackedScore packed = StoreScore(score);
    const double loaded = LoadScore({packed.data(), packed.size()});
    EXPECT_EQ(loaded, score);
    EXPECT_EQ(std::signbit(loaded), std::signbit(score));
  }
  const PackedScore nan = StoreScore(std::nan(""));
  EXPECT_EQ(LoadScore({nan.data(), nan.size()}), 0);
  EXPECT_EQ(LoadScore("1234567"), 0);
  EXPECT_EQ(LoadScore(""), 0);
}

TEST(SortedSetValue, RandomEditsLeaveTheMembersInTheirOrder) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const uint64_t names = seed % 3 == 0 ? 1000 : 12;
    Scores model;
    std::string value;
    bool was_table = false;
    for (int round = 0; round < 20; ++round) {
      PackedSortedSetEdit edit(value, kLimits);
      std::vector<std::string> kept;  // the edit borrows members
      kept.reserve(300);
      for (uint64_t i = rng.Below(rng.Below(4) == 0 ? 300 : 4); i > 0; --i) {
        const std::string& member = kept.emplace_back(AnyMember(rng, names));
        const auto found = model.find(member);
        double score = 0;
        ASSERT_EQ(edit.Find(member, &score), found != model.end());
        ASSERT_EQ(score, found == model.end() ? 0 : found->second);
        if (rng.Below(3) == 0) {
          ASSERT_EQ(edit.Remove(member), model.erase(member) == 1);
        } else {
          score = AnyScore(rng);
          ASSERT_EQ(edit.Put(member, score), model.insert_or_assign(member, score).second);
          was_table |= model.size() > kLimits.elements || member.size() > kLimits.bytes;
        }
        ASSERT_EQ(edit.size(), model.size());
      }
      value = edit.Finish();
      ASSERT_EQ(MembersOf(value), InOrder(model));
      ASSERT_EQ((SortedSetMembers(value).flags() & kPackedTable) != 0, was_table);
    }
  }
}

TEST(SortedSetValue, ACompactOneKeepsNoNegativeZero) {
  for (const bool is_table : {false, true}) {
    PackedSortedSetEdit edit("", {is_table ? 0U : 10U, 64});
    edit.Put("a", -0.0);
    EXPECT_EQ(std::signbit(MembersOf(edit.Finish())[0].second), is_table);
    const ScoredMember members[] = {{"a", -0.0}};
    const std::string packed = PackSortedSet(members, {is_table ? 0U : 10U, 64});
    EXPECT_EQ(std::signbit(MembersOf(packed)[0].second), is_table);
  }
}

// The members that a range selects, in its order.
Members Selected(std::string_view value, const MemberRange& range) {
  PackedElements members = SortedSetMembers(value);
  const MemberSpan span = SelectMembers(members, range);
  members.GoTo(range.reverse ? span.end : span.begin);
  Members chosen;
  PackedElement member;
  for (uint64_t i = 0; i < span.count; ++i) {
    EXPECT_TRUE(range.reverse ? members.Previous(&member) : members.Next(&member));
    chosen.emplace_back(member.key, LoadScore(member.value));
  }
  EXPECT_EQ(members.at(), range.reverse ? span.begin : span.end);
  return chosen;
}

bool IsWithin(const std::pair<std::string, double>& one, const MemberRange& range) {
  if (range.by == MemberRange::By::kScore) {
    const auto& [low, high] = std::pair(range.min_score, range.max_score);
    return (low.is_open ? one.second > low.score : one.second >= low.score) &&
           (high.is_open ? one.second < high.score : one.second <= high.score);
  }
  const auto above = [&](const LexBound& low) {
    if (low.kind != LexBound::Kind::kMember) return low.kind == LexBound::Kind::kLowest;
    return low.is_open ? one.first > low.member : one.first >= low.member;
  };
  const auto below = [&](const LexBound& high) {
    if (high.kind != LexBound::Kind::kMember) return high.kind == LexBound::Kind::kHighest;
    return high.is_open ? one.first < high.member : one.first <= high.member;
  };
  return above(range.min_member) && below(range.max_member);
}

// One element after the other, as the range says it.
Members Expected(Members all, const MemberRange& range) {
  if (range.reverse) std::reverse(all.begin(), all.end());
  Members chosen;
  const auto size = static_cast<int64_t>(all.size());
  const int64_t first = range.first < 0 ? range.first + size : range.first;
  const int64_t last = range.last < 0 ? range.last + size : range.last;
  int64_t skipped = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (range.by == MemberRange::By::kRank) {
      if (i >= first && i <= last) chosen.push_back(all[static_cast<size_t>(i)]);
      continue;
    }
    if (!IsWithin(all[static_cast<size_t>(i)], range)) continue;
    if (range.offset < 0 || skipped++ < range.offset) continue;
    if (range.count >= 0 && static_cast<int64_t>(chosen.size()) >= range.count) continue;
    chosen.push_back(all[static_cast<size_t>(i)]);
  }
  return chosen;
}

TEST(SortedSetValue, RangesSelectWhatAWalkFinds) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Scores scores = AnyScores(rng, 40);
    MemberRange range;
    range.by = static_cast<MemberRange::By>(rng.Below(3));
    // Members of one score, or there is no order of members.
    if (range.by == MemberRange::By::kMember) {
      for (auto& [member, score] : scores) score = 3;
    }
    const std::string value = Packed(scores);
    for (int i = 0; i < 60; ++i) {
      range.reverse = rng.Below(2) == 0;
      range.first = static_cast<int64_t>(rng.Below(60)) - 30;
      range.last = static_cast<int64_t>(rng.Below(60)) - 30;
      range.offset = static_cast<int64_t>(rng.Below(6)) - 1;
      range.count = static_cast<int64_t>(rng.Below(8)) - 2;
      range.min_score = {AnyScore(rng), rng.Below(2) == 0};
      range.max_score = {AnyScore(rng), rng.Below(2) == 0};
      const std::string low = rng.Below(5) == 0 ? "-" : "[" + AnyMember(rng, 40);
      const std::string high = rng.Below(5) == 0 ? "+" : "(" + AnyMember(rng, 40);
      ASSERT_TRUE(ParseLexBound(low, &range.min_member));
      ASSERT_TRUE(ParseLexBound(high, &range.max_member));
      const Members expected = Expected(InOrder(scores), range);
      ASSERT_EQ(Selected(value, range), expected);

      Scores left = scores;
      for (const auto& [member, score] : expected) left.erase(member);
      ASSERT_EQ(MembersOf(WithoutSpan(value, SelectMembers(SortedSetMembers(value), range))),
                InOrder(left));
    }
  }
}

TEST(SortedSetValue, ADamagedOneIsShorterAndNeverReadBeyond) {
  Rng rng(7);
  const std::string sound = Packed(AnyScores(rng, 40));
  MemberRange range;
  for (int i = 0; i < 20000; ++i) {
    std::string value = sound.substr(0, rng.Below(sound.size() + 1));
    if (!value.empty()) value[rng.Below(value.size())] = static_cast<char>(rng.Below(256));
    range.by = static_cast<MemberRange::By>(rng.Below(3));
    range.reverse = rng.Below(2) == 0;
    range.min_score.score = -kInfinity;
    range.max_score.score = kInfinity;
    const MemberSpan span = SelectMembers(SortedSetMembers(value), range);
    ASSERT_LE(span.begin, span.end);
    ASSERT_LE(span.end, value.size());
    PackedSortedSetEdit edit(value, kLimits);
    edit.Put("m1", 5);
    edit.Remove("m2");
    (void)edit.Finish();
  }
}

TEST(SortedSetValue, BoundsOfScoresAreReadAsRedisReadsThem) {
  ScoreBound bound;
  for (const char* const text :
       {"1", "(1", " 1", "", "(", "inf", "-inf", "(+inf", "1e400", "0x10"}) {
    EXPECT_TRUE(ParseScoreBound(text, &bound)) << text;
  }
  for (const char* const text : {"x", "nan", "(nan", "1 ", "((1", "[1", "1,5"}) {
    EXPECT_FALSE(ParseScoreBound(text, &bound)) << text;
  }
  EXPECT_TRUE(ParseScoreBound({"(2.5\0x", 6}, &bound));
  EXPECT_EQ(bound.score, 2.5);
  EXPECT_TRUE(bound.is_open);
}

// The scores of a member in the sources that have it, each with its weight.
TEST(SortedSetAlgebra, AgreesWithMaps) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Scores> maps;
    std::vector<std::string> values;
    std::vector<ScoredSource> sources;
    for (uint64_t i = 1 + rng.Below(4); i > 0; --i) {
      Scores scores;
      for (uint64_t n = rng.Below(60); n > 0; --n) {
        scores["m" + std::to_string(rng.Below(40))] = static_cast<double>(rng.Below(100));
      }
      maps.push_back(scores);
      values.push_back(Packed(scores));
    }
    sources.reserve(values.size());
    for (const std::string& value : values) sources.push_back({value, false, 2});
    Scores sum;
    Scores lowest;
    std::map<std::string, size_t> held;
    for (const Scores& scores : maps) {
      for (const auto& [member, score] : scores) {
        sum[member] += 2 * score;
        const auto [place, is_new] = lowest.emplace(member, 2 * score);
        if (!is_new) place->second = std::min(place->second, 2 * score);
        ++held[member];
      }
    }
    Scores common;
    Scores left = maps.front();
    for (const auto& [member, score] : sum) {
      if (held[member] == maps.size()) common[member] = score;
      if (held[member] > 1) left.erase(member);
    }
    const auto pairs = [](const std::vector<ScoredMember>& members) {
      Members all;
      for (const ScoredMember& one : members) all.emplace_back(one.member, one.score);
      return all;
    };
    EXPECT_EQ(pairs(UniteScored(sources, Aggregate::kSum)), InOrder(sum));
    EXPECT_EQ(pairs(UniteScored(sources, Aggregate::kMin)), InOrder(lowest));
    EXPECT_EQ(pairs(IntersectScored(sources, Aggregate::kSum)), InOrder(common));
    EXPECT_EQ(pairs(SubtractScored(sources)), InOrder(left));
    EXPECT_EQ(CountIntersection(sources, 0), common.size());
    EXPECT_EQ(CountIntersection(sources, 3), std::min<size_t>(3, common.size()));
  }
}

}  // namespace
}  // namespace onetrip
