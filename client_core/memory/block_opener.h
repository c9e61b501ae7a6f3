// BlockOpener: gives blocks that this worker does not need to all, partly used as they are
// (PROTOCOLS, "Open blocks": owned to closing to open).
//
// A worker that is short of memory says so with its epoch. Others then close some of their blocks
// of that class: they allocate nothing more there. Once no operation of theirs can hold an object
// of such a block that nothing names yet, they set the bits of what is free and give up the block
// on all replicas. Its primary gives it to the next worker that asks for that class.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_BLOCK_OPENER_H_
#define ONETRIP_CLIENT_CORE_MEMORY_BLOCK_OPENER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/foreign_frees.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/node_requests.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class BlockOpener {
 public:
  // All outlive it.
  BlockOpener(WorkerContext& context, const Reclaimer& reclaimer, AllocatorMetrics& metrics,
              const Holders& holders, OwnBlocks& blocks, ForeignFrees& foreign,
              const BlockSweeper& sweeper, BlocksInTransit& transit, NodeRequests& requests)
      : context_(context),
        reclaimer_(reclaimer),
        metrics_(metrics),
        holders_(holders),
        blocks_(blocks),
        foreign_(foreign),
        sweeper_(sweeper),
        transit_(transit),
        requests_(requests) {}

  // Closes blocks for others who are short of these classes, a bit each; one of each class stays.
  void CloseFor(uint64_t classes);
  // Closes the last blocks of objects, too, of which at most half is used: the objects may find
  // room with a worker that has blocks of the same classes. For a worker that can win no memory by
  // itself.
  void CloseSparse();
  // REQUIRES: the block is in its list and may be closed.
  void Close(OwnBlock& block);
  [[nodiscard]] bool has_closing() const { return !closing_.empty(); }
  // Opens those of the closed ones of which no operation can hold anything any more.
  void OpenClosed();
  // The block is not this worker's any more; its free objects are on their way to the bitmap.
  // REQUIRES: no operation holds anything of it that nothing names.
  void Disown(OwnBlock& block);
  // Makes the memory nodes open blocks that have been disowned, as far as they answer.
  Task<void> TellOpened();

  // True while blocks of this worker's are about to be open.
  [[nodiscard]] bool opens() const {
    return has_closing() || transit_.has_opening() || transit_.is_telling();
  }
  // True while that is so for a block of that class: a worker that wants one gets it back.
  [[nodiscard]] bool OpensOneOf(SizeClass size_class) const;
  // True if blocks were opened since the last call.
  bool TakeHasOpened() { return std::exchange(has_opened_, false); }

  // A new view is there: nothing is opened in regions that are gone.
  void UseView(const View& view);

 private:
  // A block that waits for the operations that may hold something of it.
  struct Closing {
    GlobalAddr start;
    uint64_t generation;  // Holders::generation() as it was closed
    uint64_t epoch;
  };

  void CloseAllButOne(const OwnBlocks::List& list);
  void CloseAll(const OwnBlocks::List& closed);
  Task<Status> TellOpened(BlocksInTransit::Opening* opening);

  WorkerContext& context_;
  const Reclaimer& reclaimer_;
  AllocatorMetrics& metrics_;
  const Holders& holders_;
  OwnBlocks& blocks_;
  ForeignFrees& foreign_;
  const BlockSweeper& sweeper_;
  BlocksInTransit& transit_;
  NodeRequests& requests_;
  std::vector<Closing> closing_;
  bool has_opened_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_BLOCK_OPENER_H_
