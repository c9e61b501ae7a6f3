// Slots that may be half-done are made alike on their replicas.
#ifndef ONETRIP_MASTER_WORK_RESOLVE_H_
#define ONETRIP_MASTER_WORK_RESOLVE_H_

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& ResolveWork();

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_RESOLVE_H_
