// Databases begin anew, with fresh keyspaces.
#ifndef ONETRIP_MASTER_WORK_FLUSH_H_
#define ONETRIP_MASTER_WORK_FLUSH_H_

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& FlushWork();

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_FLUSH_H_
