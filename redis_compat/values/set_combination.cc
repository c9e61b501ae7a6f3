#include "redis_compat/values/set_combination.h"

#include <algorithm>
#include <utility>

namespace onetrip {
namespace {

// Redis chooses between looking up the first set's members in the others, and removing the others'
// from it, by what both cost.
bool RedisRemovesFromFirst(const std::vector<PackedElements>& sets) {
  uint64_t all = 0;
  uint64_t there = 0;
  for (const PackedElements& set : sets) {
    all += set.size();
    there += set.size() > 0 ? 1 : 0;
  }
  return sets.front().size() * there / 2 > all;
}

}  // namespace

SetCombination::SetCombination(SetOperation operation, const std::vector<std::string_view>& sets)
    : operation_(operation) {
  for (const std::string_view set : sets) sets_.push_back(SetMembers(set));
  const auto is_empty = [](const PackedElements& set) { return set.size() == 0; };
  switch (operation) {
    case SetOperation::kUnion:
      return;
    case SetOperation::kIntersection:
      if (std::any_of(sets_.begin(), sets_.end(), is_empty)) sets_.clear();
      std::stable_sort(
          sets_.begin(), sets_.end(),
          [](const PackedElements& a, const PackedElements& b) { return a.size() < b.size(); });
      return;
    case SetOperation::kDifference:
      if (!sets_.empty() && is_empty(sets_.front())) sets_.clear();
      removes_from_first_ = !sets_.empty() && RedisRemovesFromFirst(sets_);
      return;
  }
}

void SetCombination::Meet(std::string_view member) {
  if (at_ == 0 || operation_ == SetOperation::kUnion) {
    const bool is_new = places_.try_emplace(member, candidates_.size()).second;
    if (is_new) candidates_.push_back({member});
    return;
  }
  const auto found = places_.find(member);
  if (found == places_.end()) return;
  size_t& met_in = candidates_[found->second].met_in;
  if (operation_ == SetOperation::kDifference || met_in + 1 == at_) met_in = at_;
}

bool SetCombination::Advance(uint64_t members) {
  PackedElement element;
  for (; members > 0 && at_ < sets_.size(); --members) {
    if (sets_[at_].Next(&element)) {
      Meet(element.key);
    } else {
      ++at_;
    }
  }
  return at_ < sets_.size();
}

NewSet SetCombination::Finish(uint64_t integers_max) const {
  const bool is_intersection = operation_ == SetOperation::kIntersection;
  const size_t wanted = is_intersection && !sets_.empty() ? sets_.size() - 1 : 0;
  std::vector<std::string_view> members;
  bool is_table = removes_from_first_ && candidates_.size() > integers_max;
  for (const Candidate& candidate : candidates_) {
    if (candidate.met_in == wanted)
      members.push_back(candidate.member);
    else
      is_table = is_table || (removes_from_first_ && !IsIntegerMember(candidate.member));
  }
  NewSet set = MakeSet(std::move(members), integers_max);
  set.is_integers = set.is_integers && !is_table;
  return set;
}

}  // namespace onetrip
