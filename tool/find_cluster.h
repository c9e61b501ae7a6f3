// How a command reaches a cluster's master: by its address, or by the directory of `onetrip up`.
#ifndef ONETRIP_TOOL_FIND_CLUSTER_H_
#define ONETRIP_TOOL_FIND_CLUSTER_H_

#include <string>

#include "client_core/base/status.h"
#include "client_core/control/control_options.h"
#include "tool/cluster_dir.h"

namespace onetrip {

// Sets the master's address and the secret of the cluster that the record describes.
Status UseRecord(const ClusterRecord& record, ControlOptions* control, std::string* reason);

// Sets both in *control: of `master` (HOST:PORT) with the secret of `secret_file` (may be empty),
// or, where `master` is empty, of the cluster in `dir`. *record: the directory's description, if
// one was read; may be null.
Status FindCluster(const std::string& dir, const std::string& master,
                   const std::string& secret_file, ControlOptions* control, ClusterRecord* record,
                   std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_FIND_CLUSTER_H_
