// Reports the operations of a run beside the paper's figures, as text and as JSON.
#ifndef ONETRIP_BENCH_PAPER_REPORT_H_
#define ONETRIP_BENCH_PAPER_REPORT_H_

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/paper_world.h"

namespace onetrip {

using Json = nlohmann::ordered_json;

// Sums up the operations of one kind.
class Summary {
 public:
  Summary(const std::vector<OpCost>& costs, OpKind kind);

  [[nodiscard]] size_t count() const { return latency_ns_.size(); }
  // Microseconds. REQUIRES: 0 <= percent <= 100.
  [[nodiscard]] double LatencyUs(double percent) const;
  // The smallest number of round trips that `percent` of the operations did not exceed.
  [[nodiscard]] uint32_t RoundTrips(double percent) const;
  // Percent of the operations that took `round_trips`; the last one counts all that took more, too.
  [[nodiscard]] double Share(uint32_t round_trips) const;
  [[nodiscard]] double ShareFrom(uint32_t round_trips) const;
  // Median of those that took one round trip, in microseconds; 0: there are none.
  [[nodiscard]] double MedianOfOneUs() const { return median_of_one_us_; }
  [[nodiscard]] uint32_t most() const { return round_trips_.empty() ? 0 : round_trips_.back(); }

  [[nodiscard]] Json ToJson() const;

 private:
  std::vector<uint64_t> latency_ns_;   // sorted
  std::vector<uint32_t> round_trips_;  // sorted
  double median_of_one_us_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_BENCH_PAPER_REPORT_H_
