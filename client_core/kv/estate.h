// KvImpl::Estate: blocks, and what of them is named, for whoever frees the rest. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_ESTATE_H_
#define ONETRIP_CLIENT_CORE_KV_ESTATE_H_

#include <absl/container/flat_hash_map.h>

#include <vector>

#include "client_core/kv/kv_impl.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {

// A buffer of somebody who is gone that a register's word names.
struct KvImpl::NamedBuffer {
  RegisterRef ref;
  SizeClass buffer_class;
  OutBuffer buffer;
};

struct KvImpl::Estate {
  Estate(WorkerContext& context, bool is_of_the_dead)
      : blocks(context), of_the_dead(is_of_the_dead) {}
  OrphanBlocks blocks;
  // Their owners are gone: nobody goes on with what they have begun.
  const bool of_the_dead;
  absl::flat_hash_map<uint64_t, std::vector<NamedBuffer>> buffers;  // by block
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_ESTATE_H_
