// Grants: gets blocks for one worker: free ones of a size class and open ones from memory nodes, on
// all of their replicas (FUSEE 4.4; PROTOCOLS, "Memory", "Open blocks").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_GRANTS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_GRANTS_H_

#include <cstdint>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_returner.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/node_requests.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/stale_locks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Grants {
 public:
  using Want = OwnBlocks::Want;

  // All outlive it.
  Grants(WorkerContext& context, AllocatorMetrics& metrics, OwnBlocks& blocks, StaleLocks& locks,
         BlockSweeper& sweeper, BlocksInTransit& transit, NodeRequests& requests,
         BlockReturner& returner)
      : context_(context),
        metrics_(metrics),
        blocks_(blocks),
        locks_(locks),
        sweeper_(sweeper),
        transit_(transit),
        requests_(requests),
        returner_(returner) {}

  // A block (or span) that serves `want` from any memory node. kOutOfMemory: all are full;
  // kUnavailable: one has not answered; kCorrupt: the answer of one makes no sense.
  Task<Status> Grant(Want want);
  // Two kinds of block would help who wants an object near buffers, and one is asked for without a
  // wait: one of buffers near `near`, or one of objects near buffers that this worker has
  // elsewhere, since memory nodes have no room left on the nodes of `near`. kOutOfMemory: neither.
  Task<Status> GrantBeside(SizeClass size_class, SizeClass buffer_class, GlobalAddr near);

  // Gets an open block of any class of which little is used; false: there is none.
  Task<bool> AcquireSparse();
  // Takes open blocks of a region that stays, some at a time, whatever is free there: only the
  // owner of a block finds what is lost in it. Returns whether there may be more; not ok: it could
  // not get one. They are open again after the account, or when another worker is short.
  Task<Result<bool>> AcquireOpenIn(uint32_t region);
  // Takes open blocks of regions that are given up, some at a time, so that some worker looks what
  // is lost there. Returns whether there may be more.
  Task<bool> AcquireLeaving();

 private:
  // From one node, or from one region of which it is the primary: `within`, null: any.
  Task<Result<GlobalAddr>> GrantBy(NodeId node, Want want, GlobalAddr within);
  Task<Status> GrantOnBackups(GlobalAddr block, SizeClass size_class);
  // An open block of any class: of the region of `within`, or, if that is null, of any that is
  // given up. kOutOfMemory: the node has none.
  Task<Result<GlobalAddr>> AcquireAnyOpen(NodeId node, GlobalAddr within);
  // An open block that its primary has given this worker becomes one of its own, in `list`.
  Task<Result<GlobalAddr>> AdoptOpened(GlobalAddr start, SizeClass size_class, uint32_t list);
  Task<Status> AcquireOnBackups(GlobalAddr start, SizeClass size_class);
  // A block has come from another worker, if it is this worker's by now.
  void NoteTook(GlobalAddr start) {
    if (blocks_.Find(start) != nullptr) transit_.NoteTook();
  }

  WorkerContext& context_;
  AllocatorMetrics& metrics_;
  OwnBlocks& blocks_;
  StaleLocks& locks_;
  BlockSweeper& sweeper_;
  BlocksInTransit& transit_;
  NodeRequests& requests_;
  BlockReturner& returner_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_GRANTS_H_
