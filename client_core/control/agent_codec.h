// Messages of an agent's session <-> control.proto. Pure; any thread. Private to control/: a .cc
// file that uses it includes generated code.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_AGENT_CODEC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_AGENT_CODEC_H_

#include <string>

#include "client_core/cluster/agent_session.h"
#include "client_core/cluster/messages.h"

namespace onetrip {

namespace control {
class FromMember;
class HoldForView;
class Reach;
class Repair;
}  // namespace control

void EncodeAgentMessage(const AgentMessage& message, control::FromMember* out);

HoldForViewMessage DecodeHold(const control::HoldForView& message);
ReachMessage DecodeReach(const control::Reach& message);
// If its view makes no sense the order has none, and *reason says why in one line.
RepairMessage DecodeRepair(const control::Repair& message, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_AGENT_CODEC_H_
