// NamedMemory: what of some blocks the index, records, roots and registers name
// (memory/orphan_blocks.h). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_

#include <cstdint>

#include "client_core/kv/chores/estate.h"
#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/core/core.h"

namespace onetrip {

class NamedMemory {
 public:
  NamedMemory(KvCore& core, IndexWalker& walker) : core_(core), walker_(walker) {}

  // Names all that is named in the estate's blocks, under `view`.
  Task<Status> LookAtNames(Estate& estate, const View& view);
  // Until all that was unlinked by now is free, or on the way to the bitmaps of its blocks, and
  // all workers have let go of buffers in blocks of others.
  Task<Status> AwaitUnlinked();

 private:
  Task<void> NameGroup(Estate& estate, const View& view, Subtable table, uint32_t group,
                       Status* failure);
  Task<Status> NameOrigin(Estate& estate, Operation& operation, SlotWord word);
  Task<Status> NameExtents(Estate& estate, Operation& operation, SlotWord root);
  Task<Status> NameBuffers(Estate& estate, Operation& operation, SlotWord word);
  Task<Status> NameBuffer(Estate& estate, Operation& operation, const NamedBuffer& named);

  KvCore& core_;
  IndexWalker& walker_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_NAMED_MEMORY_H_
