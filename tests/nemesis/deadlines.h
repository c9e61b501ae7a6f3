// Deadlines: keys written with a time to live. Long before its deadline an acknowledged one is
// there, well after it is not, whichever agent is asked. Between the two nothing is demanded:
// clients do not know the cluster's clock, and a master that is started again may be ahead by what
// it had stored. Thread-safe.
#ifndef ONETRIP_TESTS_NEMESIS_DEADLINES_H_
#define ONETRIP_TESTS_NEMESIS_DEADLINES_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"

namespace onetrip {

class Deadlines {
 public:
  static constexpr uint64_t kTtlMinMs = 10'000;
  static constexpr uint64_t kTtlMaxMs = 18'000;
  // Each start of a master may move the clock by 2 s; there are several within a deadline.
  static constexpr uint64_t kEarlyMs = 8000;
  static constexpr uint64_t kLateMs = 3000;
  static constexpr size_t kFailuresMax = 20;

  struct Entry {
    std::string key;
    uint64_t ttl_ms = 0;
    uint64_t sent_ns = 0;
    uint64_t acknowledged_ns = 0;
  };

  static std::string Value(std::string_view key) { return "until then, " + std::string(key); }

  // A SET with a deadline was acknowledged.
  void Written(Entry entry);
  // One whose deadline is not long past; nothing: there is none.
  std::optional<Entry> Any(Rng& rng, uint64_t now_ns);
  // A GET that began and ended then answered `reply`; what is no answer is left out of account.
  void Read(std::string_view agent, const Entry& entry, uint64_t begun_ns, uint64_t ended_ns,
            std::string_view reply);

  [[nodiscard]] uint64_t written() const;
  [[nodiscard]] uint64_t read_alive() const;
  [[nodiscard]] uint64_t read_gone() const;
  [[nodiscard]] std::vector<std::string> failures() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // in the order of their SETs
  uint64_t written_ = 0;
  uint64_t alive_ = 0;
  uint64_t gone_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_DEADLINES_H_
