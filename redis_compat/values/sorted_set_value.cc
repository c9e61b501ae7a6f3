#include "redis_compat/values/sorted_set_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

MemberSpan SelectByRank(PackedElements members, const MemberRange& range) {
  const auto size = static_cast<int64_t>(members.size());
  int64_t first = range.first < 0 ? range.first + size : range.first;
  int64_t last = range.last < 0 ? range.last + size : range.last;
  first = std::max<int64_t>(first, 0);
  last = std::min(last, size - 1);
  if (first > last) return {};
  if (range.reverse) {
    const int64_t from_end = first;
    first = size - 1 - last;
    last = size - 1 - from_end;
  }
  PackedElement element;
  for (int64_t i = 0; i < first; ++i) members.Next(&element);
  MemberSpan span{members.at(), members.at(), 0};
  for (; first <= last && members.Next(&element); ++first) ++span.count;
  span.end = members.at();
  return span;
}

// Walks over members in the order of a range.
class RangeWalk {
 public:
  RangeWalk(const PackedElements& members, const MemberRange& range)
      : members_(members), range_(range) {
    range.reverse ? members_.GoToEnd() : members_.GoToBegin();
    Step();
  }

  [[nodiscard]] bool is_at_member() const { return is_at_member_; }
  // The side of the member from which the walk has come.
  [[nodiscard]] size_t at() const { return at_; }
  void Step() {
    at_ = members_.at();
    is_at_member_ = range_.reverse ? members_.Previous(&element_) : members_.Next(&element_);
  }
  [[nodiscard]] bool has_entered() const {
    return range_.reverse ? KeepsMax(element_, range_) : ReachesMin(element_, range_);
  }
  [[nodiscard]] bool has_left() const {
    return range_.reverse ? !ReachesMin(element_, range_) : !KeepsMax(element_, range_);
  }

 private:
  PackedElements members_;
  const MemberRange& range_;
  PackedElement element_;
  size_t at_ = 0;
  bool is_at_member_ = false;
};

// False: the first or the last member tells that there is none in the range.
bool MayHaveMembers(PackedElements members, const MemberRange& range) {
  PackedElement element;
  members.GoToBegin();
  if (!members.Next(&element) || !KeepsMax(element, range)) return false;
  members.GoToEnd();
  return members.Previous(&element) && ReachesMin(element, range);
}

}  // namespace

bool StandsBefore(const ScoredMember& a, const ScoredMember& b) {
  return a.score < b.score || (a.score == b.score && a.member < b.member);
}

PackedScore StoreScore(double score) {
  const auto bits = std::bit_cast<uint64_t>(score);
  PackedScore packed;
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<char>(bits >> (8 * i));
  return packed;
}

double LoadScore(std::string_view bytes) {
  if (bytes.size() != std::tuple_size_v<PackedScore>) return 0;
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  const auto score = std::bit_cast<double>(bits);
  return std::isnan(score) ? 0 : score;
}

bool ParseScoreBound(std::string_view text, ScoreBound* bound) {
  // Redis reads it as a C string: blanks in front, and nothing at all, are good enough.
  bound->is_open = text.starts_with('(');
  const std::string number(UntilNul(text.substr(bound->is_open ? 1 : 0)));
  char* end = nullptr;
  bound->score = std::strtod(number.c_str(), &end);
  return end == number.c_str() + number.size() && !std::isnan(bound->score);
}

bool ParseLexBound(std::string_view text, LexBound* bound) {
  if (text.empty()) return false;
  const char first = text.front();
  if (first == '+' || first == '-') {
    *bound = {first == '+' ? LexBound::Kind::kHighest : LexBound::Kind::kLowest, {}, true};
    return UntilNul(text).size() == 1;
  }
  *bound = {LexBound::Kind::kMember, text.substr(1), first == '('};
  return first == '(' || first == '[';
}

bool IsEmptyRange(const MemberRange& range) {
  if (range.by == MemberRange::By::kScore) {
    const ScoreBound& min = range.min_score;
    const ScoreBound& max = range.max_score;
    return min.score > max.score || (min.score == max.score && (min.is_open || max.is_open));
  }
  const LexBound& min = range.min_member;
  const LexBound& max = range.max_member;
  if (min.kind != max.kind) return min.kind > max.kind;
  const int order = min.kind == LexBound::Kind::kMember ? min.member.compare(max.member) : 0;
  return order > 0 || (order == 0 && (min.is_open || max.is_open));
}

