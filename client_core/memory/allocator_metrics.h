// AllocatorMetrics: where one worker's share of the pool is.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_

#include "client_core/base/metrics.h"

namespace onetrip {

// Where this worker's bytes are, per replica; any thread may read. owned = live + free + block
// headers and what no object of the class fits into.
struct AllocatorMetrics {
  Counter owned_bytes;    // whole blocks granted to this worker
  Counter live_bytes;     // objects handed out and not yet back, by class size
  Counter free_bytes;     // objects ready to be handed out
  Counter retired_bytes;  // unlinked by this worker, whoever owns them, and waiting for their epoch
  Counter blocks_granted;  // since the start
  Counter blocks_returned;
  Counter blocks_opened;    // given to whoever needs them, partly used
  Counter blocks_acquired;  // of blocks_granted: that were open
  Counter objects_found;    // that nothing named and nobody gave back
  Counter exhausted;  // allocations that ended with out of memory
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_
