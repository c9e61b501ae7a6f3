// ClientLimits: what bounds the connections of a process. Any thread.
#ifndef ONETRIP_FRONTEND_CLIENT_LIMITS_H_
#define ONETRIP_FRONTEND_CLIENT_LIMITS_H_

#include <atomic>
#include <cstdint>

#include "client_core/base/options.h"

namespace onetrip {

// Set by CONFIG SET, read by every worker (client-output-buffer-limit, tcp-keepalive).
struct ClientLimits {
  std::atomic<uint64_t> output_hard_bytes{0};  // 0: no limit, as in all of them.
  std::atomic<uint64_t> output_soft_bytes{0};
  std::atomic<uint64_t> output_soft_s{0};
  std::atomic<uint64_t> keepalive_s{0};

  // Puts those of the options into force that CONFIG SET may change.
  void Take(const AgentOptions& options) {
    output_hard_bytes = options.output_limits.normal.hard_bytes;
    output_soft_bytes = options.output_limits.normal.soft_bytes;
    output_soft_s = options.output_limits.normal.soft_s;
    keepalive_s = options.tcp_keepalive_s;
  }
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_CLIENT_LIMITS_H_
