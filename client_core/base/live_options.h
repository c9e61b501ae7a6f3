// LiveOptions: the parameters that CONFIG SET changes while the agent runs and its workers read.
//
// parameter_table.h says which row fills which field. One struct per agent, in ServerConfig, which
// stores into it under its lock; any thread reads, relaxed: a change takes effect soon, and nothing
// else depends on its order.
#ifndef ONETRIP_CLIENT_CORE_BASE_LIVE_OPTIONS_H_
#define ONETRIP_CLIENT_CORE_BASE_LIVE_OPTIONS_H_

#include <atomic>
#include <cstdint>

namespace onetrip {

// Numbers as the rows have them; yes and no are 1 and 0; a text is 1 unless it is empty.
struct LiveOptions {
  std::atomic<int64_t> has_password{0};
  std::atomic<int64_t> protected_mode{0};
  std::atomic<int64_t> pipeline_overlap{0};
  std::atomic<int64_t> bulk_bytes_max{0};
  std::atomic<int64_t> query_buffer_bytes{0};
  std::atomic<int64_t> maxclients{0};
  std::atomic<int64_t> timeout_s{0};
  std::atomic<int64_t> databases{0};
  std::atomic<int64_t> slow_call_us{0};  // -1: none.
  std::atomic<int64_t> slow_calls_max{0};
  std::atomic<int64_t> latency_threshold_ms{0};  // 0: none.
  std::atomic<int64_t> compact_hash_fields{0};
  std::atomic<int64_t> compact_hash_bytes{0};
  std::atomic<int64_t> compact_sorted_set_members{0};
  std::atomic<int64_t> compact_sorted_set_bytes{0};
  std::atomic<int64_t> integer_set_members{0};
  std::atomic<int64_t> stream_node_bytes{0};
  std::atomic<int64_t> stream_node_entries{0};
};

using LiveField = std::atomic<int64_t> LiveOptions::*;

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_LIVE_OPTIONS_H_
