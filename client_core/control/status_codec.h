// ClusterStatus in control.proto -> ClusterStatusInfo. Pure; any thread. Only for .cc files of the
// control plane: its message is generated code.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_STATUS_CODEC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_STATUS_CODEC_H_

#include "client_core/control/cluster_status.h"

namespace onetrip {

namespace control {
class ClusterStatus;
}  // namespace control

ClusterStatusInfo DecodeClusterStatus(const control::ClusterStatus& message);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_STATUS_CODEC_H_
