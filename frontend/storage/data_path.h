// Translates the agent's options for the layers below, embedded or clustered.
#ifndef ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_
#define ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_

#include "client_core/base/options.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "frontend/storage/storage.h"

namespace onetrip {

inline DataPathOptions DataPathOf(const AgentOptions& options,
                                  const LargeValueBudgets& large_values) {
  DataPathOptions result;
  result.wait_polls_max = static_cast<uint32_t>(options.wait_polls_max);
  result.wait_timer_us = static_cast<uint32_t>(options.wait_timer_us);
  result.op_timeout_ms = options.op_timeout_ms;
  result.epoch_tick_us = options.epoch_tick_ms * 1000;
  result.location_cache_bytes = options.location_cache_bytes;
  result.register_cache_entries = options.register_cache_keys;
  result.register_lanes = static_cast<uint32_t>(options.register_lanes);
  result.large_values = large_values.values;
  return result;
}

inline EngineKind EngineOf(const AgentOptions& options) {
  if (options.engine == "raw") return EngineKind::kRaw;
  if (options.engine == "abd") return EngineKind::kAbd;
  return options.engine == "snapshot" ? EngineKind::kSnapshot : EngineKind::kSwarm;
}

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_
