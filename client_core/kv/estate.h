// KvImpl::Estate: blocks, and what of them is named, for whoever frees the rest. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_ESTATE_H_
#define ONETRIP_CLIENT_CORE_KV_ESTATE_H_

#include <absl/container/flat_hash_map.h>

#include <vector>

#include "client_core/kv/kv_impl.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {

struct KvImpl::Estate {
  Estate(WorkerContext& context, bool of_the_dead_in)
      : blocks(context), of_the_dead(of_the_dead_in) {}
  OrphanBlocks blocks;
  // Their owners are gone: nobody goes on with what they have begun.
  const bool of_the_dead;
  absl::flat_hash_map<uint64_t, std::vector<NamedBuffer>> buffers;  // by block
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_ESTATE_H_
