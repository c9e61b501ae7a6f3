// AllocatorMetrics: where one worker's share of the pool is.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_

#include <array>
#include <cstdint>

#include "client_core/base/metrics.h"
#include "client_core/layout/size_class.h"

namespace onetrip {

// A count of bytes for each size class. Add and Sub: the owning thread only.
class BytesOfClasses {
 public:
  void Add(SizeClass size_class, uint64_t bytes) { counts_[size_class.index()].Add(bytes); }
  void Sub(SizeClass size_class, uint64_t bytes) { counts_[size_class.index()].Sub(bytes); }
  [[nodiscard]] uint64_t ValueOf(SizeClass size_class) const {
    return counts_[size_class.index()].Value();
  }
  // The sum over all classes.
  [[nodiscard]] uint64_t Value() const {
    uint64_t bytes = 0;
    for (const Counter& count : counts_) bytes += count.Value();
    return bytes;
  }

 private:
  std::array<Counter, SizeClass::kCount> counts_;
};

// Where this worker's bytes are, per replica; any thread may read. owned = live + free + block
// headers and what no object of the class fits into.
struct AllocatorMetrics {
  Counter owned_bytes;        // whole blocks granted to this worker
  Counter live_bytes;         // objects handed out and not yet back, by class size
  BytesOfClasses free_bytes;  // objects ready to be handed out
  Counter retired_bytes;  // unlinked by this worker, whoever owns them, and waiting for their epoch
  Counter blocks_granted;  // since the start
  Counter blocks_returned;
  Counter blocks_opened;    // given to whoever needs them, partly used
  Counter blocks_acquired;  // among blocks_granted: that were open
  Counter objects_found;    // that nothing named and no worker gave back
  Counter exhausted;        // allocations that ended with out of memory
  Counter exhausted_for;    // bytes of the object that the last of them was for
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_METRICS_H_
