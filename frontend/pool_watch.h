// PoolWatch: what an agent's log says of memory: once that the pool is about to be full, and from
// time to time, while writes are refused, why and what helps.
//
// One for the process; any thread.
#ifndef ONETRIP_FRONTEND_POOL_WATCH_H_
#define ONETRIP_FRONTEND_POOL_WATCH_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "client_core/cluster/pool_usage.h"

namespace onetrip {

class PoolWatch {
 public:
  static constexpr uint64_t kRefusalEveryNs = 60'000'000'000;

  // Returns the line to log now; empty: none, or it has been said. `refused_bytes`: size of the
  // object for which a worker has found no memory since the last look; 0: none.
  std::string Look(PoolUsage usage, uint64_t refused_bytes, uint64_t now_ns);

 private:
  std::mutex mutex_;
  uint32_t told_percent_ = 0;          // guarded by mutex_
  uint64_t refusals_quiet_until_ = 0;  // guarded by mutex_
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_POOL_WATCH_H_
