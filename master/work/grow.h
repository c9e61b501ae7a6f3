// Regions are added where memory nodes have room (docs/MASTER.md, "More memory").
#ifndef ONETRIP_MASTER_WORK_GROW_H_
#define ONETRIP_MASTER_WORK_GROW_H_

#include <optional>

#include "master/placement.h"
#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& GrowWork();

// Those that there is room for as it is, whether or not their time has come.
[[nodiscard]] std::optional<Hold> NextGrowth(MovePlanner* planner);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_GROW_H_
