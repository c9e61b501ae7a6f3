// StaleLocks: makes free objects fit to be buffers. No timestamp lock may find a leftover in the
// lock word of a buffer, so the words of memory that may have been something else are zeroed on all
// replicas before its first use as a buffer (PROTOCOLS, "Buffers", "Open blocks").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_STALE_LOCKS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_STALE_LOCKS_H_

#include <cstdint>

#include "client_core/coro/task.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class StaleLocks {
 public:
  // The three outlive it.
  StaleLocks(WorkerContext& context, AllocatorMetrics& metrics, OwnBlocks& blocks)
      : context_(context), metrics_(metrics), blocks_(blocks) {}

  // Zeroes the lock words of OwnBlocks::to_clear(), and lists each object once that is done. A
  // failure leaves them there for another time.
  Task<void> Clear();
  // A block of objects becomes one of buffers for `want`; false: there is none with anything free.
  Task<bool> MakeBuffers(OwnBlocks::Want want);
  // True while Clear() runs, which may bring memory.
  [[nodiscard]] bool is_clearing() const { return clearing_ > 0; }

 private:
  // Takes all that is free in the block off its list; it comes back when its lock words are zero.
  void BeginClearing(OwnBlock& block);

  WorkerContext& context_;
  AllocatorMetrics& metrics_;
  OwnBlocks& blocks_;
  uint32_t clearing_ = 0;  // calls of Clear() under way
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_STALE_LOCKS_H_
