// Clustered: a cluster of processes as an agent's storage: a master, reached over the control
// plane, and memory nodes, reached over shared memory, tcp or RDMA.
//
// Beside the workers there is one thread that looks after what is slow: lost shm segments.
#ifndef ONETRIP_FRONTEND_STORAGE_CLUSTERED_H_
#define ONETRIP_FRONTEND_STORAGE_CLUSTERED_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/options.h"
#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "client_core/control/grpc_master_client.h"
#include "client_core/verbs/device.h"
#include "frontend/storage/shm_nodes.h"
#include "frontend/storage/storage.h"

namespace onetrip {

// The process's exit code when the cluster has expelled it.
inline constexpr int kExpelledExitCode = 70;

class Clustered final : public Storage {
 public:
  enum class FabricKind : uint8_t { kUndecided, kShm, kTcp, kVerbs };

  // Connects to the master that `options` names. `clock` outlives it. When the cluster expels this
  // process, it ends with kExpelledExitCode. On failure `reason` is one line.
  static Result<std::unique_ptr<Clustered>> Create(const AgentOptions& options, const Clock& clock,
                                                   std::string* reason);
  // Says goodbye to the master if every worker has.
  ~Clustered() override;

  Task<Result<std::unique_ptr<WorkerStorage>>> Join(LoopExecutor& executor) override;
  PoolUsage pool_usage() const override;
  uint64_t replicas() const override;
  std::string join_error() const override;
  std::string Describe() const override;
  std::vector<InfoField> Info() const override;

 private:
  friend class ClusteredWorker;

  Clustered(const AgentOptions& options, const Clock& clock, Secret secret);
  Status Connect(std::string* reason);
  void Tend();
  // From here on `tend` runs on the worker's thread, for as long as the mailbox's owner lives,
  // whenever the view or a segment has changed.
  void AddWorker(const std::shared_ptr<Quiesce::Mailbox>& mailbox, std::function<void()> tend);
  void TellWorkers();
  // Segments of nodes that are new in it are taken at once.
  void OnNewView();
  // Tries a connection to every node of the view that is not out, and tells the master of those to
  // which there is none. Returns those to which the network does not lead, which is not so where no
  // process listens; *reason is one line about them. Blocks for a while. Any thread.
  std::vector<NodeId> CutOff(const View& view, std::string* reason);
  std::vector<NodeId> ProbeNodes(const View& view, const std::vector<NodeId>& nodes,
                                 std::string* reason);
  // The same of nodes to which there was none.
  void ProbeAgain();
  // Settles which fabric this process uses. Not ok: *reason says why none does.
  Status DecideFabric(const View& view, std::string* reason);
  // Opens the device, once. *reason, if it fails: one line.
  Status OpenDevice(std::string* reason);
  void Fail(std::string reason);
  // "; the cluster waits: ...", or nothing if it does not. Blocks for a while.
  [[nodiscard]] std::string WhatTheMasterWaitsFor() const;

  const AgentOptions options_;
  const Clock& clock_;
  const Secret secret_;
  std::unique_ptr<GrpcMasterClient> master_;
  ShmNodes shm_nodes_;

  std::atomic<FabricKind> fabric_{FabricKind::kUndecided};
  std::mutex device_mutex_;
  std::unique_ptr<VerbsDevice> device_;  // written under device_mutex_, before any worker uses it

  std::mutex workers_mutex_;
  // Guarded by workers_mutex_.
  std::vector<std::pair<std::shared_ptr<Quiesce::Mailbox>, std::function<void()>>> workers_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string join_error_;  // guarded by mutex_
  bool stop_ = false;       // guarded by mutex_
  bool is_new_ = false;     // the view is, for the thread that tends; guarded by mutex_
  std::thread tend_thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_CLUSTERED_H_
