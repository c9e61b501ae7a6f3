// Texts for people on memory that is short: the same words in the master's log, an agent's log,
// INFO and `onetrip status`. Pure.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_POOL_TEXT_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_POOL_TEXT_H_

#include <array>
#include <cstdint>
#include <string>

#include "client_core/cluster/pool_usage.h"

namespace onetrip {

// An alert is due when so much of the memory is used, and over when it is kAlertOverPercents less.
inline constexpr std::array<uint32_t, 2> kAlertPercents = {80, 95};
inline constexpr uint32_t kAlertOverPercents = 2;

// The largest of kAlertPercents that is due, 0: none, when `before` was.
uint32_t AlertPercent(const PoolUsage& usage, uint32_t before);

// One line of why writes are refused, or soon will be, and what helps; empty: less than the first
// of kAlertPercents is used, and no write was refused.
std::string WhyShortOfMemory(const PoolUsage& usage);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_POOL_TEXT_H_
