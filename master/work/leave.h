// work/leave
#ifndef ONETRIP_MASTER_WORK_LEAVE_H_
#define ONETRIP_MASTER_WORK_LEAVE_H_

#include "master/state.h"

namespace onetrip::master {

// The next step on the way, if it is due. REQUIRES: MayMove().
[[nodiscard]] std::optional<Hold> NextLeave(const ClusterState& state);
void CommitLeave(ClusterState& state, Effects& effects, const Hold& hold, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_LEAVE_H_
