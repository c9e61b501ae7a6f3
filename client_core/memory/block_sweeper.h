// BlockSweeper: takes back objects that other workers have freed in this worker's blocks. It reads
// a block's bitmap, takes the bits out on all replicas and lists the objects (FUSEE 4.4; PROTOCOLS,
// "Memory").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_BLOCK_SWEEPER_H_
#define ONETRIP_CLIENT_CORE_MEMORY_BLOCK_SWEEPER_H_

#include <cstdint>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class BlockSweeper {
 public:
  // Both outlive it.
  BlockSweeper(WorkerContext& context, OwnBlocks& blocks) : context_(context), blocks_(blocks) {}

  // Collects the bits of the block at `start`, unless that is being done already: those that the
  // primary shows, and those of `unused`, by index, that any replica shows; null: of none. Not ok:
  // some may not have been collected; CollectAgain() tries those.
  Task<Status> Sweep(GlobalAddr start, const std::vector<bool>* unused = nullptr);
  // Sweeps the next `count` blocks that are not wholly free, round robin.
  Task<void> SweepSome(uint32_t count);
  Task<void> SweepAll() { return SweepSome(static_cast<uint32_t>(blocks_.size())); }
  // The share of one turn of maintenance. It is larger while this worker owes it to others to look
  // at each of its blocks, since they have become short of memory.
  Task<void> SweepInTurn();
  // `classes`, a bit each: those of which others are short as of now.
  void NoteOthersWant(uint64_t classes);
  [[nodiscard]] bool owes_sweeps() const { return owed_sweeps_ > 0; }
  // Sweeps some blocks of regions that are given up; ends early when the cluster waits.
  Task<void> SweepLeaving();

  // Tries again to collect what has failed, once nothing that has failed may still take effect.
  Task<void> CollectAgain();
  [[nodiscard]] bool has_uncollected() const { return !uncollected_.empty(); }
  // True while objects of the block are on their way to its list: it changes its owner only
  // afterwards.
  [[nodiscard]] bool IsCollecting(const OwnBlock& block) const {
    return block.sweeping || block.clearing > 0 || MayBeUncollected(block);
  }
  // True while any sweep is under way, which may bring memory.
  [[nodiscard]] bool is_sweeping() const { return sweeping_ > 0; }

  // A new view is there: nothing is collected in regions that are gone.
  void UseView(const View& view);

 private:
  // Bits that were found in a bitmap of this worker's own, and may still be there.
  struct Uncollected {
    GlobalAddr word;
    uint64_t bits;
  };

  Task<Status> CollectFreed(OwnBlock& block, const std::vector<bool>* unused);
  // Takes `bits` out of the bitmap word wherever it shows them, and the objects back once that is
  // done on all replicas: no worker sets the bits until then.
  Task<Status> Collect(OwnBlock& block, GlobalAddr word, uint64_t bits);
  [[nodiscard]] bool MayBeUncollected(const OwnBlock& block) const;

  WorkerContext& context_;
  OwnBlocks& blocks_;
  std::vector<Uncollected> uncollected_;
  uint32_t next_sweep_ = 0;     // the number of a block
  uint32_t next_leaving_ = 0;   // likewise
  uint64_t others_wanted_ = 0;  // a turn ago
  uint32_t owed_sweeps_ = 0;    // blocks to look at before this worker has given what it can
  uint32_t sweeping_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_BLOCK_SWEEPER_H_
