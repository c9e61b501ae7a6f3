// Compaction: which of this worker's blocks are being emptied, so that memory changes its size
// class (PROTOCOLS, "Compaction"). The store moves the objects of a block that is chosen by
// ordinary writes. Nothing is allocated there until the block is free, or until that has taken too
// long.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_COMPACTION_H_
#define ONETRIP_CLIENT_CORE_MEMORY_COMPACTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Compaction {
 public:
  struct Sparse {
    GlobalAddr start;
    SizeClass size_class;
    bool is_buffers;
  };

  // Both outlive it.
  Compaction(WorkerContext& context, OwnBlocks& blocks) : context_(context), blocks_(blocks) {}

  // The store's: `begin` starts a round at once, if one may start. Until End() says that there was
  // nothing to move, allocations that are short of memory wait for it.
  void SetBegin(std::function<void()> begin) { begin_ = std::move(begin); }
  void BeginIfMay() const {
    if (begin_) begin_();
  }
  // A round is under way between the two; other workers wait for it, too.
  void Begin() { runs_ = true; }
  void End(bool moved_any);

  // Chooses at most `blocks_max` blocks of which at most `used_percent_max` are in use, and least
  // first. The objects of blocks of records fit into the free room of the other blocks of their
  // class, or, with `may_widen`, of somewhat larger classes; registers that are moved because of
  // their buffers find their own room.
  std::vector<Sparse> BeginEmptying(uint32_t used_percent_max, size_t blocks_max, bool may_widen);
  // An object for one that lives in a block that is emptied; null: there is none at hand. With
  // `may_widen` it may be of a larger class.
  OwnBlocks::Object TryAllocateToMove(SizeClass size_class, bool may_widen);
  // The objects that are allocated there, or were freed by others and are not collected yet.
  // REQUIRES: the block was chosen.
  [[nodiscard]] std::vector<GlobalAddr> UsedIn(GlobalAddr start) const;
  // True while the block is this worker's, and to be emptied.
  [[nodiscard]] bool IsEmptying(GlobalAddr addr) const {
    const OwnBlock* const block = blocks_.Find(addr);
    return block != nullptr && block->emptying;
  }

  // True during a round, and behind it while blocks may become free.
  [[nodiscard]] bool is_under_way() const { return runs_ || has_emptying(); }
  [[nodiscard]] bool has_emptying() const { return !emptying_.empty(); }
  // True when this worker's compaction may bring memory, also by a round that is to begin.
  [[nodiscard]] bool MayBringMemory() const;
  // Blocks that were to be emptied, and are not in time, serve allocations again.
  void FillAgainWhatIsLate();
  // So does one that has what is wanted, before an allocation is refused. False: there is none.
  bool FillAgainFor(const OwnBlocks::Want& want);

  // A new view is there: no block of regions that are gone is being emptied.
  void UseView(const View& view);

 private:
  struct Emptying {
    GlobalAddr start;
    uint64_t until_ns;
  };

  void FillAgain(OwnBlock& block);
  // Blocks of which something is used, but little; least first.
  [[nodiscard]] std::vector<OwnBlock*> SparseBlocks(uint32_t used_percent_max) const;

  WorkerContext& context_;
  OwnBlocks& blocks_;
  std::function<void()> begin_;  // empty: the store compacts nothing
  bool runs_ = false;
  std::vector<Emptying> emptying_;
  uint64_t barren_until_ns_ = 0;  // a round has just found nothing to move
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_COMPACTION_H_
