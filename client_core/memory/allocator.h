// Allocator: second-level memory management of one worker (FUSEE 4.4; PROTOCOLS 2).
//
// Memory nodes grant coarse blocks; the worker cuts each into objects of one size class and keeps
// their free lists locally, so that an allocation on the data path costs no round trip. An object
// that a worker unlinks is retired and, once no operation can still reach it, given back: to the
// free list if the block is its own, else as a bit in the block's bitmap, by FAA, which the owner
// sweeps. A block that is wholly free goes back to its memory node.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/sync.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Allocator {
 public:
  Allocator(WorkerContext& context, Reclaimer& reclaimer);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  ~Allocator();

  // An object of `size_class` from local memory; null when Allocate() is needed.
  GlobalAddr TryAllocate(SizeClass size_class);

  // The same, asking memory nodes and waiting for retired memory if need be, at most
  // memory_wait_ms. kOutOfMemory when the pool holds nothing more. REQUIRES: the caller holds no
  // epoch pin, which could keep the memory it waits for from coming back.
  Task<Result<GlobalAddr>> Allocate(SizeClass size_class);

  // Gives back an object that no slot has ever named.
  void FreeUnpublished(GlobalAddr addr, SizeClass size_class);

  // Gives back an object that a slot named until now, when no operation can reach it any more.
  // REQUIRES: this worker unlinked it, and retires it once.
  void Retire(GlobalAddr addr, SizeClass size_class);

  // Background work is due: Maintain() should run soon.
  [[nodiscard]] bool wants_maintenance() const {
    return retired_since_tick_ >= context_.options.retired_objects_max ||
           retired_bytes_since_tick_ >= kTickRetiredBytes;
  }
  // Advances epochs, takes back what has become safe, hands foreign objects to their owners, sweeps
  // some of its own blocks, returns wholly free ones. Concurrent calls return at once.
  Task<void> Maintain();
  // Maintains until nothing is retired, or a second has passed, then returns what it can. At the
  // end of a worker's life.
  Task<void> Drain();

  [[nodiscard]] const AllocatorMetrics& metrics() const { return metrics_; }
  [[nodiscard]] size_t retired_count() const { return retired_.size(); }

 private:
  static constexpr uint64_t kTickRetiredBytes = 512 * 1024;
  static constexpr uint32_t kSweepBlocksPerTick = 16;

  struct Block {
    GlobalAddr start;
    SizeClass size_class;
    uint32_t objects = 0;
    std::vector<uint16_t> free;      // indices of free objects, last in first out
    uint32_t list_position = 0;      // in partial_[class], while free is not empty
    bool queued_for_return = false;  // in wholly_free_
    bool sweeping = false;           // its bitmap is being read; it is not returned meanwhile
  };
  struct Retired {
    GlobalAddr addr;
    SizeClass size_class;
    uint64_t epoch;
  };
  struct ForeignFree {
    GlobalAddr word;  // of the bitmap
    uint64_t bit;
  };

  Block* FindOwn(GlobalAddr addr);
  void AddFree(Block& block, uint16_t index);
  void Unlist(Block& block);
  // Back to the free list of its own block, or to the queue for its owner.
  void Release(GlobalAddr addr, SizeClass size_class);
  void ReleaseSafe();

  // A block (or span) of `size_class` from any memory node; kOutOfMemory when all are full.
  Task<Result<Block*>> GrantBlock(SizeClass size_class);
  Task<Status> GrantOnBackups(GlobalAddr block, SizeClass size_class);
  void AdoptBlock(GlobalAddr start, SizeClass size_class);
  Task<void> ReturnFreeBlocks(bool all);
  Task<void> ReturnBlock(GlobalAddr start, SizeClass size_class);
  Task<Status> FlushForeign();
  // Collects what others freed in the block at `start`, unless that is being done already.
  Task<Status> SweepBlock(GlobalAddr start);
  Task<Status> CollectFreed(Block& block);
  Task<void> SweepSome(uint32_t blocks);
  void RemoveBlock(Block& block);

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  AllocatorMetrics metrics_;
  std::vector<std::unique_ptr<Block>> blocks_;  // unordered; swept round robin
  std::vector<uint32_t> block_position_;        // by region * blocks + block: 1 + index
  std::array<std::vector<Block*>, SizeClass::kCount> partial_;  // blocks with free objects
  std::vector<GlobalAddr> wholly_free_;  // candidates to return; checked when used
  std::deque<Retired> retired_;          // in order of epoch
  std::vector<ForeignFree> foreign_;
  uint32_t retired_since_tick_ = 0;
  uint64_t retired_bytes_since_tick_ = 0;
  uint32_t next_grant_node_ = 0;
  uint32_t next_sweep_ = 0;
  uint32_t gathering_ = 0;  // sweeps and returns under way, which may bring memory
  bool maintaining_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
