// The master's messages <-> control.proto. Pure; any thread. What a member sends is checked here
// for form, in the coordinator for sense.
#ifndef ONETRIP_MASTER_MESSAGE_CODEC_H_
#define ONETRIP_MASTER_MESSAGE_CODEC_H_

#include <optional>

#include "master/messages.h"

namespace onetrip {

namespace control {
class FromMaster;
class FromMember;
}  // namespace control

// Nothing: a step of the handshake, or nothing that this version knows.
std::optional<MemberMessage> DecodeMemberMessage(const control::FromMember& message);

void EncodeMasterMessage(const MasterMessage& message, control::FromMaster* out);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MESSAGE_CODEC_H_
