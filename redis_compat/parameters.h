// ServerConfig: the table of parameters as CONFIG GET and CONFIG SET see it.
//
// The rows are those of client_core/base/parameter_table.h that say what CONFIG does with them;
// flags, environment and file read the same ones. One per process. Some parameters rule something
// here (requirepass, maxclients, timeout and more); the others exist because clients and tools ask
// for them: they are checked, kept and reported. Any thread; texts are behind a lock, what the data
// path reads is atomic.
#ifndef ONETRIP_REDIS_COMPAT_PARAMETERS_H_
#define ONETRIP_REDIS_COMPAT_PARAMETERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/live_options.h"
#include "redis_compat/values/packed.h"
#include "redis_compat/values/stream_edit.h"

namespace onetrip {

class ServerConfig {
 public:
  // Every parameter at its default.
  ServerConfig();
  ServerConfig(const ServerConfig&) = delete;
  ServerConfig& operator=(const ServerConfig&) = delete;

  // The data path reads these.
  [[nodiscard]] bool password_required() const { return Live(live_.has_password) != 0; }
  [[nodiscard]] int64_t bulk_max_bytes() const { return Live(live_.bulk_bytes_max); }
  [[nodiscard]] uint64_t max_clients() const { return Unsigned(live_.maxclients); }
  // Seconds a client may idle; 0: for ever.
  [[nodiscard]] uint64_t timeout_s() const { return Unsigned(live_.timeout_s); }
  [[nodiscard]] uint64_t query_buffer_max_bytes() const {
    return Unsigned(live_.query_buffer_bytes);
  }
  // True if clients of other hosts are refused as long as there is no password.
  [[nodiscard]] bool protected_mode() const { return Live(live_.protected_mode) != 0; }
  // False: commands of a pipeline run one after the other.
  [[nodiscard]] bool pipeline_overlap() const { return Live(live_.pipeline_overlap) != 0; }
  // SLOWLOG keeps calls that took at least this long, and this many of them, the last; -1: none.
  [[nodiscard]] int64_t slow_call_us() const { return Live(live_.slow_call_us); }
  [[nodiscard]] uint64_t slow_calls_max() const { return Unsigned(live_.slow_calls_max); }
  // LATENCY samples calls that took at least this long; 0: none.
  [[nodiscard]] uint64_t latency_threshold_ms() const {
    return Unsigned(live_.latency_threshold_ms);
  }
  // Beyond these OBJECT ENCODING tells of hashtables and skiplists.
  [[nodiscard]] CompactLimits hash_limits() const {
    return {Unsigned(live_.compact_hash_fields), Unsigned(live_.compact_hash_bytes)};
  }
  [[nodiscard]] CompactLimits sorted_set_limits() const {
    return {Unsigned(live_.compact_sorted_set_members), Unsigned(live_.compact_sorted_set_bytes)};
  }
  [[nodiscard]] uint64_t integer_set_members() const { return Unsigned(live_.integer_set_members); }
  // When a stream gets another node; 0: no limit.
  [[nodiscard]] StreamNodeLimits stream_node_limits() const {
    return {Unsigned(live_.stream_node_entries), Unsigned(live_.stream_node_bytes)};
  }
  // The shorter of the two.
  [[nodiscard]] uint64_t noted_call_ns() const;
  // True if SLOWLOG asks for calls so short that each must be timed.
  [[nodiscard]] bool times_every_call() const {
    const int64_t us = slow_call_us();
    return us >= 0 && us < kTimedByTurnUs;
  }
  [[nodiscard]] uint32_t databases() const { return static_cast<uint32_t>(Live(live_.databases)); }

  // True if `password` is the one that requirepass sets; the time it takes tells no more than
  // whether the lengths are the same.
  [[nodiscard]] bool IsPassword(std::string_view password) const;

  // Names and values of every parameter that one of the patterns matches, each once: a plain name
  // as the client spelled it, those found by a glob pattern in table order and lower case. A
  // parameter with two names is there under each that matches.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Get(
      std::span<const std::string_view> patterns) const;
  // One parameter's value; empty for an unknown name.
  [[nodiscard]] std::string Value(std::string_view name) const;

  // True if there is such a parameter.
  [[nodiscard]] bool Knows(std::string_view name) const;
  // The name under which it comes first. REQUIRES: Knows(name).
  [[nodiscard]] static std::string_view FirstName(std::string_view name);
  // True if CONFIG SET may change it. REQUIRES: Knows(name).
  [[nodiscard]] bool IsMutable(std::string_view name) const;
  // Checks `value`, as CONFIG SET gives it, and brings it to its canonical form. Returns false and
  // says why in `error`. REQUIRES: Knows(name).
  bool Check(std::string_view name, std::string_view value, std::string* canonical,
             std::string* error) const;
  // Stores a canonical value. REQUIRES: Check() made it from a value it accepted.
  void Store(std::string_view name, std::string canonical);

  // For what the process decides: like Check() and Store(), but sets what clients may not change,
  // too (port, bind, unixsocket, databases, maxmemory). Returns false if the name or the value is
  // no good.
  bool SetByServer(std::string_view name, std::string_view value);

 private:
  // A call of constant time that never waits takes less; one that waits is timed by the turns of
  // the loop.
  static constexpr int64_t kTimedByTurnUs = 1000;

  static int64_t Live(const std::atomic<int64_t>& field) {
    return field.load(std::memory_order_relaxed);
  }
  static uint64_t Unsigned(const std::atomic<int64_t>& field) {
    return static_cast<uint64_t>(Live(field));
  }
  // Puts the value of the row at `index` of the table into force.
  void Publish(size_t index);

  mutable std::mutex mutex_;
  std::vector<std::string>
      values_;  // By position in the table; of what CONFIG does not show empty.
  LiveOptions live_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PARAMETERS_H_
