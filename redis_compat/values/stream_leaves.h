// Streams as trees (collection_tree.h): the elements of the packed form, in its order, in leaves.
//
// Where a leaf has to be divided, elements of one kind stay together: whatever grows at its end,
// such as nodes, or what is pending in a group, leaves full leaves behind. Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_LEAVES_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_LEAVES_H_

#include <span>
#include <string_view>
#include <vector>

#include "client_core/tree/tree.h"
#include "redis_compat/values/stream_elements.h"

namespace onetrip {

// A stream with a longer name of a group or consumer is no tree: keys lie in inner pages, too.
inline constexpr size_t kTreeNameBytesMax = 16 * 1024;
// False: no tree can have that element.
bool FitsStreamPage(const StreamChange& change);

// The leaves of all elements of a packed stream; nothing: it cannot be a tree.
std::vector<NewLeaf> StreamLeaves(std::string_view elements, const TreeLimits& limits);

// Writes changes, and gaps, all of which stand in the order of keys, into the leaves of a tree.
// Where pages are missing, not all of them. False: a leaf is damaged. REQUIRES: each change is fit.
bool WriteStreamChanges(Tree* tree, std::span<const StreamChange> changes,
                        std::span<const StreamGap> gaps);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_LEAVES_H_
