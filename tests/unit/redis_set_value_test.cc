// Sets as packed collections, and what becomes of several, against std::set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/set_combination.h"
#include "redis_compat/values/set_value.h"

namespace onetrip {
namespace {

constexpr uint64_t kIntegersMax = 512;

std::vector<std::string> MembersOf(std::string_view packed) {
  PackedElements members = SetMembers(packed);
  std::vector<std::string> all;
  PackedElement member;
  while (members.Next(&member)) all.emplace_back(member.key);
  EXPECT_EQ(all.size(), members.size());
  return all;
}

std::string Added(std::string_view packed, const std::vector<std::string>& members,
                  uint64_t integers_max = kIntegersMax) {
  SetEdit set(packed, integers_max);
  for (const std::string& member : members) set.Add(member);
  return set.Finish();
}

bool IsIntegerSet(std::string_view packed) {
  const uint8_t flags = SetMembers(packed).flags();
  EXPECT_TRUE(flags == kPackedIntegers || flags == kPackedTable);
  return flags == kPackedIntegers;
}

TEST(SetValue, IntegersStandInOrder) {
  std::string set = Added(
      {}, {"10", "-1", "9", "-10", "0", "9223372036854775807", "9", "-9223372036854775808", "-9"});
  const std::vector<std::string> all = {"-9223372036854775808", "-10", "-9", "-1", "0", "9", "10",
                                        "9223372036854775807"};
  EXPECT_EQ(MembersOf(set), all);
  EXPECT_TRUE(IsIntegerSet(set));
  set = Added(set, {"5", "-5"});
  EXPECT_EQ(MembersOf(set).at(3), "-5");
  EXPECT_EQ(MembersOf(set).at(6), "5");
}

TEST(SetValue, AnotherMemberEndsTheOrderForGood) {
  for (const char* odd : {"a", "", "007", "-0", "+1", "9223372036854775808", " 1"}) {
    std::string set = Added(Added({}, {"2", "1"}), {odd, "0"});
    EXPECT_FALSE(IsIntegerSet(set)) << odd;
    EXPECT_EQ(MembersOf(set), (std::vector<std::string>{"1", "2", odd, "0"}));
    SetEdit edit(set, kIntegersMax);
    EXPECT_TRUE(edit.Remove(odd));
    EXPECT_FALSE(IsIntegerSet(edit.Finish())) << odd;
  }
}

TEST(SetValue, MoreThanTheThresholdEndIt) {
  const std::string set = Added({}, {"1", "2", "3"}, 3);
  EXPECT_TRUE(IsIntegerSet(set));
  EXPECT_TRUE(IsIntegerSet(Added(set, {"3"}, 2)));
  EXPECT_FALSE(IsIntegerSet(Added(set, {"4"}, 3)));
  EXPECT_FALSE(IsIntegerSet(Added({}, {"1"}, 0)));
}

std::set<std::string> Expected(SetOperation operation,
                               const std::vector<std::set<std::string>>& sets) {
  std::set<std::string> all = sets.front();
  for (size_t i = 1; i < sets.size(); ++i) {
    const std::set<std::string> before = std::move(all);
    all.clear();
    const auto to = std::inserter(all, all.end());
    const std::set<std::string>& next = sets[i];
    switch (operation) {
      case SetOperation::kUnion:
        std::set_union(before.begin(), before.end(), next.begin(), next.end(), to);
        break;
      case SetOperation::kIntersection:
        std::set_intersection(before.begin(), before.end(), next.begin(), next.end(), to);
        break;
      case SetOperation::kDifference:
        std::set_difference(before.begin(), before.end(), next.begin(), next.end(), to);
        break;
    }
  }
  return all;
}

TEST(SetCombination, IsThatOfStandardSets) {
  Rng rng(1);
  for (int run = 0; run < 3000; ++run) {
    const auto operation = static_cast<SetOperation>(rng.Below(3));
    std::vector<std::set<std::string>> sets(1 + rng.Below(4));
    std::vector<std::string> packed;
    for (std::set<std::string>& set : sets) {
      const uint64_t size = rng.Below(3) == 0 ? rng.Below(2) : rng.Below(30);
      while (set.size() < size) set.insert(std::to_string(rng.Below(40)));
      if (rng.Below(3) == 0) set.insert("x");
      packed.push_back(Added({}, std::vector<std::string>(set.begin(), set.end())));
      if (set.empty()) packed.back().clear();
    }
    SetCombination combination(operation, {packed.begin(), packed.end()});
    while (combination.Advance(1 + rng.Below(10))) {
    }
    const NewSet made = combination.Finish(kIntegersMax);
    const std::set<std::string> members(made.members.begin(), made.members.end());
    EXPECT_EQ(members, Expected(operation, sets));
    EXPECT_EQ(members.size(), made.members.size());
    const std::string again = PackSet(made);
    EXPECT_EQ(IsIntegerSet(again), made.is_integers);
    EXPECT_FALSE(members.contains("x") && made.is_integers);
    EXPECT_TRUE(!made.is_integers || again == Added({}, MembersOf(again)));
  }
}

TEST(SetCombination, AnyBytesAreTaken) {
  Rng rng(2);
  for (int run = 0; run < 20'000; ++run) {
    std::vector<std::string> sets(1 + rng.Below(3));
    for (std::string& set : sets) {
      set = Added({}, {"1", "a", "22"}).substr(0, 8 + rng.Below(12));
      while (rng.Below(8) != 0) set.push_back(static_cast<char>(rng.Below(256)));
      set[4] = static_cast<char>(rng.Below(4));
    }
    const auto operation = static_cast<SetOperation>(rng.Below(3));
    const NewSet made = CombineSets(operation, {sets.begin(), sets.end()}, kIntegersMax);
    EXPECT_EQ(MembersOf(PackSet(made)).size(), made.members.size());
    SetEdit edit(sets[0], kIntegersMax);
    edit.Add("5");
    edit.Remove("1");
    (void)edit.Finish();
  }
}

}  // namespace
}  // namespace onetrip
