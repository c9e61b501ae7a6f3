// work/move
#ifndef ONETRIP_MASTER_WORK_MOVE_H_
#define ONETRIP_MASTER_WORK_MOVE_H_

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] std::optional<Hold> NextMove(const ClusterState& state, uint64_t now_us);
void CommitMove(ClusterState& state, Effects& effects, const Hold& hold, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_MOVE_H_
