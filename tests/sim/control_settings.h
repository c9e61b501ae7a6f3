// ControlSettings: the times of a simulated world's control plane, all on the scale of a run.
#ifndef ONETRIP_TESTS_SIM_CONTROL_SETTINGS_H_
#define ONETRIP_TESTS_SIM_CONTROL_SETTINGS_H_

#include <cstdint>

namespace onetrip {

struct ControlSettings {
  uint64_t latency_min_ns = 2000;  // how long a message takes, one way
  uint64_t latency_max_ns = 100'000;
  // How long either end of a connection that broke may take to notice.
  uint64_t notice_ns_max = 100'000;
  uint64_t write_ns_max = 0;         // how long one write to the master's store takes
  uint32_t fence_fails_percent = 0;  // fences that a node cannot do yet
  uint64_t request_ms = 5000;        // ControlOptions::request_timeout_ms
  // The master sees whether the process behind a stream that ended has ended, too: it is on its
  // host.
  uint32_t sees_ends = 1;
  // CoordinatorOptions.
  uint64_t lease_ms = 1000;
  uint64_t grace_ms = 2000;
  uint64_t hold_timeout_ms = 3000;
  uint64_t copy_hold_timeout_ms = 100;
  uint64_t flush_wait_ms = 4000;
  uint64_t ack_timeout_ms = 10'000;
  uint64_t fence_retry_ms = 200;
  uint64_t time_lead_ms = 2000;
  uint64_t replace_after_ms = 10'000;
  uint64_t reach_settle_ms = 1000;
  uint64_t reach_back_ms = 2000;
  // How often an agent looks which nodes it reaches; 0: never.
  uint64_t reach_look_us = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_CONTROL_SETTINGS_H_
