// CommandStats: how often each command ran, failed and was refused, and which errors went out.
//
// One per worker, written by that worker only and read by any thread (INFO): relaxed atomics
// without read-modify-write instructions, so that counting costs a few plain stores. Run times are
// sampled: a clock read per command would cost a tenth of a GET.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_STATS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_STATS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/metrics.h"

namespace onetrip {

// Sums over workers, as plain values.
struct CommandTotals {
  struct PerCommand {
    uint64_t calls = 0;     // Executed, with or without success.
    uint64_t rejected = 0;  // Refused before execution: arity, NOAUTH.
    uint64_t failed = 0;    // Executed, answered with an error.
    uint64_t time_ns = 0;   // Sum over the executed calls; extrapolated from samples.
  };
  std::vector<PerCommand> commands;        // By CommandRow id.
  std::map<size_t, Histogram> latency_ns;  // Times of the timed calls, by CommandRow id.
  std::map<std::string, uint64_t> errors;  // Error word -> replies.
};

class CommandStats {
 public:
  static constexpr size_t kCommandsMax = 512;
  // Every call is timed until a command has run this often, later one in kSampleEvery.
  static constexpr uint64_t kTimedFirst = 64;
  static constexpr uint64_t kSampleEvery = 64;

  CommandStats() = default;
  CommandStats(const CommandStats&) = delete;
  CommandStats& operator=(const CommandStats&) = delete;
  ~CommandStats();

  // The worker's side.
  [[nodiscard]] bool WantsTime(size_t command) const {
    const uint64_t calls = commands_[command].calls.load(std::memory_order_relaxed);
    return calls < kTimedFirst || calls % kSampleEvery == 0;
  }
  void CountCall(size_t command) { Add(commands_[command].calls, 1); }
  // REQUIRES: WantsTime() was true before CountCall().
  void AddTime(size_t command, uint64_t elapsed_ns);
  void CountRejected(size_t command) { Add(commands_[command].rejected, 1); }
  void CountFailed(size_t command) { Add(commands_[command].failed, 1); }
  void CountLookups(uint64_t hits, uint64_t misses) {
    Add(hits_, hits);
    Add(misses_, misses);
  }
  // Takes a lock; errors are not the hot path. At most 128 different words are told apart.
  void CountError(std::string_view word);

  // Each sets back a part of it. The worker's side.
  void ResetCalls();
  void ResetLatencies();
  void ResetLookups();
  void ResetErrors();

  // Any thread.
  void AddTo(CommandTotals* totals) const;
  // All commands' calls.
  [[nodiscard]] uint64_t calls() const;
  [[nodiscard]] uint64_t keyspace_hits() const { return hits_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t keyspace_misses() const { return misses_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t error_replies() const {
    return error_replies_.load(std::memory_order_relaxed);
  }

 private:
  using Counter = std::atomic<uint64_t>;

  struct PerCommand {
    Counter calls{0};
    Counter rejected{0};
    Counter failed{0};
    Counter time_ns{0};
    std::atomic<Histogram*> latency_ns{nullptr};  // Made with the first timed call; owned.
  };

  // Legal without a locked instruction because only this worker writes.
  static void Add(Counter& counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::array<PerCommand, kCommandsMax> commands_{};
  Counter hits_{0};
  Counter misses_{0};
  Counter error_replies_{0};
  mutable std::mutex errors_mutex_;
  std::map<std::string, uint64_t, std::less<>> errors_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_STATS_H_
