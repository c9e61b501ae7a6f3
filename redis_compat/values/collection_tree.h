// Collections as trees (client_core/tree/tree.h): what packed.h has in one piece lies in leaves.
//
// The header of a packed collection is the tree's, and its entries, cut between elements, are the
// leaves of the tree's first order: joined behind the header they are the packed collection again.
// A list has one order, by place. So have hashes and sets, by the position that HSCAN and SSCAN
// count with, a hash of field or member: elements of one position share a leaf, in which they stand
// in any order. Integer sets, whose members stand in ascending order, are never trees. A sorted set
// has two orders (sorted_set_tree.h), a stream one, by key (stream_leaves.h).
//
// Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_COLLECTION_TREE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_COLLECTION_TREE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/tree/tree.h"
#include "redis_compat/values/list_value.h"
#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/value.h"

namespace onetrip {

// The place of a field or member in the order of its collection, and a cursor of a walk over that:
// never 0, by which a walk begins and ends, and no larger than clients may keep.
inline constexpr uint64_t kScanPositionMax = (uint64_t{1} << 53) - 1;
uint64_t ScanPosition(std::string_view key);
// The key of a position in a tree. REQUIRES: it is no larger.
std::string PositionKey(uint64_t position);
// The first position whose key is not below `key`.
uint64_t PositionFrom(std::string_view key);

// The leaves of a list's entries: full ones from `from` on, and what is left in the last one.
std::vector<NewLeaf> ListLeaves(std::string_view entries, ListEnd from, const TreeLimits& limits);
// The leaves of elements that are found by their position. They leave room for others, unless one
// is enough.
std::vector<NewLeaf> PositionLeaves(PackedElements elements, const TreeLimits& limits);
// False: one is longer than a page may be, and no cut helps.
bool FitPages(const std::vector<NewLeaf>& leaves);

// The tree of a packed collection; nothing: it is small, or cannot be one.
std::optional<Tree> MakeTree(ValueType type, std::string_view packed, const TreeLimits& limits);
// Makes a tree the packed collection that it was, in the order of its leaves. False: pages are
// missing.
bool JoinLeaves(Tree& tree, std::string* packed);

// Asks for the leaves that hold `elements` from that number on. False: some are missing; perhaps
// not all of them have been asked for.
bool SeekNumbers(Tree& tree, size_t order, uint64_t first, uint64_t elements);

// The flags, and the elements, of a tree.
PackedHeader HeaderOf(const Tree& tree);
// Tells the header of a tree how many elements there are now. `flags` come to those it has.
void UpdateHeader(Tree* tree, uint8_t flags = 0);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_COLLECTION_TREE_H_
