// RecordsOnly: makes a record of every register, before regions move or are given up
// (RepairKind::kEndRegisters), and of single ones for compaction. Private to kv/; the worker's
// thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_RECORDS_ONLY_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_RECORDS_ONLY_H_

#include <cstdint>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/chores/leave.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/record.h"
#include "client_core/kv/forms/register.h"

namespace onetrip {

class RecordsOnly {
 public:
  RecordsOnly(KvCore& core, Records& records, RegisterForm& registers, RegisterEnds& ends,
              IndexWalker& walker, Leaver& leaver)
      : core_(core),
        records_(records),
        registers_(registers),
        ends_(ends),
        walker_(walker),
        leaver_(leaver) {}

  // A walk over the index; what lies where regions leave is seen to, too. kOutOfMemory: some are
  // left for want of memory.
  Task<Status> EndRegisters(RepairOrder order);
  // `room`: as in RegisterEnds::ReserveInPlaceOf(). `wait_ms`: for memory that comes back.
  Task<Status> MakeRecord(Quiesce::InFlightGuard& in_flight, const ListedRegister& listed,
                          RecordRoom room, uint64_t wait_ms);

 private:
  Task<Status> FindOpenBlocks(RegistersLeft* left);
  Task<void> EndGroup(Subtable table, uint32_t group, RegistersLeft* left, Status* failure);
  // Without the pins, and away from the slots.
  Task<Status> AwaitRetired(RegisterOperation& operation, uint64_t deadline_ns);
  // RegisterEnds::ReserveInPlaceOf() for both records that follow a register: see MakeRecord.
  Task<Status> ReserveToEnd(SlotWord word, const IndexKey& key, const CachedRegister& entry,
                            const ReadResult& current, RecordRoom room, Draft* thawed,
                            Draft* restated);

  KvCore& core_;
  Records& records_;
  RegisterForm& registers_;
  RegisterEnds& ends_;
  IndexWalker& walker_;
  Leaver& leaver_;
  uint32_t asking_for_second_ = 0;  // ReserveToEnd
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_RECORDS_ONLY_H_
