// ClusterClock: the one clock that decides about expiry (PROTOCOLS 3.4).
//
// Steady time of this host plus the offset that the master handed out at Join: every worker of a
// host agrees, and a wall clock that steps moves no deadline. Embedded, the master is this process
// and the error is 0; across hosts the lease keeps the offset and its error bound up to date.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_

#include <cstdint>

#include "client_core/base/clock.h"

namespace onetrip {

class ClusterClock {
 public:
  // Borrows `clock`, which outlives it. `offset_us`: cluster time less steady time.
  ClusterClock(const Clock& clock, int64_t offset_us) : clock_(clock), offset_us_(offset_us) {}

  // Microseconds since the Unix epoch. Any thread.
  [[nodiscard]] uint64_t NowUs() const {
    return clock_.NowNs() / 1000 + static_cast<uint64_t>(offset_us_);
  }
  [[nodiscard]] uint64_t NowMs() const { return NowUs() / 1000; }

 private:
  const Clock& clock_;
  int64_t offset_us_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_CLUSTER_CLOCK_H_
