// OrphanInventory: blocks, and what of them is named, to free the rest. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_ORPHAN_INVENTORY_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_ORPHAN_INVENTORY_H_

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "client_core/kv/core/core.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {

// A buffer of a worker that is gone that a register's word names.
struct NamedBuffer {
  RegisterRef ref;
  SizeClass buffer_class;
  OutBuffer buffer;
};

struct OrphanInventory {
  OrphanInventory(WorkerContext& context, bool is_of_the_dead, const bool* gives_way_in)
      : blocks(context), of_the_dead(is_of_the_dead), gives_way(gives_way_in) {}
  OrphanBlocks blocks;
  // Their owners are gone: no worker goes on with what they have begun.
  const bool of_the_dead;
  // Set while it is looked at: something more urgent waits. Null: nothing is.
  const bool* const gives_way;
  absl::flat_hash_map<uint64_t, std::vector<NamedBuffer>> buffers;  // by block
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_ORPHAN_INVENTORY_H_
