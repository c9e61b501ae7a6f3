// Gaps: for how long GET, SET and INCR did not succeed through an agent that was up.
//
// Per command and agent, the time from one success (or from the moment the agent was said to be up)
// to the next (or to the moment it was said to go down, or to the end). While the memory is said to
// be full, writes are not expected, and their clocks stand. Thread-safe; times are monotonic.
#ifndef ONETRIP_TESTS_NEMESIS_GAPS_H_
#define ONETRIP_TESTS_NEMESIS_GAPS_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "tests/support/history.h"

namespace onetrip {

struct Gap {
  uint64_t ns = 0;
  uint64_t start_ns = 0;
  size_t agent = 0;
};

class Gaps {
 public:
  static constexpr std::array<std::string_view, 3> kCommands = {"get", "set", "incr"};
  // Gaps keeps the longest of each command; short ones only until there are others.
  static constexpr size_t kKeptMax = 2000;
  static constexpr uint64_t kKeptMinNs = 20'000'000;

  // All agents are down at first.
  explicit Gaps(size_t agents);

  // `command`, sent to `agent`, has got its reply.
  void Answered(size_t agent, const Command& command, Ending ending, uint64_t now_ns);

  void AgentUp(size_t agent, uint64_t now_ns);
  void AgentDown(size_t agent, uint64_t now_ns);
  void MemoryFull(uint64_t now_ns);
  void MemoryFree(uint64_t now_ns);
  // Nothing counts from now on; an agent that is up stays so.
  void End(uint64_t now_ns);

  [[nodiscard]] bool IsUp(size_t agent) const;
  // Longest first.
  [[nodiscard]] std::vector<Gap> Longest(size_t command) const;

 private:
  struct Clock {
    bool runs = false;
    uint64_t since_ns = 0;
  };

  void Stop(size_t agent, size_t command, uint64_t now_ns);
  void Keep(size_t command, const Gap& gap);

  mutable std::mutex mutex_;
  std::vector<bool> up_;
  bool full_ = false;
  std::vector<std::array<Clock, kCommands.size()>> clocks_;
  std::array<std::vector<Gap>, kCommands.size()> longest_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_GAPS_H_
