// StoreMetrics: what one worker's operations cost in round trips; the project's central claim,
// counted.
#ifndef ONETRIP_CLIENT_CORE_STORE_STORE_METRICS_H_
#define ONETRIP_CLIENT_CORE_STORE_STORE_METRICS_H_

#include "client_core/base/metrics.h"

namespace onetrip {

struct AllocatorMetrics;
struct IndexMetrics;

// Written by the worker, read by any thread.
struct StoreMetrics {
  // Round trips of completed operations, retries included.
  Histogram get_round_trips;
  Histogram set_round_trips;
  Histogram del_round_trips;
  Histogram rmw_round_trips;
  Counter rmw_combined;  // read-modify-writes that one of another client carried out with its own
  Counter hot_writes;    // writes of records that took no search
  Counter expired;       // records removed because their deadline had passed
  Counter lost_rounds;   // slot writes that another writer won
  Counter unknown_outcomes;
  Counter objects_moved;       // records, by compaction, out of blocks of which little was used
  Counter objects_left;        // by help or cleaning that never learned whether a slot names them
  Counter ends_unsigned;       // 1 once it has ended, owing others a look for what it has lost
  Counter registers_thawed;    // registers that this worker turned into records
  Counter registers_dropped;   // deleted registers whose slot it freed
  Counter interrupted_writes;  // writes that met a seal, however they ended
  Counter swept;               // records of flushed keyspaces removed
  Counter slots_resolved;      // half-done slot writes brought to an end for others
  // The metrics of the layers below; they live as long as the store.
  const AllocatorMetrics* allocator = nullptr;
  const IndexMetrics* index = nullptr;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_STORE_STORE_METRICS_H_
