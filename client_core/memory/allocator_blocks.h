// AllocatorBlocks: what an Allocator keeps of what is on its way to other workers.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

// A base that has types alone.
struct AllocatorBlocks {
  // A block that waits for those who may hold something of it.
  struct Closing {
    GlobalAddr start;
    uint64_t generation;
    uint64_t epoch;
  };
  // A block, or a span, as memory nodes know it.
  struct Granted {
    GlobalAddr start;
    SizeClass size_class;
  };
  // One that is no longer this worker's, as far as it is concerned, and has yet to be open.
  struct Opening {
    GlobalAddr start;
    SizeClass size_class;
    bool asked_primary = false;  // and did not hear of it
  };
  // One that has yet to be free. Its primary has not heard of that.
  struct Returning {
    GlobalAddr start;
    SizeClass size_class;
    NodeId primary;
  };
  struct Emptying {
    GlobalAddr start;
    uint64_t until_ns;
  };
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_BLOCKS_H_
