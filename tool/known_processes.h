// Which member of a cluster is which process of a directory: one row of the status, one name and
// one number for each, whether the master answers or not.
#ifndef ONETRIP_TOOL_KNOWN_PROCESSES_H_
#define ONETRIP_TOOL_KNOWN_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "tool/cluster_dir.h"
#include "tool/overview.h"

namespace onetrip {

struct ProcessQuestions {
  std::string host;  // this one's name: members elsewhere are none of the directory's processes
  std::function<bool(const ProcessRecord&)> is_running;
  // The unix socket that a memory node was told to serve at; empty: not known.
  std::function<std::string(uint64_t pid)> socket_of;
  std::function<std::string(size_t number)> socket;  // the directory's memory node's
};

// Names the members that are processes of the directory, also those that were started again by
// hand; adds a row for each process that is no member: "missing", or "starting" while it runs.
void NameMembers(const ClusterRecord& record, const ProcessQuestions& ask, Overview* overview);

// Without the master's word: a row for each process, "running" or "missing".
void ListProcesses(const ClusterRecord& record, const ProcessQuestions& ask, Overview* overview);

// The system's answers.
ProcessQuestions SystemQuestions(const std::string& dir);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_KNOWN_PROCESSES_H_
