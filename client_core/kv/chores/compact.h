// Compactor: moves what lives in blocks of this worker's own of which little is used (compact.cc).
// Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_COMPACT_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_COMPACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client_core/kv/chores/records_only.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/record.h"

namespace onetrip {

class Compactor {
 public:
  Compactor(KvCore& core, Records& records, RecordsOnly& records_only)
      : core_(core), records_(records), records_only_(records_only) {}

  // At every tick, and whenever the allocator runs short.
  void CompactIfScarce();

 private:
  Task<void> Compact();
  Task<void> AcquireSparseBlocks();
  // Moves the objects at these addresses that are records or registers that can be moved.
  Task<void> MoveObjects(std::vector<GlobalAddr> objects, SizeClass size_class);
  Task<void> MoveObject(GlobalAddr addr, SizeClass size_class);
  // Returns true if the key's slot names `addr`, or did, now that it is moved.
  Task<Result<bool>> MoveKey(Quiesce::InFlightGuard& in_flight, KeyspaceId keyspace,
                             std::string name, GlobalAddr addr);
  Task<Status> MoveRecord(RegisterOperation& operation, const IndexKey& key,
                          const SearchResult& search);
  // Registers of which a buffer lies in a block that is to be emptied.
  Task<void> MoveRegistersOfBuffers();
  Task<void> MoveRegister(RegisterRef ref);
  // Clients of this worker come first, unless they wait for memory.
  Task<void> LetOthersIn(uint64_t worked_since_ns);

  KvCore& core_;
  Records& records_;
  RecordsOnly& records_only_;
  bool compacting_ = false;
  uint64_t compaction_ended_ns_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_COMPACT_H_
