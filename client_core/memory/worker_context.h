// WorkerContext: what every layer of one worker shares: executor, fabric, master, view, clock.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_WORKER_CONTEXT_H_
#define ONETRIP_CLIENT_CORE_MEMORY_WORKER_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client_core/base/large_memory.h"
#include "client_core/base/memory_budget.h"
#include "client_core/cluster/cluster_clock.h"
#include "client_core/cluster/master_client.h"
#include "client_core/cluster/quiesce.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/executor.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/record.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/mechanism.h"
#include "client_core/tree/tree.h"

namespace onetrip {

// Bounds of the data path; the option table sets them.
struct DataPathOptions {
  uint32_t wait_polls_max = 64;  // re-reads before a wait for another worker takes to timers
  uint32_t wait_timer_us = 50;   // the first such timer; doubles up to wait_timer_max_us
  uint32_t wait_timer_max_us = 1000;
  uint64_t op_timeout_ms =
      5000;  // an operation that still waits then ends with its outcome unknown
  uint32_t node_loss_retries_max = ~0U;  // how often a step that lost a node is begun again by then
  uint64_t epoch_tick_us = 10'000;       // an idle worker publishes its epoch this often
  uint64_t expiry_rest_us = 100'000;     // between walks for expired records; 0: none
  uint32_t retired_objects_max = 256;    // this number of retired objects makes maintenance due
  // Between two looks for lost memory, while memory is short; only tests look oftener, or always.
  uint64_t account_rest_us = 1'000'000;
  uint32_t accounts_always = 0;
  // Between two rounds of compaction, while free blocks are few.
  uint64_t compaction_rest_us = 200'000;
  uint32_t compacts_always = 0;
  uint64_t memory_wait_ms = 1000;  // how long a full pool may wait for retired memory
  uint64_t location_cache_bytes = 64ULL << 20;
  uint64_t register_cache_entries = 1ULL << 20;  // registers that a worker remembers
  uint64_t resting_registers_max = 1ULL << 22;   // ... and more of which it remembers little
  // A record is written without a search once a worker has replaced this number of its own words in
  // a row: while others write it, too, such a write mostly loses. Only tests do so earlier.
  uint32_t hot_after = 2;
  // Groups that a split moves at the same time: 2 or more; divides their number. Only tests have
  // fewer.
  uint32_t split_groups_at_once = 64;
  uint32_t register_lanes = 1;  // in registers that it creates
  // The age, in ticks, at which a register takes no further write. Only tests make it smaller.
  RegisterTime register_time_end = kRegisterTimeEnd;
  // Values longer than this are kept in extents, each with `extent_bytes` of them. Only tests make
  // them smaller.
  uint32_t record_value_bytes_max = kRecordValueBytesMax;
  uint32_t extent_bytes = kExtentBytesMax;
  TreeLimits tree{};                        // only tests make it smaller
  uint64_t page_cache_bytes = 16ULL << 20;  // in pages of trees that a worker keeps
  uint32_t turn_bytes = kTurnBytes;         // an extent's, that are copied in one turn
  // Registers that a worker retires before it takes memory to tell others of many at a time. Only
  // tests let it wait.
  uint32_t retired_ring_after = 0;
  // Bounds values in extents that are read, the process's; null: without a bound.
  std::shared_ptr<MemoryBudget> large_values = nullptr;
};

// The use that memory is taken for: see Allocator.
enum class MemoryUse : uint8_t { kObject, kBuffer };

// Sees what becomes of objects, for tests that watch memory: see Allocator.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  virtual void Allocated(GlobalAddr addr, SizeClass size_class, MemoryUse use) = 0;
  virtual void Retired(GlobalAddr addr, SizeClass size_class) = 0;
  // No operation can reach it any more; it may be allocated again. The lock word of a buffer, its
  // first, keeps its meaning.
  virtual void Released(GlobalAddr addr, SizeClass size_class, MemoryUse use) = 0;
  // For blocks whose owner is gone, in use or not: no slot or register names the object any more;
  // and: it is as if it had been released, unless it was.
  virtual void Unnamed(GlobalAddr addr) = 0;
  virtual void Reclaimed(GlobalAddr addr, SizeClass size_class) = 0;
  // A block came to a worker: what is not `used` (null: nothing is) is in its list of free objects;
  // one goes back to its node, all free; an object is in its owner's list again after Released().
  virtual void Adopted(GlobalAddr /*block*/, SizeClass /*size_class*/,
                       const std::vector<bool>* /*used*/) {}
  virtual void GivenBack(GlobalAddr /*block*/) {}
  // A block becomes no worker's: what was in its list is on its way to the bitmap.
  virtual void Opened(GlobalAddr /*block*/) {}
  virtual void Listed(GlobalAddr /*addr*/) {}
  // An operation may read what is not released from now until Unpinned(ticket). Tickets are not 0.
  virtual uint64_t Pinned() = 0;
  virtual void Unpinned(uint64_t ticket) = 0;
};

// Single-threaded. What it refers to outlives it.
class WorkerContext {
 public:
  WorkerContext(Executor& executor_in, Fabric& fabric_in, MasterClient& master_in, Quiesce& hold_in,
                Membership membership_in, const DataPathOptions& options_in)
      : executor(executor_in),
        fabric(fabric_in),
        master(master_in),
        quiesce(hold_in),
        membership(membership_in),
        options(options_in),
        clock(executor_in.clock(), master_in.clock_offset_us()),
        view_(master_in.view()),
        view_version_(view_->epoch.value) {}

  // The newest view this worker has heard of. Take it anew after every wait: the reference is good
  // until the end of the executor's turn, however many views come meanwhile.
  [[gnu::always_inline]] const View& view() {
    if (view_version_ != master.view_version()) [[unlikely]]
      TakeNewest();
    return *view_;
  }
  // In a turn of its own, now and then: no coroutine refers to views that were replaced.
  void ForgetFormerViews() { former_views_.clear(); }

  Executor& executor;
  Fabric& fabric;
  MasterClient& master;
  Quiesce& quiesce;  // looked at before an operation starts
  const Membership membership;
  const DataPathOptions options;
  ClusterClock clock;
  MemoryObserver* memory_observer = nullptr;
  MechanismObserver* mechanism_observer = nullptr;

 private:
  // Out of line: every operation asks for the view, and few views are new.
  [[gnu::noinline]] void TakeNewest() {
    former_views_.push_back(std::exchange(view_, master.view()));
    view_version_ = view_->epoch.value;
  }

  std::shared_ptr<const View> view_;
  std::vector<std::shared_ptr<const View>> former_views_;
  uint64_t view_version_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_WORKER_CONTEXT_H_
