// The programs of a local cluster, and what they are told.
#ifndef ONETRIP_TOOL_PROGRAMS_H_
#define ONETRIP_TOOL_PROGRAMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tool/cluster_dir.h"

namespace onetrip {

// The other programs lie beside this one.
std::string ProgramPath(const std::string& name);

// How a memory node of the cluster is started, the first of them being number 0.
std::vector<std::string> MemnodeArgv(const ClusterDir& dir, const ClusterRecord& record,
                                     size_t number);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_PROGRAMS_H_
