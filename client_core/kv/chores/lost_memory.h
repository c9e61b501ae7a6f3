// LostMemory: frees what is lost in this worker's own blocks (lost_memory.cc). Private to kv/; the
// worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_LOST_MEMORY_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_LOST_MEMORY_H_

#include <cstdint>
#include <utility>

#include "client_core/kv/chores/account_state.h"
#include "client_core/kv/chores/named_memory.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/orphan_inventory.h"

namespace onetrip {

class LostMemory {
 public:
  LostMemory(KvCore& core, NamedMemory& names) : core_(core), names_(names) {}

  // At every tick. `leaving_in_vain`: looks at blocks of regions that are given up are in vain.
  void AccountIfDue(bool leaving_in_vain);
  // A take-over waits here: a walk that only looks for what is lost gives way.
  Task<void> AwaitAccount();
  // Buffers of others are about to be inherited; one at a time. False: they are already.
  bool BeginInheriting();
  void EndInheriting();
  // Regions are given up, or are not any more: what follows looks soon.
  void NoteLeaving() { account_.rests = 1; }
  void NoteMayHaveLost() { account_.may_have_lost = true; }
  // Returns true if there is something of this worker's that only a look finds.
  [[nodiscard]] bool OwesLook() const;

 private:
  void NoteLosses();
  Task<void> AcquireOpenBlocks();
  Task<void> Account();
  Task<Status> FreeLost();
  void TellUnnamed(const OrphanInventory& inventory);
  Task<Status> FreeLostOf(OrphanInventory& inventory, const OrphanBlocks::Block& block);

  KvCore& core_;
  NamedMemory& names_;
  AccountState account_;
  bool inheriting_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_LOST_MEMORY_H_
