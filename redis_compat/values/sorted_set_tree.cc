#include "redis_compat/values/sorted_set_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "redis_compat/values/collection_tree.h"

namespace onetrip {
namespace {

// Ends the leaf that is begun when it has `wanted` bytes, or would have more than `most`.
struct LeafSizes {
  size_t most = 0;
  size_t wanted = 0;

  [[nodiscard]] bool IsEnough(size_t bytes, size_t coming) const {
    return bytes > 0 && (bytes >= wanted || bytes + coming > most);
  }
};

LeafSizes SizesFor(size_t bytes, Fill fill, const TreeLimits& limits) {
  const size_t most = limits.leaf_bytes;
  const size_t leaves = std::max<size_t>((bytes + most - 1) / most, 1);
  return {most, fill == Fill::kFull ? most : (bytes + leaves - 1) / leaves};
}

}  // namespace

std::string ScoreKey(double score) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  auto bits = std::bit_cast<uint64_t>(score == 0 ? 0.0 : score);
  bits = (bits & kSign) != 0 ? ~bits : bits | kSign;
  std::string key(sizeof(bits), '\0');
  for (size_t i = key.size(); i > 0; --i, bits >>= 8) key[i - 1] = static_cast<char>(bits);
  return key;
}

std::string ScoreKey(const ScoredMember& one) { return ScoreKey(one.score).append(one.member); }

std::string MemberKey(std::string_view member) { return PositionKey(ScanPosition(member)); }

std::vector<NewLeaf> ScoreLeaves(std::string_view entries, Fill fill, const TreeLimits& limits) {
  const LeafSizes sizes = SizesFor(entries.size(), fill, limits);
  std::vector<NewLeaf> leaves;
  NewLeaf leaf;
  PackedElements members(PackedHeader(), entries, /*has_values=*/true);
  PackedElement element;
  PackedElement last;
  size_t begin = 0;
  size_t end = 0;
  const auto finish_leaf = [&] {
    leaf.bytes = entries.substr(begin, end - begin);
    leaves.push_back(std::exchange(leaf, {}));
    begin = end;
  };
  for (; members.Next(&element); end = members.at()) {
    if (sizes.IsEnough(end - begin, members.at() - end)) {
      const std::string before = ScoreKey(ScoredOf(last));
      const std::string first = ScoreKey(ScoredOf(element));
      // In a damaged value elements may stand in no order.
      if (before < first) {
        finish_leaf();
        leaf.first = ShortestBetween(before, first);
      }
    }
    ++leaf.elements;
    last = element;
  }
  if (leaf.elements > 0) finish_leaf();
  return leaves;
}

std::vector<std::vector<NewLeaf>> SortedSetLeaves(std::string_view packed,
                                                  const TreeLimits& limits) {
  PackedElements members = SortedSetMembers(packed);
  PackedElement element;
  while (members.Next(&element)) {
    if (element.key.size() > kTreeMemberBytesMax) return {};
  }
  std::vector<std::vector<NewLeaf>> orders;
  orders.push_back(ScoreLeaves(PackedEntries(packed), Fill::kFull, limits));
  orders.push_back(PositionLeaves(SortedSetMembers(packed), limits));
  return orders;
}

bool FindScore(Tree& tree, std::string_view member, double* score) {
  LeafPlace place;
  if (!tree.SeekKey(kByPosition, MemberKey(member), &place)) return false;
  PackedElements members = LeafMembers(place);
  PackedElement element;
  while (members.Next(&element)) {
    if (element.key != member) continue;
    *score = LoadScore(element.value);
    return true;
  }
  return false;
}

bool FindRank(Tree& tree, std::string_view member, uint64_t* rank) {
  double score = 0;
  LeafPlace place;
  if (!FindScore(tree, member, &score)) return false;
  if (!tree.SeekKey(kByScore, ScoreKey({member, score}), &place)) return false;
  *rank = place.before;
  PackedElements members = LeafMembers(place);
  PackedElement element;
  for (; members.Next(&element); ++*rank) {
    if (element.key == member) return true;
  }
  return false;
}

}  // namespace onetrip
