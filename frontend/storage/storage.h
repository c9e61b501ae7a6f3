// Storage: what the workers of an agent keep keys in, behind an interface, so that the server does
// not know whether the memory nodes live in this process.
#ifndef ONETRIP_FRONTEND_STORAGE_STORAGE_H_
#define ONETRIP_FRONTEND_STORAGE_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/rdma_metrics.h"
#include "client_core/kv/kv.h"
#include "frontend/storage/worker_usage.h"

namespace onetrip {

// One worker's access to the cluster. Made, used and destroyed on that worker's thread.
class WorkerStorage {
 public:
  virtual ~WorkerStorage() = default;

  // The worker's keys; lives as long as this.
  virtual Kv& kv() = 0;
  // Null: not over RDMA. As long as this.
  virtual RdmaMetrics* rdma_metrics() { return nullptr; }
  // Gives back what the worker holds of the cluster. REQUIRES: no operation is running; nothing but
  // destruction follows.
  virtual Task<void> Stop() = 0;
};

// A line of INFO.
struct InfoField {
  std::string name;
  std::string value;
};

// Bounds on the process's memory for values above 1 MiB, on all workers together. A command that
// waits for the second may hold some of the first, never the other way round but in replies, which
// clients take; those that do not take them for a minute, and keep others waiting, are closed.
struct LargeValueBudgets {
  std::shared_ptr<MemoryBudget> requests;  // being read in or executed
  std::shared_ptr<MemoryBudget> values;    // read for a command, until its reply is sent
};

class Storage {
 public:
  explicit Storage(uint64_t large_value_bytes)
      : large_values_{std::make_shared<MemoryBudget>(large_value_bytes / 2),
                      std::make_shared<MemoryBudget>(large_value_bytes / 2)} {}
  virtual ~Storage() = default;
  [[nodiscard]] const LargeValueBudgets& large_values() const { return large_values_; }

  // Joins the cluster as a worker whose executor is `executor`, which outlives the result. Fails as
  // MasterClient::Join and Kv::Start do. Called on the worker's thread.
  virtual Task<Result<std::unique_ptr<WorkerStorage>>> Join(LoopExecutor& executor) = 0;
  // Why the last Join failed, in one line; empty if there is no more to say than its status does.
  virtual std::string join_error() const { return {}; }

  // These from any thread.
  // The usage of the whole cluster.
  virtual PoolUsage pool_usage() const = 0;
  // Replicas of every key.
  virtual uint64_t replicas() const = 0;
  // Where the keys are, in a few words for the ready line; once a worker has joined.
  virtual std::string Describe() const = 0;
  // For INFO onetrip.
  virtual std::vector<InfoField> Info() const { return {}; }

 protected:
  // Sum over the workers of this process that were added and have not been removed. Any thread.
  [[nodiscard]] WorkerUsage worker_usage() const { return worker_usage_.Sum(); }
  WorkerUsageSum& worker_usages() { return worker_usage_; }

 private:
  const LargeValueBudgets large_values_;
  WorkerUsageSum worker_usage_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_STORAGE_H_
