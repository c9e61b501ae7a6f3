// BlockReturner: gives wholly free blocks back to their memory nodes, and tells nodes again that
// did not answer (PROTOCOLS, "Open blocks": owned to free).
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_BLOCK_RETURNER_H_
#define ONETRIP_CLIENT_CORE_MEMORY_BLOCK_RETURNER_H_

#include <cstdint>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class BlockReturner {
 public:
  // All outlive it.
  BlockReturner(WorkerContext& context, OwnBlocks& blocks, BlocksInTransit& transit)
      : context_(context), blocks_(blocks), transit_(transit) {}

  // Gives back the blocks that OwnBlocks has queued, if they are wholly free still. Unless `all`,
  // one per class stays.
  Task<void> ReturnFreeBlocks(bool all);
  // Gives a block back that is not among OwnBlocks. If a backup does not answer it is told again
  // when the first message can't arrive any more; until then the primary does not hear of it, and
  // grants it to no worker.
  Task<void> ReturnBlock(GlobalAddr start, SizeClass size_class);
  // Does so for blocks whose nodes did not answer, once nothing that has failed may still arrive.
  Task<void> ReturnAgain();
  // True while blocks that were this worker's go back, which may bring memory.
  [[nodiscard]] bool is_returning() const { return returning_ > 0; }

 private:
  Task<Status> TellBackups(GlobalAddr start, SizeClass size_class);
  Task<Status> TellReturned(NodeId node, GlobalAddr start, SizeClass size_class);

  WorkerContext& context_;
  OwnBlocks& blocks_;
  BlocksInTransit& transit_;
  uint32_t returning_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_BLOCK_RETURNER_H_
