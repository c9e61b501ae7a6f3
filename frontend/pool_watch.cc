#include "frontend/pool_watch.h"

namespace onetrip {
namespace {

constexpr uint64_t kAlmostFullPercent = 80;
// Below this what has been said may be said again.
constexpr uint64_t kRoomyPercent = 75;

constexpr char kCure[] =
    "remove keys (DEL, EXPIRE, FLUSHDB), or move to a cluster whose memory nodes have more "
    "--memory";

}  // namespace

uint64_t UsedPercent(const PoolUsage& usage) {
  if (usage.capacity_bytes == 0) return 0;
  return static_cast<uint64_t>(100.0 * static_cast<double>(usage.granted_bytes) /
                               static_cast<double>(usage.capacity_bytes));
}

std::string PoolWarning(const PoolUsage& usage) {
  const uint64_t percent = UsedPercent(usage);
  if (percent < kAlmostFullPercent) return {};
  return std::to_string(percent) +
         " % of the pool of memory nodes is given to agents; a write that finds no room is refused "
         "with -OOM: " +
         kCure;
}

std::string PoolWatch::Look(const PoolUsage& usage, bool refused) {
  const uint64_t percent = UsedPercent(usage);
  if (percent < kRoomyPercent && !refused) {
    said_ = kNothing;
    return {};
  }
  const Said due = refused ? kFull : percent >= kAlmostFullPercent ? kAlmostFull : kNothing;
  // Of the workers one says it.
  uint8_t said = said_;
  while (said < due) {
    if (!said_.compare_exchange_weak(said, due)) continue;
    if (due == kAlmostFull) return PoolWarning(usage);
    std::string line("the pool of memory nodes is full: writes are refused with -OOM; ");
    line += kCure;
    return line;
  }
  return {};
}

}  // namespace onetrip
