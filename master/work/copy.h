// A region is copied to a replica that lacks it.
#ifndef ONETRIP_MASTER_WORK_COPY_H_
#define ONETRIP_MASTER_WORK_COPY_H_

#include <optional>

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& CopyWork();

// The next copy, whether or not its time has come.
[[nodiscard]] std::optional<Hold> DueCopy(const ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_COPY_H_
