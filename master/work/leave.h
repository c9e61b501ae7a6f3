// Regions are given up (docs/MASTER.md, "Less memory"): they leave, the index leaves them, they are
// cut off.
#ifndef ONETRIP_MASTER_WORK_LEAVE_H_
#define ONETRIP_MASTER_WORK_LEAVE_H_

#include <optional>

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& LeaveWork();
const WorkKind& MoveIndexWork();
const WorkKind& CutWork();

// The next step on the way, if it is due. REQUIRES: MayMove().
[[nodiscard]] std::optional<Hold> NextLeave(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_LEAVE_H_
