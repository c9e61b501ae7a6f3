// ClusteredWorker: one worker's access to a cluster of processes. Made, used and destroyed on the
// worker's thread; frontend/storage/clustered.h makes it.
#ifndef ONETRIP_FRONTEND_STORAGE_CLUSTERED_WORKER_H_
#define ONETRIP_FRONTEND_STORAGE_CLUSTERED_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/cluster/reach_watch.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/fabric/network_fabric.h"
#include "client_core/fabric/shm.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "frontend/storage/clustered.h"

namespace onetrip {

class ClusteredWorker final : public WorkerStorage {
 public:
  // Both outlive it.
  ClusteredWorker(LoopExecutor& executor, Clustered& cluster);
  ~ClusteredWorker() override;

  // Joins, reaches every memory node and opens the store. On failure *reason is one line, and the
  // worker has left again as well as it could.
  Task<Status> Start(std::string* reason);

  Kv& kv() override { return *kv_; }
  RdmaMetrics* rdma_metrics() override {
    return network_ != nullptr ? network_->rdma_metrics() : nullptr;
  }
  Task<void> Stop() override;

 private:
  // Waits until connections can be made to all memory nodes of the map, for as long as a start may
  // take: who is a member and does not reach one harms the others.
  Task<Status> AwaitNetwork(std::string* reason);
  Task<Status> ReachNodes(std::string* reason);
  Task<Status> ReachOverShm(std::string* reason);
  Task<Status> ReachOverNetwork(std::string* reason);
  // A fabric of the kind that was decided on, without nodes yet.
  Result<std::unique_ptr<NetworkFabric>> MakeNetwork(uint64_t cluster, std::string* reason);
  // From here on the master hears which nodes this worker does not reach.
  void Watch();
  // Tells the fabric which view counts, and where its nodes are.
  Status UseView(const View& view, std::string* reason);
  // Takes segments and addresses of nodes that came back, if there are any.
  void Tend();
  void TakeSegments();
  Task<void> Leave();
  Fabric& fabric() { return shm_ != nullptr ? static_cast<Fabric&>(*shm_) : *network_; }

  LoopExecutor& executor_;
  Clustered& cluster_;
  Quiesce hold_;
  Membership membership_;
  uint64_t view_version_ = 0;  // that the fabric was told
  uint64_t generation_ = 0;    // the segments'
  std::vector<ShmNodes::SegmentPtr> segments_;
  // One of the two.
  std::unique_ptr<ShmFabric> shm_;
  std::unique_ptr<NetworkFabric> network_;
  std::unique_ptr<WorkerContext> context_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<SlotStore> kv_;
  std::unique_ptr<ReachWatch> watch_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_CLUSTERED_WORKER_H_
