// WorkerUsageSum: what the workers of this process have of the cluster's memory, added up.
//
// Any thread.
#ifndef ONETRIP_FRONTEND_STORAGE_WORKER_USAGE_H_
#define ONETRIP_FRONTEND_STORAGE_WORKER_USAGE_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "client_core/cluster/pool_usage.h"
#include "client_core/memory/allocator_metrics.h"

namespace onetrip {

class WorkerUsageSum {
 public:
  // From here to Remove(), which comes before `metrics` ends, the worker counts.
  void Add(const AllocatorMetrics& metrics);
  void Remove(const AllocatorMetrics& metrics);
  [[nodiscard]] WorkerUsage Sum() const;

 private:
  // A refusal is told for so long.
  static constexpr std::chrono::seconds kRefusedFor{5};

  struct OneWorker {
    const AllocatorMetrics* metrics = nullptr;
    uint64_t exhausted = 0;  // that have been seen
  };
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  mutable std::vector<OneWorker> workers_;
  mutable uint64_t refused_bytes_ = 0;
  mutable std::chrono::steady_clock::time_point refused_until_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_WORKER_USAGE_H_
