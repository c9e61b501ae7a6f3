// ExpiryWalk: removes records whose time has passed and that no client meets (expiry.cc). Private
// to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_EXPIRY_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_EXPIRY_H_

#include <cstdint>
#include <vector>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/record.h"

namespace onetrip {

class ExpiryWalk {
 public:
  ExpiryWalk(KvCore& core, Records& records, IndexWalker& walker)
      : core_(core), records_(records), walker_(walker) {}

  // At every tick.
  void WalkForExpiredIfDue();
  // As Store's.
  void SetActiveExpiry(bool active) { active_expiry_ = active; }

 private:
  struct ExpiredRecord;
  struct ExpiryLook;
  Task<void> WalkForExpired();
  Task<void> LookAtNextGroups(ExpiryLook* look);
  Task<void> FindNextSubtable(ExpiryLook* look);
  Task<void> RemoveExpiredOfGroup(Subtable table, uint32_t group, ExpiryLook* look);
  Task<void> LetClientsIn(ExpiryLook* look);
  Task<Status> ListExpired(Operation& operation, Subtable table, uint32_t group, ExpiryLook* look,
                           std::vector<ExpiredRecord>* expired);

  KvCore& core_;
  Records& records_;
  IndexWalker& walker_;
  // Where and when the walk goes on, and how far the directory reaches.
  uint32_t expiry_entry_ = 0;
  uint32_t expiry_group_ = 0;
  uint32_t expiry_end_ = 1;
  uint64_t next_expiry_walk_ns_ = 0;
  bool expiring_ = false;
  bool active_expiry_ = true;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_EXPIRY_H_
