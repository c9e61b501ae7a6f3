// What walks over the index remember, between their turns and from one to the next.
#ifndef ONETRIP_CLIENT_CORE_KV_INDEX_WALK_H_
#define ONETRIP_CLIENT_CORE_KV_INDEX_WALK_H_

#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <string>

#include "client_core/base/status.h"
#include "client_core/cluster/repair_order.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/slot.h"
#include "client_core/layout/types.h"

namespace onetrip {

// What a walk that makes records of registers has met.
struct RegistersLeft {
  bool full = false;  // the pool
  bool any = false;   // for want of memory, or of what `failure` says
  Status failure;     // the first other one: what is behind it is not held up by it
  // Registers of this class have waited in vain for memory that comes back.
  std::array<bool, SizeClass::kCount> starved{};
  // Blocks that were open when the walk began.
  absl::flat_hash_set<uint64_t> open;
};

// A key that is to be met, and what its slot said.
struct ListedRegister {
  SlotWord word;
  KeyspaceId keyspace;
  std::string key;
};

// Over every group of the index, from where it has come to.
struct IndexWalk {
  RepairKind kind = RepairKind::kScrubRegisters;
  uint64_t number = 0;  // RepairOrder::walk
  uint32_t next = 0;    // the directory entry to begin with
  uint32_t end = 2;     // how far the directory reaches, as far as is known
  RegistersLeft left{};
  bool in_background = false;  // rests for as long as it works
  bool leaves = false;  // kEndRegisters: registers are done; what lies where regions leave is not
};

// A worker's looks at blocks of regions that are given up.
struct LeavingLooks {
  uint16_t regions = 0;  // View::leaving
  bool under_way = false;
  uint32_t in_vain = 0;  // in a row: no block there has become free
  size_t blocks = 0;     // of this worker's, at the last one
  uint64_t next_ns = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_INDEX_WALK_H_
