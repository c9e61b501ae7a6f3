// Restore: the state that a master begins its life with, of what is stored.
#ifndef ONETRIP_MASTER_RESTORE_H_
#define ONETRIP_MASTER_RESTORE_H_

#include <cstdint>
#include <string>

#include "client_core/base/status.h"
#include "master/state.h"

namespace onetrip::master {

// The facts that a life is told and that no store knows: see Coordinator::Create().
struct LifeStart {
  uint64_t cluster = 0;  // the name of the cluster, if it is new
  uint64_t life = 0;
  uint64_t now_us = 0;   // steady time
  uint64_t unix_us = 0;  // the wall clock's
};

// Fills `state` and the effects of the start; both are fresh. Errors: those of
// Coordinator::Create().
Status Restore(const CoordinatorOptions& options, const DurableState& durable,
               const LifeStart& start, ClusterState* state, Effects* effects, std::string* reason);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_RESTORE_H_
