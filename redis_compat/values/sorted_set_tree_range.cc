#include "redis_compat/values/sorted_set_tree_range.h"

#include <algorithm>
#include <utility>

#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/sorted_set_tree.h"

namespace onetrip {
namespace {

// Counts the members before a place in the order, which is that of `key`.
template <typename IsBefore>
bool CountBefore(Tree& tree, const std::string& key, IsBefore is_before, uint64_t* count) {
  LeafPlace leaf;
  if (!tree.SeekKey(kByScore, key, &leaf)) return false;
  *count = leaf.before;
  PackedElements members = LeafMembers(leaf);
  PackedElement element;
  while (members.Next(&element) && is_before(element)) ++*count;
  return true;
}

// The first key of the length of `key` that is above all that begin with it.
std::string Behind(std::string key) {
  for (size_t i = key.size(); i > 0; --i) {
    key[i - 1] = static_cast<char>(key[i - 1] + 1);
    if (key[i - 1] != 0) break;
  }
  return key;
}

// The ends of a range: all members below `begin` stand before it, those below `end` or in it.
struct RangeKeys {
  std::string begin;
  std::string end;
};

RangeKeys KeysOf(const MemberRange& range, const std::string& score_of_all) {
  if (range.by == MemberRange::By::kScore) {
    RangeKeys keys{ScoreKey(range.min_score.score), ScoreKey(range.max_score.score)};
    if (range.min_score.is_open) keys.begin = Behind(std::move(keys.begin));
    if (!range.max_score.is_open) keys.end = Behind(std::move(keys.end));
    return keys;
  }
  const auto key_of = [&](const LexBound& bound) {
    if (bound.kind == LexBound::Kind::kLowest) return score_of_all;
    if (bound.kind == LexBound::Kind::kHighest) return Behind(score_of_all);
    return score_of_all + std::string(bound.member);
  };
  RangeKeys keys{key_of(range.min_member), key_of(range.max_member)};
  // The shortest key behind that of a member.
  const auto is_member = [](const LexBound& bound) {
    return bound.kind == LexBound::Kind::kMember;
  };
  if (is_member(range.min_member) && range.min_member.is_open) keys.begin.push_back('\0');
  if (is_member(range.max_member) && !range.max_member.is_open) keys.end.push_back('\0');
  return keys;
}

// Members by rank, in the direction of the range, as seen from the lowest one.
RankSpan RanksOf(const MemberRange& range, uint64_t members) {
  const auto size = static_cast<int64_t>(members);
  int64_t first = range.first < 0 ? range.first + size : range.first;
  int64_t last = range.last < 0 ? range.last + size : range.last;
  first = std::max<int64_t>(first, 0);
  last = std::min(last, size - 1);
  if (first > last) return {};
  if (range.reverse) first = size - 1 - std::exchange(last, size - 1 - first);
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(last) + 1};
}

// Applies offset and count.
RankSpan Limited(const MemberRange& range, RankSpan span) {
  if (span.begin >= span.end) return {};
  const uint64_t offset = std::min(static_cast<uint64_t>(range.offset), span.count());
  (range.reverse ? span.end : span.begin) += range.reverse ? -offset : offset;
  if (range.count < 0) return span;
  const uint64_t count = std::min(static_cast<uint64_t>(range.count), span.count());
  if (range.reverse) {
    span.begin = span.end - count;
  } else {
    span.end = span.begin + count;
  }
  return span;
}

// The key of the score that all members have; empty: they have several.
bool FindScoreOfAll(Tree& tree, std::string* key) {
  LeafPlace first;
  LeafPlace last;
  const bool has_first = tree.First(kByScore, &first);
  const bool has_last = tree.Last(kByScore, &last);
  if (!has_first || !has_last) return false;
  PackedElement lowest;
  PackedElement highest;
  PackedElements members = LeafMembers(last);
  members.GoToEnd();
  members.Previous(&highest);
  LeafMembers(first).Next(&lowest);
  *key = ScoreKey(ScoredOf(lowest).score);
  if (*key != ScoreKey(ScoredOf(highest).score)) key->clear();
  return true;
}

// Members of several scores are in no order of members: all have to be looked at.
bool SelectInAll(Tree& tree, const MemberRange& range, RankSpan* span) {
  std::string packed;
  if (!JoinLeaves(tree, &packed)) return false;
  PackedElements members = SortedSetMembers(packed);
  const MemberSpan selected = SelectMembers(members, range);
  PackedElement element;
  for (span->begin = 0; members.at() < selected.begin && members.Next(&element);) ++span->begin;
  span->end = span->begin + selected.count;
  return true;
}

}  // namespace

bool SelectRanks(Tree& tree, const MemberRange& range, RankSpan* span) {
  *span = {};
  const uint64_t size = tree.elements(kByScore);
  if (range.by == MemberRange::By::kRank) {
    *span = RanksOf(range, size);
    return true;
  }
  if (IsEmptyRange(range) || range.offset < 0 || size == 0) return true;
  std::string score_of_all;
  if (range.by == MemberRange::By::kMember) {
    if (!FindScoreOfAll(tree, &score_of_all)) return false;
    if (score_of_all.empty()) return SelectInAll(tree, range, span);
  }
  const RangeKeys keys = KeysOf(range, score_of_all);
  const auto is_below = [&](const PackedElement& one) { return !ReachesMin(one, range); };
  const auto is_not_above = [&](const PackedElement& one) { return KeepsMax(one, range); };
  const bool has_begin = CountBefore(tree, keys.begin, is_below, &span->begin);
  const bool has_end = CountBefore(tree, keys.end, is_not_above, &span->end);
  if (has_begin && has_end) *span = Limited(range, *span);
  return has_begin && has_end;
}

uint64_t BytesOfRanks(const Tree& tree, RankSpan span) {
  const uint64_t members = std::max<uint64_t>(tree.elements(kByScore), 1);
  return span.count() * (tree.leaf_bytes(kByScore) / members + 1);
}

bool CopyRanks(Tree& tree, RankSpan span, std::string* packed) {
  if (!SeekNumbers(tree, kByScore, span.begin, span.count())) return false;
  *packed = PackedHeaderBytes({HeaderOf(tree).flags, static_cast<uint32_t>(span.count())});
  LeafPlace leaf;
  for (uint64_t rank = span.begin; rank < span.end;) {
    if (!tree.Seek(kByScore, rank, &leaf)) return false;
    PackedElements members = LeafMembers(leaf);
    PackedElement element;
    for (uint64_t at = leaf.before; at < rank; ++at) members.Next(&element);
    const size_t from = members.at();
    if (leaf.before + leaf.elements <= span.end) {
      packed->append(leaf.bytes.substr(from));
    } else {
      for (uint64_t at = rank; at < span.end; ++at) members.Next(&element);
      packed->append(leaf.bytes.substr(from, members.at() - from));
    }
    rank = leaf.before + leaf.elements;
  }
  return true;
}

}  // namespace onetrip
