// Two databases exchange their keyspaces.
#ifndef ONETRIP_MASTER_WORK_SWAP_H_
#define ONETRIP_MASTER_WORK_SWAP_H_

#include "master/work/work_kind.h"

namespace onetrip::master {

const WorkKind& SwapWork();

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_SWAP_H_
