// RdmaMetrics: what one worker has posted over RDMA.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_RDMA_METRICS_H_
#define ONETRIP_CLIENT_CORE_FABRIC_RDMA_METRICS_H_

#include "client_core/base/metrics.h"

namespace onetrip {

// Written by the worker, read by any thread.
struct RdmaMetrics {
  Counter requests;     // posted
  Counter doorbells;    // calls that posted them: one chain for a node and round trip
  Counter completions;  // reaped
  Counter flushed;      // chains whose outcome is unknown
  Counter unsent;       // chains that were refused before anything was posted
  Counter wakeups;      // out of a sleep, by a completion
  Counter connections;  // queue pairs that were connected
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_RDMA_METRICS_H_
