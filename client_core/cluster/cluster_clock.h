// ClusterClock: the one clock that decides about expiry (PROTOCOLS, "Time").
//
// Steady time of this host plus an offset that the connection to the master keeps up to date,
// moving it slowly: a wall clock that steps moves no deadline. Embedded, the master is this process
// and the offset a constant. One per worker, whose thread alone uses it; to a worker it never goes
// back.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "client_core/base/clock.h"

namespace onetrip {

class ClusterClock {
 public:
  // Both outlive it. `offset_us`: cluster time less steady time.
  ClusterClock(const Clock& clock, const std::atomic<int64_t>& offset_us)
      : clock_(clock), offset_us_(offset_us) {}

  // Microseconds since the Unix epoch.
  [[nodiscard]] uint64_t NowUs() const {
    const auto offset_us = static_cast<uint64_t>(offset_us_.load(std::memory_order_relaxed));
    latest_us_ = std::max(latest_us_, clock_.NowNs() / 1000 + offset_us);
    return latest_us_;
  }
  [[nodiscard]] uint64_t NowMs() const { return NowUs() / 1000; }

 private:
  const Clock& clock_;
  const std::atomic<int64_t>& offset_us_;
  mutable uint64_t latest_us_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_
