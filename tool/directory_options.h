// The options of `up` beside what a directory remembers: pure, without processes and files.
#ifndef ONETRIP_TOOL_DIRECTORY_OPTIONS_H_
#define ONETRIP_TOOL_DIRECTORY_OPTIONS_H_

#include <string>

#include "client_core/base/status.h"
#include "tool/cluster_dir.h"
#include "tool/up.h"

namespace onetrip {

// A cluster that is not started yet, with processes that have names and numbers only. Options that
// are not given are those of `earlier`, a cluster of this directory that kept no data, or, where
// that is null, the defaults. kInvalidArgument: there can be no such cluster.
Result<ClusterRecord> DescribeCluster(const UpOptions& options, const ClusterRecord* earlier,
                                      std::string* reason);

// Compares the given options with the cluster's. `runs`: some of its processes run. Those that may
// change while none does (agents, ports, fabric, engine) are changed in *record then; *reason names
// the first other one that differs, and what to do.
Status ReconcileOptions(const UpOptions& options, bool runs, ClusterRecord* record,
                        std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_DIRECTORY_OPTIONS_H_
