// Worker: one thread with its executor, its share of the connections and its own access to the
// store. Workers share nothing but the server's configuration and a few counters.
#ifndef ONETRIP_FRONTEND_WORKER_H_
#define ONETRIP_FRONTEND_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/status.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/kv/kv.h"
#include "frontend/connection.h"
#include "frontend/metrics/worker_metrics.h"
#include "frontend/pool_watch.h"
#include "frontend/storage/storage.h"
#include "redis_compat/dispatch/client_info.h"
#include "redis_compat/dispatch/server_hooks.h"

namespace onetrip {

// The objects that all workers of a server share; outlives them.
struct WorkerEnvironment {
  const Clock& clock;
  Storage& storage;
  ServerConfig& config;
  ClientLimits& limits;
  PoolWatch& pool_watch;
  std::atomic<uint64_t>& open_clients;  // Accepted and not yet closed, of the whole process.
};

class Worker {
 public:
  // `index` counts from 0 and seeds the worker's randomness along with `seed`.
  Worker(const WorkerEnvironment& environment, uint32_t index, uint64_t seed);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // REQUIRES: never started, or joined.
  ~Worker();

  // The hooks by which commands ask the process, on this worker. Before Start().
  void SetHooks(std::unique_ptr<ServerHooks> hooks) { hooks_ = std::move(hooks); }

  // Starts the thread and waits until it has joined the cluster; on failure the thread has ended.
  Status Start();
  // First half of an orderly end: ends every connection after the replies to what it has executed,
  // and refuses new ones. The loop goes on, so that commands that wait for other workers end too.
  // `done` is called on the worker's thread. Any thread.
  void CloseConnections(std::function<void()> done);
  // Second half: gives the store back, ends the loop and joins the thread. REQUIRES: the first half
  // is done. Not the worker's own thread.
  void StopAndJoin();

  // Any thread.
  void Post(std::function<void()> fn) { executor_.Post(std::move(fn)); }
  [[nodiscard]] uint32_t index() const { return index_; }
  // With those of the store from Start() until StopAndJoin().
  [[nodiscard]] const WorkerMetrics& metrics() const { return metrics_; }

  // The rest: the worker's thread only.
  [[nodiscard]] LoopExecutor& executor() { return executor_; }
  [[nodiscard]] Kv& kv() { return storage_->kv(); }
  // Takes a connection over and serves it. `unix_path` outlives the worker.
  void Adopt(UniqueFd fd, uint64_t id, std::string_view unix_path);
  // True while its connections are being ended.
  [[nodiscard]] bool closing() const { return closing_; }
  [[nodiscard]] const std::vector<Connection*>& connections() const { return connections_; }
  void ListClients(std::vector<ClientSnapshot>* clients) const;
  // Ends those that `filter` matches, except `self_id`, which is counted only; returns how many
  // matched.
  uint64_t KillClients(const ClientFilter& filter, uint64_t self_id);
  // Sends a line to its connections that have said MONITOR.
  void SendToMonitors(const std::string& line);
  void CountRejected() { metrics_.traffic.rejected.Add(); }
  // CONFIG RESETSTAT.
  void ResetStats();

 private:
  // The once-a-second look after the connections.
  class TendTimer final : public Timer {
   public:
    explicit TendTimer(Worker& worker) : worker_(worker) {}
    void Fire() override { worker_.TendConnections(); }

   private:
    Worker& worker_;
  };

  static constexpr uint64_t kTendIntervalNs = 1'000'000'000;

  void ThreadMain(const std::function<void(Status)>& started);
  Task<Status> JoinCluster();
  Task<void> Serve(UniqueFd fd, uint64_t id, std::string_view unix_path);
  Task<void> CloseAll(std::function<void()> done);
  Task<void> LeaveCluster();
  void TendConnections();
  void LookAtPool();

  const WorkerEnvironment environment_;
  const uint32_t index_;
  LoopExecutor executor_;
  Gate connection_gate_;
  Gate background_gate_;
  FlushQueue flush_queue_;
  WorkerMetrics metrics_;
  std::unique_ptr<ServerHooks> hooks_;
  std::unique_ptr<WorkerStorage> storage_;
  std::optional<ConnectionHost> host_;  // From Start() on.
  std::vector<Connection*> connections_;
  bool closing_ = false;
  TendTimer tend_timer_;
  uint64_t commands_before_ = 0;  // Totals at the last look.
  uint64_t input_before_ = 0;
  uint64_t output_before_ = 0;
  uint64_t refusals_before_ = 0;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_WORKER_H_
