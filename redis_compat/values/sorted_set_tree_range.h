// Ranges of a sorted set that is held as a tree. One thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_RANGE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_RANGE_H_

#include <cstdint>
#include <string>

#include "client_core/tree/tree.h"
#include "redis_compat/values/sorted_set_value.h"

namespace onetrip {

// Members from one rank to another, which is not in it; counted from the lowest member.
struct RankSpan {
  uint64_t begin = 0;
  uint64_t end = 0;

  [[nodiscard]] uint64_t count() const { return end - begin; }
};

// The members that SelectMembers() would select. False: pages are missing.
bool SelectRanks(Tree& tree, const MemberRange& range, RankSpan* span);

// About how many bytes of leaves such a span has.
uint64_t BytesOfRanks(const Tree& tree, RankSpan span);
// A packed sorted set of the members of a span. False: pages are missing.
bool CopyRanks(Tree& tree, RankSpan span, std::string* packed);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SORTED_SET_TREE_RANGE_H_
