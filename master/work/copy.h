// work/copy
#ifndef ONETRIP_MASTER_WORK_COPY_H_
#define ONETRIP_MASTER_WORK_COPY_H_

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] std::optional<Hold> NextCopy(const ClusterState& state, uint64_t now_us);
// The same, whether or not its time has come.
[[nodiscard]] std::optional<Hold> DueCopy(const ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_COPY_H_
