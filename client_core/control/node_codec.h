// Messages of a memory node's session <-> control.proto. Pure; any thread. Private to control/: a
// .cc file that uses it includes generated code.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_NODE_CODEC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_NODE_CODEC_H_

#include <string>

#include "client_core/base/status.h"
#include "client_core/cluster/messages.h"
#include "client_core/cluster/node_session.h"

namespace onetrip {

namespace control {
class Fence;
class FromMember;
class JoinNode;
class NodeJoined;
}  // namespace control

void EncodeJoinNode(const JoinNodeRequest& request, control::JoinNode* out);
void EncodeFenced(const FencedMessage& message, control::FromMember* out);

// kCorrupt: the place makes no sense; *reason says why in one line.
Result<NodePlace> DecodePlace(const control::NodeJoined& message, std::string* reason);
FenceMessage DecodeFence(const control::Fence& message);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_NODE_CODEC_H_
