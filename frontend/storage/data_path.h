// Translates the agent's options for the layers below, embedded or clustered.
#ifndef ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_
#define ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_

#include <algorithm>
#include <cstdint>

#include "client_core/base/host_memory.h"
#include "client_core/base/options.h"
#include "client_core/kv/core/resting_registers.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "frontend/storage/storage.h"

namespace onetrip {

inline EngineKind EngineOf(const AgentOptions& options) {
  if (options.engine == "raw") return EngineKind::kRaw;
  if (options.engine == "abd") return EngineKind::kAbd;
  return options.engine == "snapshot" ? EngineKind::kSnapshot : EngineKind::kSwarm;
}

// How much one worker may remember of keys.
struct CacheShare {
  uint64_t location_bytes = 0;
  uint64_t registers = 0;
  uint64_t resting = 0;  // registers that have not been used lately
};

// `host_bytes`: of memory that the process may use. A register that is known needs no location, and
// five that rest take no more than one that is in use: half of the bytes are for these. Engine
// snapshot writes none, but reads those of agents with other engines.
inline CacheShare CacheShareOf(const AgentOptions& options, uint64_t host_bytes) {
  constexpr uint64_t kRegisterBytes = 370;  // measured, with keys of 16 bytes
  const uint64_t all = options.cache_bytes != 0 ? options.cache_bytes : host_bytes / 8;
  const uint64_t mine = all / std::max<uint64_t>(options.threads, 1);
  const EngineKind engine = EngineOf(options);
  if (engine == EngineKind::kRaw) return {.location_bytes = mine, .registers = 1};
  const uint64_t locations = mine / (engine == EngineKind::kSnapshot ? 2 : 8);
  const uint64_t registers = mine - locations;
  return {.location_bytes = locations,
          .registers = std::max<uint64_t>(registers / 2 / kRegisterBytes, 1),
          .resting = registers / 2 / RestingRegisters::kBytesEach};
}

inline DataPathOptions DataPathOf(const AgentOptions& options,
                                  const LargeValueBudgets& large_values) {
  DataPathOptions result;
  result.wait_polls_max = static_cast<uint32_t>(options.wait_polls_max);
  result.wait_timer_us = static_cast<uint32_t>(options.wait_timer_us);
  result.op_timeout_ms = options.op_timeout_ms;
  result.epoch_tick_us = options.epoch_tick_ms * 1000;
  const CacheShare cache = CacheShareOf(options, UsableMemoryBytes());
  result.location_cache_bytes = cache.location_bytes;
  result.register_cache_entries = cache.registers;
  result.resting_registers_max = cache.resting;
  result.register_lanes = static_cast<uint32_t>(options.register_lanes);
  result.large_values = large_values.values;
  return result;
}

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_DATA_PATH_H_
