// ServerConfig: the parameters that CONFIG GET and CONFIG SET show, with Redis's names.
//
// One per process. Some of them rule something here (requirepass, protected-mode, maxclients,
// timeout, databases and more); the others exist because clients and tools ask for them: they are
// checked, kept and reported. Any thread; texts are behind a lock, what the data path reads is
// atomic.
#ifndef ONETRIP_REDIS_COMPAT_PARAMETERS_H_
#define ONETRIP_REDIS_COMPAT_PARAMETERS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetrip {

class ServerConfig {
 public:
  // Every parameter at its default.
  ServerConfig();
  ServerConfig(const ServerConfig&) = delete;
  ServerConfig& operator=(const ServerConfig&) = delete;

  // What the data path reads.
  [[nodiscard]] bool password_required() const {
    return password_required_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] int64_t bulk_max_bytes() const {
    return bulk_max_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t max_clients() const {
    return max_clients_.load(std::memory_order_relaxed);
  }
  // Seconds a client may idle; 0: for ever.
  [[nodiscard]] uint64_t timeout_s() const { return timeout_s_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t query_buffer_max_bytes() const {
    return query_buffer_max_bytes_.load(std::memory_order_relaxed);
  }
  // Whether clients of other hosts are refused as long as there is no password.
  [[nodiscard]] bool protected_mode() const {
    return protected_mode_.load(std::memory_order_relaxed);
  }
  // SLOWLOG keeps calls that took at least so long, the last so many; -1: none.
  [[nodiscard]] int64_t slow_call_us() const {
    return slow_call_us_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t slow_calls_max() const {
    return slow_calls_max_.load(std::memory_order_relaxed);
  }
  // LATENCY samples calls that took at least so long; 0: none.
  [[nodiscard]] uint64_t latency_threshold_ms() const {
    return latency_threshold_ms_.load(std::memory_order_relaxed);
  }
  // The shorter of the two.
  [[nodiscard]] uint64_t noted_call_ns() const;
  // Whether SLOWLOG asks for calls so short that each must be timed.
  [[nodiscard]] bool times_every_call() const {
    const int64_t us = slow_call_us();
    return us >= 0 && us < kTimedByTurnUs;
  }
  [[nodiscard]] uint32_t databases() const { return databases_.load(std::memory_order_relaxed); }

  // Whether `password` is the one that requirepass sets; takes the same time for all of one length.
  [[nodiscard]] bool IsPassword(std::string_view password) const;

  // Names and values of every parameter that one of the patterns matches, each once: a plain name
  // as the client spelled it, those found by a glob pattern in table order and lower case. A
  // parameter with two names is there under each that matches.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> Get(
      std::span<const std::string_view> patterns) const;
  // One parameter's value; empty for an unknown name.
  [[nodiscard]] std::string Value(std::string_view name) const;

  // Whether there is such a parameter.
  [[nodiscard]] bool Knows(std::string_view name) const;
  // The name under which it comes first. REQUIRES: Knows(name).
  [[nodiscard]] static std::string_view FirstName(std::string_view name);
  // Whether CONFIG SET may change it. REQUIRES: Knows(name).
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

  void Publish(std::string_view name, const std::string& canonical);

  mutable std::mutex mutex_;
  std::vector<std::string> values_;  // By position in the table of parameters.

  std::atomic<bool> password_required_{false};
  std::atomic<bool> protected_mode_{true};
  std::atomic<int64_t> bulk_max_bytes_{0};
  std::atomic<uint64_t> max_clients_{0};
  std::atomic<uint64_t> timeout_s_{0};
  std::atomic<uint64_t> query_buffer_max_bytes_{0};
  std::atomic<int64_t> slow_call_us_{0};
  std::atomic<uint64_t> slow_calls_max_{0};
  std::atomic<uint64_t> latency_threshold_ms_{0};
  std::atomic<uint32_t> databases_{0};
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PARAMETERS_H_
