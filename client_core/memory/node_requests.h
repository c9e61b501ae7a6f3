// NodeRequests: asks memory nodes for blocks, and tells them who has one. It knows which nodes are
// being asked and which must not be asked now, and whether an answer with a block may have been
// lost (FUSEE 4.4; PROTOCOLS, "Open blocks").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_NODE_REQUESTS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_NODE_REQUESTS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/shortage.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class NodeRequests {
 public:
  // All outlive it.
  NodeRequests(WorkerContext& context, Shortage& shortage, BlocksInTransit& transit)
      : context_(context),
        shortage_(shortage),
        transit_(transit),
        next_node_(context.membership.index.value) {}

  // While one is alive no coroutine of this worker asks the node for a block, and none is doing so:
  // it might grant the one that it is being told of, perhaps again. REQUIRES: !is_asking().
  class NotAsked {
   public:
    NotAsked(NodeRequests& requests, NodeId node) : requests_(requests), node_(node) {
      requests_.not_asked_.push_back(node);
    }
    NotAsked(const NotAsked&) = delete;
    NotAsked& operator=(const NotAsked&) = delete;
    ~NotAsked() { requests_.not_asked_.erase(std::ranges::find(requests_.not_asked_, node_)); }

   private:
    NodeRequests& requests_;
    NodeId node_;
  };

  // The next of `nodes` nodes, whose turn it is; workers begin at different ones.
  NodeId NextNode(uint16_t nodes) { return {static_cast<uint16_t>(next_node_++ % nodes)}; }

  // Asks the primary `node` for a block; waits first while it must not be asked. Returns answers of
  // kDone and kOpened only. kOutOfMemory: the node has none; kUnavailable: the node and this worker
  // know different maps, and the block goes back; kCorrupt: the answer makes no sense;
  // kUnknownOutcome: a block may have been granted (has_unheard_grant).
  Task<Result<ControlReply>> AskForBlock(NodeId node, ControlRequest request);
  [[nodiscard]] bool is_asking() const { return asking_ != 0; }
  // For some ticks no coroutine asks a memory node for a block, so that those that are to be
  // claimed are none of those that are asked for. Not again for a while after that.
  void PauseAsking();

  // True if a memory node may have granted a block by an answer that never came.
  [[nodiscard]] bool has_unheard_grant() const { return has_unheard_grant_; }
  void SetUnheardGrant(bool may_be) { has_unheard_grant_ = may_be; }

  // Asks a replica to make `to` the owner of a block of `from`.
  Task<Result<ControlReply>> AskToTakeOver(GlobalAddr start, SizeClass size_class, int replica,
                                           WorkerId from, WorkerId to);
  // kUnavailable: others than those that were asked are the replicas of `block` by now.
  [[nodiscard]] Status HaveAskedAll(GlobalAddr block, const RegionPlacement& asked) const;

 private:
  WorkerContext& context_;
  Shortage& shortage_;
  BlocksInTransit& transit_;
  uint32_t next_node_;
  uint32_t asking_ = 0;               // requests under way
  std::vector<NodeId> not_asked_;     // NotAsked
  uint64_t not_asking_until_ns_ = 0;  // PauseAsking
  bool has_unheard_grant_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_NODE_REQUESTS_H_
