// PoolCheck: walks everything that is named in the pool of a cluster that is quiet, on every
// replica, and counts: what `onetrip check` shows.
//
// The index must be alike on its replicas; an entry must be where its key belongs, and no key may
// have two; a record, a register's value, every extent and every page must be intact; and what is
// named must lie in a block that is granted, open ones included, and be named once. What a client,
// an expiry, a sweep or a repair changes meanwhile may be told as wrong: look again when nothing
// happens.
#ifndef ONETRIP_CLIENT_CORE_KV_POOL_CHECK_H_
#define ONETRIP_CLIENT_CORE_KV_POOL_CHECK_H_

#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"
#include "client_core/memory/orphan_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"
#include "client_core/tree/page.h"

namespace onetrip {

struct PoolCounts {
  uint64_t subtables = 0;
  uint64_t records = 0;    // keys of this form, of keyspaces that a flush has yet to sweep, too
  uint64_t registers = 0;  // ... and of this one
  uint64_t extents = 0;
  uint64_t pages = 0;        // in collections' trees
  uint64_t owned_bytes = 0;  // blocks that workers have, per replica
  uint64_t named_bytes = 0;  // objects there that something names
  uint64_t unfinished = 0;   // steps of splits and inserts that a worker has yet to end
  // What is wrong.
  uint64_t differing = 0;             // words of the index that differ between replicas
  uint64_t misplaced = 0;             // entries and groups where they do not belong
  uint64_t duplicates = 0;            // keys with two entries
  uint64_t damaged = 0;               // objects that are not intact on some replica
  uint64_t unowned = 0;               // names of memory that no worker owns
  uint64_t named_twice = 0;           // objects that two name
  std::vector<std::string> examples;  // a few of these, a line each

  [[nodiscard]] uint64_t wrong() const {
    return differing + misplaced + duplicates + damaged + unowned + named_twice;
  }
  // A line for each of the above, "name:value".
  [[nodiscard]] std::string ToText() const;
};

// On the worker's thread; clients have their turns between groups.
class PoolCheck {
 public:
  PoolCheck(WorkerContext& context, Reclaimer& reclaimer, PoolCounts* counts)
      : context_(context), reclaimer_(reclaimer), blocks_(context), counts_(*counts) {}

  // Not ok: a node did not answer, or the map changed; nothing is to be learnt from the counts.
  Task<Status> Run();

 private:
  // The images that were read from the replicas that lived then; the view may have others by now.
  struct Images {
    std::array<const std::byte*, kMaxReplicas> at{};
    int count = 0;
    const std::byte* operator[](int replica) const { return at[replica]; }
  };

  Task<Status> NameRings(Operation& operation);
  Task<Status> CheckDirectory(std::vector<std::pair<uint32_t, DirectoryWord>>* subtables);
  Task<Status> CheckSubtable(uint32_t entry, DirectoryWord directory);
  Task<Status> CheckEntry(Operation& operation, uint32_t entry, uint32_t depth, uint32_t group,
                          SlotWord slot);
  void CheckRecord(SlotWord slot, const Images& images, ExtentList* list, TreeRoot* tree,
                   uint64_t* version);
  Task<Status> CheckExtents(Operation& operation, ExtentList list, uint64_t version);
  Task<Status> CheckPages(Operation& operation, const TreeRoot& tree);
  Task<Status> CheckRegister(Operation& operation, SlotWord slot, Images images);
  Task<Status> NameKept(Operation& operation, SlotWord slot, RegisterHeader header,
                        std::vector<MetaWord> words);
  // Reads `bytes` of every live replica; good as long as *holder.
  Task<Status> ReadAll(Operation& operation, GlobalAddr at, uint32_t bytes, Images* images,
                       RoundTripPtr* holder);
  // Blocks may have been granted since the check began.
  Task<Status> CheckUnowned(Operation& operation);
  // Something names the object there.
  void Name(GlobalAddr addr, bool once);
  void Wrong(uint64_t* count, std::string what, GlobalAddr at);

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  OrphanBlocks blocks_;
  PoolCounts& counts_;
  std::vector<GlobalAddr> unowned_;        // names of memory that had no owner when the check began
  absl::flat_hash_set<std::string> keys_;  // the keys of a subtable, with their keyspaces
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_POOL_CHECK_H_
