// From the next view on agents make records only: registers do not move.
#ifndef ONETRIP_MASTER_WORK_RECORDS_ONLY_H_
#define ONETRIP_MASTER_WORK_RECORDS_ONLY_H_

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& RecordsOnlyWork();

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_RECORDS_ONLY_H_
