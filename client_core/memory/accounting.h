// Accounting: finds objects in this worker's blocks that nothing names any more and no worker gives
// back (PROTOCOLS, "What is lost comes back"). All that is in use when an account begins is suspect
// until it is free, retired, or known; the store looks at everything that names memory, and what is
// still suspect then is lost.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ACCOUNTING_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ACCOUNTING_H_

#include <cstdint>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_opener.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/retirement.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Accounting {
 public:
  struct Suspects {
    GlobalAddr start;
    SizeClass size_class;
  };

  // All outlive it.
  Accounting(WorkerContext& context, const Reclaimer& reclaimer, AllocatorMetrics& metrics,
             const Holders& holders, OwnBlocks& blocks, Retirement& retirement,
             BlockSweeper& sweeper, BlockOpener& opener)
      : context_(context),
        reclaimer_(reclaimer),
        metrics_(metrics),
        holders_(holders),
        blocks_(blocks),
        retirement_(retirement),
        sweeper_(sweeper),
        opener_(opener) {}

  // Begins an account, or begins it anew.
  void Begin();
  // Ends it, and closes the blocks that were acquired for nothing but this.
  void End();
  [[nodiscard]] bool is_open() const { return is_open_; }
  // True when no operation holds anything that was in use at Begin() and that nothing names.
  [[nodiscard]] bool MayGoOn() const {
    return holders_.HaveEndedSince(generation_) && reclaimer_.IsSafe(epoch_);
  }

  // The blocks of which something is suspect.
  [[nodiscard]] std::vector<Suspects> SuspectBlocks() const;
  [[nodiscard]] bool IsSuspect(GlobalAddr addr) const;
  // The object is not suspect: something names it, or its user is known.
  void KnowOf(GlobalAddr addr);
  // Collects the objects that others have freed in the block. Those of `unused`, by index, that are
  // suspect are collected even if a backup alone knows that they are free: their users have given
  // them up by now. kUnavailable: they are being collected, or could not be.
  Task<Status> CollectFreed(GlobalAddr start, const std::vector<bool>& unused);
  // The object is free. REQUIRES: it is suspect, and in this turn all that others had freed of its
  // block has been collected.
  void FreeLost(GlobalAddr addr);

 private:
  WorkerContext& context_;
  const Reclaimer& reclaimer_;
  AllocatorMetrics& metrics_;
  const Holders& holders_;
  OwnBlocks& blocks_;
  Retirement& retirement_;
  BlockSweeper& sweeper_;
  BlockOpener& opener_;
  bool is_open_ = false;
  // As of Begin().
  uint64_t generation_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ACCOUNTING_H_
