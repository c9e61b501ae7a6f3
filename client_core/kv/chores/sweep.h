// Sweeper: flushes and swaps databases, and removes what a flush has left without a database.
// Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_SWEEP_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_SWEEP_H_

#include <array>
#include <cstdint>
#include <optional>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/form.h"

namespace onetrip {

class Sweeper {
 public:
  Sweeper(KvCore& core, Forms& forms) : core_(core), forms_(forms) {}

  // As Store's.
  Task<Status> Flush(std::optional<uint32_t> database);
  Task<Status> Swap(uint32_t first, uint32_t second);
  // A worker is gone, in order or not: it may not have ended the sweep behind its flush, and what
  // it had begun to write before a flush may have come behind the sweep. Does nothing where no
  // database was ever flushed.
  void SweepBehindOthers();

 private:
  // The result of a pass over the index.
  struct SweepPass {
    uint64_t removed = 0;  // entries, or changed meanwhile
    uint64_t filling = 0;  // groups that are left to a later pass
  };
  // Waits until every operation has ended, on every worker, that may have started under an older
  // view than the one remembered for the sweep.
  Task<void> OutliveOldOperations();
  void SweepAgain();
  Task<void> Sweep();
  Task<Status> SweepOnce(SweepPass* pass);
  Task<Status> SweepSubtable(Subtable table, SweepPass* pass);

  KvCore& core_;
  Forms& forms_;
  bool sweeping_ = false;
  bool sweep_again_ = false;
  // As of when the sweep began.
  std::array<KeyspaceId, kMaxDatabases> sweep_keyspaces_{};
  uint64_t sweep_epoch_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_SWEEP_H_
