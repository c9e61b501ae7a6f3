// The kinds of work that agents hold for, and their order.
#ifndef ONETRIP_MASTER_WORK_WORK_TABLE_H_
#define ONETRIP_MASTER_WORK_WORK_TABLE_H_

#include <cstdint>
#include <optional>

#include "master/work/work_kind.h"

namespace onetrip::master {

[[nodiscard]] const WorkKind& KindOf(Work work);
// The quiesce that is due before all others; nothing: none is.
[[nodiscard]] std::optional<Hold> FirstDue(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_WORK_TABLE_H_
