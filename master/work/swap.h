// work/swap
#ifndef ONETRIP_MASTER_WORK_SWAP_H_
#define ONETRIP_MASTER_WORK_SWAP_H_

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] bool MaySwap(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_SWAP_H_
