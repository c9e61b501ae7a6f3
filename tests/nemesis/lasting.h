// Things that last for the whole run, and must be right at its end.
//
// Counters that every client increments: no two acknowledged INCRs answer the same, and in the end
// acknowledged <= value <= acknowledged + unknown. Keys that are written once: an acknowledged one
// is there from then on. Registers with one writer each, whose values count up: a read that starts
// after an acknowledged write gives that value or a later one, unless a write of unknown outcome
// has come in between. Thread-safe.
#ifndef ONETRIP_TESTS_NEMESIS_LASTING_H_
#define ONETRIP_TESTS_NEMESIS_LASTING_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/support/history.h"

namespace onetrip {

class Lasting {
 public:
  // Messages beyond kFailuresMax are only counted.
  static constexpr size_t kFailuresMax = 20;

  struct Counter {
    uint64_t acknowledged = 0;
    uint64_t unknown = 0;
    uint64_t last_read = 0;
    std::vector<bool> answers;  // which values were answered
  };

  Lasting(size_t counters, size_t registers);

  static std::string CounterKey(size_t counter) { return "counter:" + std::to_string(counter); }
  static std::string RegisterKey(size_t index) { return "register:" + std::to_string(index); }
  static std::string OnceKey(size_t writer, uint64_t number);
  // The value of a key that is written once.
  static std::string OnceValue(std::string_view key);

  void Incremented(size_t counter, std::string_view reply, Ending ending);

  // A SET of a key that is written once has ended.
  void WrittenOnce(const std::string& key, Ending ending);
  // One whose SET was acknowledged; empty if there is none.
  std::string AnyOnce(Rng& rng) const;

  // The next value of a register; its one writer tells how the SET of it ended.
  uint64_t NextValue(size_t index);
  void RegisterWritten(size_t index, uint64_t value, Ending ending);
  // A read that starts now must give this value at least.
  [[nodiscard]] uint64_t Acknowledged(size_t index) const;

  // Replies to GETs; those that are no answers are left out of account.
  void OnceRead(std::string_view agent, const std::string& key, std::string_view reply);
  void RegisterRead(std::string_view agent, size_t index, uint64_t acknowledged,
                    std::string_view reply);
  // REQUIRES: no INCR is under way.
  void CounterRead(std::string_view agent, size_t counter, std::string_view reply);

  [[nodiscard]] std::vector<std::string> once_acknowledged() const;
  [[nodiscard]] uint64_t once_unknown() const;
  [[nodiscard]] std::vector<Counter> counters() const;
  [[nodiscard]] size_t registers() const { return registers_.size(); }
  [[nodiscard]] std::vector<std::string> failures() const;

 private:
  struct Register {
    uint64_t sent = 0;
    uint64_t acknowledged = 0;
    std::set<uint64_t> unknown;
  };

  void Fail(std::string message);

  mutable std::mutex mutex_;
  std::vector<Counter> counters_;
  std::vector<Register> registers_;
  std::vector<std::string> once_;
  uint64_t once_unknown_ = 0;
  std::vector<std::string> failures_;
  uint64_t failures_left_out_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_LASTING_H_
