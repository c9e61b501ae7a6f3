// NodeUsage, WorkerUsage and PoolUsage <-> their messages in control.proto. Pure; any thread. Only
// for .cc files of the control plane and the master: their messages are generated code.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_USAGE_CODEC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_USAGE_CODEC_H_

#include "client_core/cluster/pool_usage.h"

namespace onetrip {

namespace control {
class Report;
class Usage;
}  // namespace control

void EncodeUsage(const NodeUsage& usage, control::Report* report);
void EncodeUsage(const WorkerUsage& usage, control::Report* report);
void EncodeUsage(const PoolUsage& usage, control::Usage* message);

// Numbers that are too large to be true are cut off.
NodeUsage DecodeNodeUsage(const control::Report& report);
WorkerUsage DecodeWorkerUsage(const control::Report& report);
PoolUsage DecodePoolUsage(const control::Usage& message);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_USAGE_CODEC_H_
