// Sorted sets as trees (collection_tree.h): the same elements, packed, in two orders.
//
//   kByScore     the order of the packed form, whose entries the leaves are. Key: the score, in
//                eight bytes that compare as scores do, then the member.
//   kByPosition  for members that are named: as a hash is held, by a hash of the member.
//
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/tree/tree.h"
#include "redis_compat/values/sorted_set_value.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {

enum SortedSetOrder : size_t { kByScore = 0, kByPosition = 1 };
inline constexpr size_t kSortedSetOrders = 2;
// A damaged tree may lack one; nothing below takes that.
inline bool HasBothOrders(const Tree& tree) { return tree.orders() == kSortedSetOrders; }

// A sorted set with a longer member is no tree: keys by score lie in inner pages, too.
inline constexpr size_t kTreeMemberBytesMax = 16 * 1024;

std::string ScoreKey(double score);
std::string ScoreKey(const ScoredMember& one);
// The key of a member by position.
std::string MemberKey(std::string_view member);

// The members of a leaf.
inline PackedElements LeafMembers(const LeafPlace& leaf) {
  return ElementsOf(leaf, /*has_values=*/true);
}

// How full a leaf by score becomes before the next one begins.
enum class Fill : uint8_t { kEven, kFull };
// The leaves of entries in the order of scores.
std::vector<NewLeaf> ScoreLeaves(std::string_view entries, Fill fill, const TreeLimits& limits);

// The leaves of both orders of a packed sorted set; nothing: it cannot be a tree.
std::vector<std::vector<NewLeaf>> SortedSetLeaves(std::string_view packed,
                                                  const TreeLimits& limits);

// The score of a member. False, too, where a page is missing.
bool FindScore(Tree& tree, std::string_view member, double* score);
// How many members stand before it. As above.
bool FindRank(Tree& tree, std::string_view member, uint64_t* rank);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_H_
