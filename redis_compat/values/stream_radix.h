// The radix tree that Redis keeps the nodes of a stream in, and tells the nodes of: as many as it
// would have, counted without it.
//
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_RADIX_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_RADIX_H_

#include <cstdint>
#include <vector>

#include "redis_compat/values/stream_elements.h"

namespace onetrip {

// Its nodes, for the ids of a stream's nodes, which ascend.
uint32_t CountRadixNodes(const std::vector<EntryId>& ids);

// Its nodes that are there for the sake of a node of that id alone, which `elements` do not have:
// they come, or go, with it. Looks at few elements.
uint32_t RadixNodesFor(const EntryId& id, StreamElements& elements);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_RADIX_H_
