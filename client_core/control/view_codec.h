// View <-> its message in control.proto. Pure; any thread. Only for .cc files of the control plane
// and the master: includes generated code.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_VIEW_CODEC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_VIEW_CODEC_H_

#include <cstddef>
#include <string>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"

namespace onetrip {

namespace control {
class NodeAddress;
class View;
}  // namespace control

void EncodeNodeAddress(const NodeAddress& address, control::NodeAddress* message);
// False: no address that an agent could use.
bool DecodeNodeAddress(const control::NodeAddress& message, NodeAddress* address);

void EncodeView(const View& view, control::View* message);
// kCorrupt and *reason in one line: what is no view, such as a region on a node that is not there,
// or one that overlaps another.
Result<View> DecodeView(const control::View& message, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_VIEW_CODEC_H_
