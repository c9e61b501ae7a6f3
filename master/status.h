// Shows people the cluster's state.
#ifndef ONETRIP_MASTER_STATUS_H_
#define ONETRIP_MASTER_STATUS_H_

#include "master/state.h"

namespace onetrip::master {

// One line: what keeps the cluster from going on; empty: nothing does.
[[nodiscard]] std::string WaitingFor(const ClusterState& state);
// The reasons that keep nodes with damaged memory from being put out, and which; empty: there are
// none.
[[nodiscard]] std::string WhatDamagedWaitFor(const ClusterState& state);
// For people; the fields that only the process knows are left alone.
[[nodiscard]] StatusReply MakeStatus(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_STATUS_H_
