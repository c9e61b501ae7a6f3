// TakeOver: makes blocks of workers that are gone this worker's (RepairKind::kTakeOverBlocks).
// Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_TAKE_OVER_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_TAKE_OVER_H_

#include "client_core/kv/chores/lost_memory.h"
#include "client_core/kv/chores/named_memory.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/orphan_inventory.h"

namespace onetrip {

class TakeOver {
 public:
  TakeOver(KvCore& core, NamedMemory& names, LostMemory& lost)
      : core_(core), names_(names), lost_(lost) {}

  Task<Status> TakeOverBlocks(RepairOrder order);

 private:
  Task<Status> FindOrphans(OrphanInventory& inventory, const RepairOrder& order);
  Task<Status> TakeOverBlock(OrphanInventory& inventory, const OrphanBlocks::Block& block);

  KvCore& core_;
  NamedMemory& names_;
  LostMemory& lost_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_TAKE_OVER_H_
