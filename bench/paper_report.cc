#include "bench/paper_report.h"

#include <algorithm>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr int kCdfPoints = 200;

template <typename T>
T AtPercent(const std::vector<T>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

}  // namespace

Summary::Summary(const std::vector<OpCost>& costs, OpKind kind) {
  std::vector<uint64_t> of_one;
  for (const OpCost& cost : costs) {
    if (cost.kind != kind) continue;
    latency_ns_.push_back(cost.latency_ns);
    round_trips_.push_back(cost.round_trips);
    if (cost.round_trips == 1) of_one.push_back(cost.latency_ns);
  }
  std::sort(latency_ns_.begin(), latency_ns_.end());
  std::sort(round_trips_.begin(), round_trips_.end());
  std::sort(of_one.begin(), of_one.end());
  median_of_one_us_ = static_cast<double>(AtPercent(of_one, 50)) / 1000;
}

double Summary::LatencyUs(double percent) const {
  return static_cast<double>(AtPercent(latency_ns_, percent)) / 1000;
}

uint32_t Summary::RoundTrips(double percent) const { return AtPercent(round_trips_, percent); }

double Summary::Share(uint32_t round_trips) const {
  const auto [first, last] =
      std::equal_range(round_trips_.begin(), round_trips_.end(), round_trips);
  return round_trips_.empty()
             ? 0
             : 100.0 * static_cast<double>(last - first) / static_cast<double>(round_trips_.size());
}

double Summary::ShareFrom(uint32_t round_trips) const {
  const auto first = std::lower_bound(round_trips_.begin(), round_trips_.end(), round_trips);
  return round_trips_.empty() ? 0
                              : 100.0 * static_cast<double>(round_trips_.end() - first) /
                                    static_cast<double>(round_trips_.size());
}

Json Summary::ToJson() const {
  Json json;
  json["count"] = count();
  for (const auto& [name, percent] :
       {std::pair("p1", 1), std::pair("p50", 50), std::pair("p90", 90), std::pair("p99", 99)}) {
    json["us"][name] = LatencyUs(percent);
  }
  json["us"]["p50_of_one_round_trip"] = MedianOfOneUs();
  json["round_trips"] = {{"p50", RoundTrips(50)}, {"p99", RoundTrips(99)}, {"max", most()}};
  for (uint32_t n = 1; n <= 5; ++n) json["share"].push_back(Share(n));
  json["share"].push_back(ShareFrom(6));
  // The last half percent would draw a tail longer than the picture.
  for (int i = 0; i <= kCdfPoints; ++i) {
    const double percent = 99.5 * i / kCdfPoints;
    json["cdf"].push_back({LatencyUs(percent), percent});
  }
  return json;
}

}  // namespace onetrip
