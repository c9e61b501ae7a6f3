// WorkerMetrics: everything that one worker counts. The worker's thread writes and resets, any
// thread reads.
#ifndef ONETRIP_FRONTEND_METRICS_WORKER_METRICS_H_
#define ONETRIP_FRONTEND_METRICS_WORKER_METRICS_H_

#include "client_core/base/metrics.h"
#include "client_core/fabric/rdma_metrics.h"
#include "client_core/store/store_metrics.h"
#include "redis_compat/dispatch/command_stats.h"

namespace onetrip {

// The worker's share of the traffic.
struct TrafficMetrics {
  Counter input_bytes;
  Counter output_bytes;
  Counter reads;   // read() calls that brought bytes.
  Counter writes;  // send() and sendmsg() calls that took bytes.
  Counter commands;
  Counter overlapped;           // Commands that ran beside others of their pipeline.
  Counter connections;          // Accepted since the start.
  Counter rejected;             // Refused at once: maxclients, protected mode. Worker 0 accepts.
  Counter output_limit_closes;  // Closed for unsent output beyond the limits.
  Counter query_limit_closes;   // Closed for unconsumed input beyond the limit.
  // As of the last look, once a second.
  Counter client_bytes;
  Counter input_buffer_max;
  Counter output_buffer_max;
  Counter commands_per_s;
  Counter input_per_s;
  Counter output_per_s;
};

struct WorkerMetrics {
  TrafficMetrics traffic;
  CommandStats commands;
  // The store's own, for as long as the worker has a store.
  StoreMetrics* store = nullptr;
  // Likewise of what it posts over RDMA, or nothing.
  RdmaMetrics no_rdma;
  RdmaMetrics* rdma = &no_rdma;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_METRICS_WORKER_METRICS_H_
