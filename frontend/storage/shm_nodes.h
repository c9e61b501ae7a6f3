// ShmNodes: the memory nodes of this host as a clustered agent's process has them mapped: one
// segment per node, for all workers.
//
// A node that ends makes its segment unreachable; Tend() attaches to the one that comes back at the
// same place with the same memory. Workers notice by generation() and take the new segment when it
// suits them; the old one lives until they have. Thread-safe.
#ifndef ONETRIP_FRONTEND_STORAGE_SHM_NODES_H_
#define ONETRIP_FRONTEND_STORAGE_SHM_NODES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/fabric/shm_segment.h"
#include "client_core/layout/types.h"

namespace onetrip {

class ShmNodes {
 public:
  using SegmentPtr = std::shared_ptr<ShmSegment>;

  // Makes `worker` known to every node of `view` that is not out, attaching to those that are not
  // attached yet.
  // Blocks. Failures as of ShmSegment::Attach; may then be called again.
  Status AddWorker(WorkerId worker, const View& view, std::string* reason);
  // The worker has left the cluster, or was never in it.
  void RemoveWorker(WorkerId worker);

  // Tries to attach to nodes that were lost, or are not attached yet and are in the view; false
  // while there are any. Blocks for as long as a node takes to answer.
  bool Tend(const View& view);

  // Changes when a segment was replaced; one load.
  [[nodiscard]] uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // By node.
  [[nodiscard]] std::vector<SegmentPtr> segments() const;

 private:
  // REQUIRES: mutex_ is held. Attaches for all of workers_.
  Status Attach(NodeId node, const View& view, std::string* reason);

  std::atomic<uint64_t> generation_{1};
  std::mutex change_mutex_;  // one attachment at a time; guards workers_
  std::vector<WorkerId> workers_;
  mutable std::mutex mutex_;  // guards segments_; never held for long
  std::vector<SegmentPtr> segments_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_SHM_NODES_H_
