// Observation: what looks at the calls of all workers: SLOWLOG, LATENCY, MONITOR, CLIENT PAUSE.
//
// One per process, owned by the frontend. A worker asks by atomics whether there is anything to do
// and takes a lock only if there is. Any thread.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_OBSERVATION_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_OBSERVATION_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetrip {

struct SlowCall {
  uint64_t id = 0;
  uint64_t unix_s = 0;
  uint64_t took_us = 0;
  std::vector<std::string> argv;  // Cut as Redis cuts them.
  std::string address;
  std::string client_name;
};

// The last calls that took long.
class SlowLog {
 public:
  // Keeps at most 32 arguments of 128 bytes each; `call.id` and `call.argv` are filled here.
  void Add(SlowCall call, std::span<const std::string_view> argv, uint64_t keep_max);
  // The newest first, at most `count`.
  [[nodiscard]] std::vector<SlowCall> Newest(uint64_t count) const;
  [[nodiscard]] size_t size() const;
  void Reset();

 private:
  mutable std::mutex mutex_;
  std::deque<SlowCall> calls_;  // The newest last.
  uint64_t next_id_ = 0;
};

struct LatencySample {
  uint64_t unix_s = 0;
  uint64_t latency_ms = 0;
};

// Remembers events that took long, by their kind: at most one sample a second, the worst.
class LatencyMonitor {
 public:
  static constexpr size_t kSamplesMax = 160;

  struct Event {
    std::deque<LatencySample> samples;  // The newest last.
    uint64_t worst_ms = 0;
  };

  void Add(std::string_view event, LatencySample sample);
  // A copy of everything, by name.
  [[nodiscard]] std::map<std::string, Event, std::less<>> Events() const;
  // Forgets one event, or all if `event` is empty; how many it has forgotten.
  size_t Reset(std::string_view event);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Event, std::less<>> events_;
};

// CLIENT PAUSE.
class ClientPause {
 public:
  // Steady time. A pause that is under way is neither shortened nor softened.
  void Begin(uint64_t now_ns, uint64_t until_ns, bool writes_only);
  void End() { until_ns_.store(0, std::memory_order_relaxed); }
  // Cheap; true for a while after the pause has run out, too.
  [[nodiscard]] bool was_begun() const { return until_ns_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool Holds(bool is_write, uint64_t now_ns);

 private:
  std::atomic<uint64_t> until_ns_{0};  // 0: none
  std::atomic<bool> writes_only_{false};
};

struct Observation {
  SlowLog slow_log;
  LatencyMonitor latency;
  ClientPause pause;
  std::atomic<uint32_t> monitors{0};  // Connections that have said MONITOR.
  std::atomic<uint32_t> paused{0};    // Connections that wait for the end of a pause.
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_OBSERVATION_H_
