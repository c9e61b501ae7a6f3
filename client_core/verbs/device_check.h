// Tries a device before anything rests on it: two queue pairs of this process reach each other over
// its GID, and an atomic changes a word and gives what the word was, in this host's byte order.
#ifndef ONETRIP_CLIENT_CORE_VERBS_DEVICE_CHECK_H_
#define ONETRIP_CLIENT_CORE_VERBS_DEVICE_CHECK_H_

#include <string>

#include "client_core/base/status.h"
#include "client_core/verbs/device.h"

namespace onetrip {

// Blocks for some seconds at most. *reason, if it fails: one line that says what to do.
Status CheckAtomics(VerbsDevice& device, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_DEVICE_CHECK_H_
