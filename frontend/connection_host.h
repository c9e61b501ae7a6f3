// ConnectionHost: what a connection uses of its worker.
#ifndef ONETRIP_FRONTEND_CONNECTION_HOST_H_
#define ONETRIP_FRONTEND_CONNECTION_HOST_H_

#include "client_core/coro/loop_executor.h"
#include "frontend/client_limits.h"
#include "frontend/flush_queue.h"
#include "frontend/metrics/worker_metrics.h"
#include "frontend/storage/storage.h"
#include "redis_compat/dispatch/command_stats.h"
#include "redis_compat/dispatch/server_hooks.h"
#include "redis_compat/parameters.h"

namespace onetrip {

class Kv;

// All of it outlives the connection.
struct ConnectionHost {
  LoopExecutor& executor;
  Kv& kv;
  ServerHooks& hooks;
  CommandStats& stats;
  const ServerConfig& config;
  const ClientLimits& limits;
  TrafficMetrics& traffic;
  FlushQueue& flush_queue;
  const LargeValueBudgets& large_values;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_CONNECTION_HOST_H_
