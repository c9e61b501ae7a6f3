// IndexMetrics: what one worker's index did.
#ifndef ONETRIP_CLIENT_CORE_INDEX_INDEX_METRICS_H_
#define ONETRIP_CLIENT_CORE_INDEX_INDEX_METRICS_H_

#include "client_core/base/metrics.h"

namespace onetrip {

// Any thread may read.
struct IndexMetrics {
  Counter splits;
  Counter subtable_bytes;  // bytes of subtables that this worker made, per replica
  Counter cache_bytes;     // the location cache's
  Counter cache_hits;
  Counter cache_invalid;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_INDEX_METRICS_H_