bool ReachesMin(const PackedElement& element, const MemberRange& range) {
  if (range.by == MemberRange::By::kScore) {
    const double score = LoadScore(element.value);
    const ScoreBound& min = range.min_score;
    return min.is_open ? score > min.score : score >= min.score;
  }
  const LexBound& min = range.min_member;
  if (min.kind != LexBound::Kind::kMember) return min.kind == LexBound::Kind::kLowest;
  return min.is_open ? element.key > min.member : element.key >= min.member;
}

bool KeepsMax(const PackedElement& element, const MemberRange& range) {
  if (range.by == MemberRange::By::kScore) {
    const double score = LoadScore(element.value);
    const ScoreBound& max = range.max_score;
    return max.is_open ? score < max.score : score <= max.score;
  }
  const LexBound& max = range.max_member;
  if (max.kind != LexBound::Kind::kMember) return max.kind == LexBound::Kind::kHighest;
  return max.is_open ? element.key < max.member : element.key <= max.member;
}

MemberSpan SelectMembers(PackedElements members, const MemberRange& range) {
  if (range.by == MemberRange::By::kRank) return SelectByRank(members, range);
  if (IsEmptyRange(range) || range.offset < 0 || !MayHaveMembers(members, range)) return {};
  RangeWalk walk(members, range);
  while (walk.is_at_member() && !walk.has_entered()) walk.Step();
  if (!walk.is_at_member() || walk.has_left()) return {};
  for (int64_t i = 0; walk.is_at_member() && i < range.offset; ++i) walk.Step();
  const size_t from = walk.at();
  MemberSpan span;
  uint64_t left = range.count < 0 ? UINT64_MAX : static_cast<uint64_t>(range.count);
  for (; walk.is_at_member() && left > 0 && !walk.has_left(); --left) {
    ++span.count;
    walk.Step();
  }
  span.begin = std::min(from, walk.at());
  span.end = std::max(from, walk.at());
  return span;
}

std::string WithoutSpan(std::string_view value, const MemberSpan& span) {
  PackedHeader header;
  LoadPackedHeader(value, &header);
  header.elements -= static_cast<uint32_t>(std::min<uint64_t>(span.count, header.elements));
  const std::string_view entries = PackedEntries(value);
  std::string made = PackedHeaderBytes(header);
  made.reserve(value.size() - (span.end - span.begin));
  made.append(entries.substr(0, span.begin));
  made.append(entries.substr(span.end));
  return made;
}

std::string PackSortedSet(std::span<const ScoredMember> members, const CompactLimits& limits) {
  bool is_table = members.size() > limits.elements;
  size_t bytes = kPackedHeaderBytes;
  for (const ScoredMember& one : members) {
    is_table |= one.member.size() > limits.bytes;
    bytes += PackedEntryBytes(one.member.size()) + PackedEntryBytes(sizeof(PackedScore));
  }
  PackedHeader header;
  if (is_table) header.flags = kPackedTable;
  header.elements = static_cast<uint32_t>(members.size());
  std::string made = PackedHeaderBytes(header);
  made.reserve(bytes);
  for (const ScoredMember& one : members) {
    const PackedScore score = StoreScore(KeptScore(one.score, is_table));
    AppendPackedEntry(one.member, &made);
    AppendPackedEntry({score.data(), score.size()}, &made);
  }
  return made;
}

bool PackedSortedSetEdit::Find(std::string_view member, double* score) {
  std::string_view bytes;
  if (!members_.Find(member, &bytes)) return false;
  *score = LoadScore(bytes);
  return true;
}

bool PackedSortedSetEdit::Put(std::string_view member, double score) {
  PackedScore& stored = scores_.emplace_back();
  const bool is_new = members_.Put(member, {stored.data(), stored.size()});
  is_table_ |= is_new && (size() > limits_.elements || member.size() > limits_.bytes);
  stored = StoreScore(KeptScore(score, is_table_));
  return is_new;
}

std::string PackedSortedSetEdit::Finish() const {
  return members_.Finish(members_.flags() | (is_table_ ? kPackedTable : 0),
                         [](const PackedElement& a, const PackedElement& b) {
                           return StandsBefore(ScoredOf(a), ScoredOf(b));
                         });
}

}  // namespace onetrip
