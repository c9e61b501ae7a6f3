// A replica of a region goes from a living node to another. Names the steps before that, too.
#ifndef ONETRIP_MASTER_WORK_MOVE_H_
#define ONETRIP_MASTER_WORK_MOVE_H_

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& MoveWork();

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_MOVE_H_
