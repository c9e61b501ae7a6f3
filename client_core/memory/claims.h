// Claims: makes blocks this worker's own that are granted already: to a worker that is gone (FUSEE
// 5.3; OrphanBlocks), or to this one by an answer that got lost (PROTOCOLS, "Open blocks": claims).
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_CLAIMS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_CLAIMS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/node_requests.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Claims {
 public:
  // All outlive it.
  Claims(WorkerContext& context, OwnBlocks& blocks, BlockSweeper& sweeper, BlocksInTransit& transit,
         NodeRequests& requests)
      : context_(context),
        blocks_(blocks),
        sweeper_(sweeper),
        transit_(transit),
        requests_(requests) {}

  // Makes this worker the owner of a block of `from`, who is gone, on all replicas: the objects
  // that are not `named` there, by index, are free. `freed`: the bits that the bitmap shows, by
  // index; a sweep brings those objects back. REQUIRES: the caller is at slots; no operation can
  // reach or free unnamed objects any more, and all that others freed in the block is in its bitmap
  // (see OrphanBlocks). kUnavailable: a replica did not answer; kCorrupt: one says otherwise about
  // the block. Both leave it for another worker.
  Task<Status> TakeOver(GlobalAddr start, SizeClass size_class, WorkerId from,
                        const std::vector<bool>& named, std::vector<bool>* freed);

  // Queues the blocks for ClaimAgain() of which the primaries of regions from `first_region` on say
  // that they are this worker's, and it does not know of, since an answer was lost. False: but for
  // blocks that it is just giving back. REQUIRES: `operation` is one that a change of the view
  // waits for.
  Task<Result<bool>> ClaimGranted(Operation& operation, uint32_t first_region);
  // The same, in its time, behind a request for a block whose answer never came.
  Task<void> ClaimUnheard(Operation& operation);
  // Claims the blocks that are queued. Another worker may have had a block since this one last
  // knew: all of it counts as used, and a look for lost memory finds the objects that nothing
  // names.
  Task<void> ClaimAgain();
  // True if it has got blocks since the last call in which something may be lost: it has claimed
  // them, or a backup alone knows of something that is free.
  bool TakeMayLack() { return std::exchange(may_lack_, false); }
  [[nodiscard]] bool may_lack() const { return may_lack_; }

 private:
  Task<Status> TakeOverOnReplicas(GlobalAddr start, SizeClass size_class, WorkerId from);
  Task<Status> AddFreed(GlobalAddr start, std::vector<bool>* freed, std::vector<bool>* used);
  Task<void> Claim(GlobalAddr start, SizeClass size_class);

  WorkerContext& context_;
  OwnBlocks& blocks_;
  BlockSweeper& sweeper_;
  BlocksInTransit& transit_;
  NodeRequests& requests_;
  bool may_lack_ = false;
  uint64_t next_walk_ns_ = 0;  // ClaimUnheard
  uint32_t waited_ = 0;        // claims in a row that had to wait for requests to end
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_CLAIMS_H_
