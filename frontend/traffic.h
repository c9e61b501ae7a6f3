// TrafficMetrics and ClientLimits: what connections of one worker count, and what bounds them.
#ifndef ONETRIP_FRONTEND_TRAFFIC_H_
#define ONETRIP_FRONTEND_TRAFFIC_H_

#include <atomic>
#include <cstdint>

#include "client_core/base/metrics.h"

namespace onetrip {

// Set by CONFIG SET, read by every worker (client-output-buffer-limit, tcp-keepalive).
struct ClientLimits {
  std::atomic<uint64_t> output_hard_bytes{0};  // 0: no limit, as in all of them.
  std::atomic<uint64_t> output_soft_bytes{0};
  std::atomic<uint64_t> output_soft_s{0};
  std::atomic<uint64_t> keepalive_s{0};
};

// A worker's traffic; it counts, any thread reads.
struct TrafficMetrics {
  Counter input_bytes;
  Counter output_bytes;
  Counter reads;   // read() calls that brought bytes.
  Counter writes;  // send() and sendmsg() calls that took bytes.
  Counter commands;
  Counter connections;          // Accepted since the start.
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

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_TRAFFIC_H_
