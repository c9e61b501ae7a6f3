// Unions, intersections and differences of sorted sets and sets.
//
// A member of a set has the score 1. Scores are combined in the order in which Redis combines them,
// which sums of doubles depend on. Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_ALGEBRA_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_ALGEBRA_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "redis_compat/values/sorted_set_value.h"

namespace onetrip {

struct ScoredSource {
  std::string_view value;  // a packed collection; empty: there is none
  bool is_set = false;     // no sorted set
  double weight = 1;       // a factor for its scores
};

// The score of a member that several sources have.
enum class Aggregate : uint8_t { kSum, kMin, kMax };

// Members in the order of a sorted set; they are bytes of the sources.
std::vector<ScoredMember> UniteScored(std::vector<ScoredSource> sources, Aggregate aggregate);
std::vector<ScoredMember> IntersectScored(std::vector<ScoredSource> sources, Aggregate aggregate);
// The members of the first source that no other one has; weights do not count.
std::vector<ScoredMember> SubtractScored(const std::vector<ScoredSource>& sources);

// How many members are in all sources, `limit` at most; 0: as many as there are.
uint64_t CountIntersection(std::vector<ScoredSource> sources, uint64_t limit);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_ALGEBRA_H_
