// Sorted sets as packed collections: two entries an element, the member and its score, a double of
// eight bytes, lowest byte first. They lie in the order of their scores, those of one score in that
// of their members' bytes.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "redis_compat/values/packed_map.h"

namespace onetrip {

struct ScoredMember {
  std::string_view member;
  double score = 0;
};
// Returns true if `a` stands before `b`.
bool StandsBefore(const ScoredMember& a, const ScoredMember& b);

using PackedScore = std::array<char, 8>;
PackedScore StoreScore(double score);
// 0 where the bytes are no score.
double LoadScore(std::string_view bytes);
// The score that is stored: Redis's compact encoding keeps a negative zero as the integer 0.
inline double KeptScore(double score, bool is_table) { return score == 0 && !is_table ? 0 : score; }
inline ScoredMember ScoredOf(const PackedElement& element) {
  return {element.key, LoadScore(element.value)};
}

inline PackedElements SortedSetMembers(std::string_view value) {
  return PackedElements(value, /*has_values=*/true);
}

// Reads a bound of a range of scores, "(" in front of one that is left out. False: it is none.
struct ScoreBound {
  double score = 0;
  bool is_open = false;
};
bool ParseScoreBound(std::string_view text, ScoreBound* bound);

// Reads a bound of a range of members: "-", "+", or a member behind "[" or, if it is left out, "(".
// `text` outlives it. False: it is none.
struct LexBound {
  enum class Kind : uint8_t { kLowest, kMember, kHighest };
  Kind kind = Kind::kMember;
  std::string_view member;
  bool is_open = false;
};
bool ParseLexBound(std::string_view text, LexBound* bound);

// The members that a command is about, and the order in which it takes them.
struct MemberRange {
  enum class By : uint8_t { kRank, kScore, kMember };
  By by = By::kRank;
  // From the last member on. Ranks count from there, too.
  bool reverse = false;
  // kRank: both included; negative ones count from the other end.
  int64_t first = 0;
  int64_t last = -1;
  // kScore.
  ScoreBound min_score;
  ScoreBound max_score;
  // kMember: as in a set whose scores are all the same.
  LexBound min_member;
  LexBound max_member;
  // kScore, kMember: leaves out `offset` of them, and takes at most `count`; negative: all.
  int64_t offset = 0;
  int64_t count = -1;
};

// For ranges by score and by member. True if no member can be in it.
bool IsEmptyRange(const MemberRange& range);
// True if a member is not below the range, or not above it.
bool ReachesMin(const PackedElement& element, const MemberRange& range);
bool KeepsMax(const PackedElement& element, const MemberRange& range);

// Elements that lie one behind the other: bytes of the entries, and how many elements they are.
struct MemberSpan {
  size_t begin = 0;
  size_t end = 0;
  uint64_t count = 0;
};
MemberSpan SelectMembers(PackedElements members, const MemberRange& range);

// The sorted set `value` without some of its elements.
std::string WithoutSpan(std::string_view value, const MemberSpan& span);

// A sorted set of members that are in its order, each of them once.
std::string PackSortedSet(std::span<const ScoredMember> members, const CompactLimits& limits);

// A packed sorted set that a command changes.
class PackedSortedSetEdit {
 public:
  // `value` outlives it; empty: there is none.
  PackedSortedSetEdit(std::string_view value, const CompactLimits& limits)
      : members_(value, /*has_values=*/true),
        limits_(limits),
        is_table_((members_.flags() & kPackedTable) != 0) {}

  [[nodiscard]] uint64_t size() const { return members_.size(); }
  bool Find(std::string_view member, double* score);
  // `member` outlives the edit. True: it is new.
  bool Put(std::string_view member, double score);
  bool Remove(std::string_view member) { return members_.Remove(member); }

  // The sorted set as it is now.
  [[nodiscard]] std::string Finish() const;

 private:
  PackedMap members_;
  const CompactLimits limits_;
  bool is_table_;
  std::deque<PackedScore> scores_;  // those that Put() has given
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_VALUE_H_
