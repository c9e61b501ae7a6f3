// PoolWatch: says once that the pool of memory nodes is about to be full, and once that it is.
//
// One for the process; any thread.
#ifndef ONETRIP_FRONTEND_POOL_WATCH_H_
#define ONETRIP_FRONTEND_POOL_WATCH_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "frontend/storage.h"

namespace onetrip {

// Rounded down.
uint64_t UsedPercent(const PoolUsage& usage);
// What INFO says of a pool so full; empty: it has room.
std::string PoolWarning(const PoolUsage& usage);

class PoolWatch {
 public:
  // What is to be logged now; empty: nothing, or it has been said. `refused`: somebody has found no
  // room since the last look.
  std::string Look(const PoolUsage& usage, bool refused);

 private:
  enum Said : uint8_t { kNothing, kAlmostFull, kFull };
  std::atomic<uint8_t> said_{kNothing};
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_POOL_WATCH_H_
