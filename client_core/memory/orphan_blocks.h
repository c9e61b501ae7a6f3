// OrphanBlocks: the blocks of workers that are gone, and what of them is still named; for a worker
// that takes them over (FUSEE 5.3: the blocks of a crashed client are managed anew).
//
// Nothing is allocated in such a block, so what is named there only becomes less: what a look at
// everything that names memory does not find named is free, once no operation uses it any more.
// Memory is named by: the directory, slots, the origins of records, the lanes of registers.
//
// Single-threaded; of one worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ORPHAN_BLOCKS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ORPHAN_BLOCKS_H_

#include <absl/container/btree_map.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/repair_order.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class OrphanBlocks {
 public:
  struct Block {
    GlobalAddr start;
    SizeClass size_class;
    WorkerId owner;
    std::vector<bool> named;  // by object
  };

  explicit OrphanBlocks(WorkerContext& context) : context_(context) {}

  using IsWanted = std::function<bool(BlockEntry granted)>;
  static IsWanted OfTheDead(const LivingWorkers& living);  // which outlives it
  static bool Any(BlockEntry /*granted*/) { return true; }
  static bool Open(BlockEntry granted) { return granted.is_open(); }
  // Reads the block tables of all regions from `first_region` on. One call.
  Task<Status> Find(Operation& operation, IsWanted is_wanted, uint32_t first_region = 0);
  // One more, whosever it is.
  void Add(GlobalAddr start, SizeClass size_class, WorkerId owner);
  // By the address of the first.
  [[nodiscard]] const absl::btree_map<uint64_t, Block>& blocks() const { return blocks_; }

  // The block that the object at `addr` is in; null: it is elsewhere.
  [[nodiscard]] const Block* At(GlobalAddr addr) const;
  // The object at `addr` is named; addresses elsewhere are ignored.
  void Name(GlobalAddr addr);
  // Nothing more is going to be named: tells the memory observer, if there is one.
  void TellUnnamed() const;

 private:
  WorkerContext& context_;
  absl::btree_map<uint64_t, Block> blocks_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ORPHAN_BLOCKS_H_
