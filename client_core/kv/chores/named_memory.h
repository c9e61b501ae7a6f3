// NamedMemory: what of some blocks the index, records, roots and registers name
// (memory/orphan_blocks.h). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_

#include <cstdint>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/form.h"
#include "client_core/kv/forms/orphan_inventory.h"

namespace onetrip {

class NamedMemory {
 public:
  NamedMemory(KvCore& core, Forms& forms, IndexWalker& walker)
      : core_(core), forms_(forms), walker_(walker) {}

  // Names all that is named in the inventory's blocks, under `view`.
  Task<Status> LookAtNames(OrphanInventory& inventory, const View& view);
  // Until all that was unlinked by now is free, or on the way to the bitmaps of its blocks, and
  // all workers have let go of buffers in blocks of others.
  Task<Status> AwaitUnlinked();

 private:
  Task<void> NameGroup(OrphanInventory& inventory, const View& view, Subtable table, uint32_t group,
                       Status* failure);

  KvCore& core_;
  Forms& forms_;
  IndexWalker& walker_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_
