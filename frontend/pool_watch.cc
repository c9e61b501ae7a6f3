#include "frontend/pool_watch.h"

#include <utility>

#include "client_core/cluster/pool_text.h"

namespace onetrip {

std::string PoolWatch::Look(PoolUsage usage, uint64_t refused_bytes, uint64_t now_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t due = AlertPercent(usage, told_percent_);
  const bool has_grown = due > std::exchange(told_percent_, due);
  const bool refusal_due = refused_bytes != 0 && now_ns >= refusals_quiet_until_;
  if (!has_grown && !refusal_due) return {};
  // The others may not have heard of it yet; of an earlier one enough is said.
  usage.refused_bytes = refusal_due ? refused_bytes : 0;
  if (refusal_due) refusals_quiet_until_ = now_ns + kRefusalEveryNs;
  return WhyShortOfMemory(usage);
}

}  // namespace onetrip
