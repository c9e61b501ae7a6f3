// Scrubber: brings the value of every register to all of its replicas, and every sealed one to its
// end, before a region is copied (RepairKind::kScrubRegisters). Private to kv/; the worker's
// thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_SCRUB_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_SCRUB_H_

#include <cstdint>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/register.h"

namespace onetrip {

class Scrubber {
 public:
  Scrubber(KvCore& core, RegisterForm& registers, RegisterEnds& ends, IndexWalker& walker)
      : core_(core), registers_(registers), ends_(ends), walker_(walker) {}

  Task<Status> ScrubRegisters(RepairOrder order);

 private:
  Task<void> ScrubGroup(Subtable table, uint32_t group, Status* failure);
  Task<void> ScrubListed(Quiesce::InFlightGuard in_flight, const ListedRegister& listed,
                         Status* failure);
  Task<Status> ScrubRegister(Quiesce::InFlightGuard& in_flight, IndexKey key);

  KvCore& core_;
  RegisterForm& registers_;
  RegisterEnds& ends_;
  IndexWalker& walker_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_SCRUB_H_
