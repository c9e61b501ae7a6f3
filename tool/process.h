// Processes of a local cluster: started apart from the terminal, found again by pid and start time,
// so that a pid that another process has by now is never touched.
#ifndef ONETRIP_TOOL_PROCESS_H_
#define ONETRIP_TOOL_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/status.h"

namespace onetrip {

// What is remembered of a process; all of it goes into the cluster's record.
struct ProcessRecord {
  std::string name;  // "master", "memnode-0", "agent-1"
  pid_t pid = 0;
  uint64_t started = 0;  // clock ticks since boot, as /proc says
  std::string address;   // where it serves, as its ready line says
  std::string log;       // path
};

// Starts `argv[0]` with its output appended to `record->log`, in a session of its own. Fills in pid
// and start time. On failure *reason is one line.
Status StartProcess(const std::vector<std::string>& argv, ProcessRecord* record,
                    std::string* reason);

// Whether it still runs; a zombie does not.
bool IsRunning(const ProcessRecord& record);

// The process's line "... is ready: ADDRESS, ..." once it is in its log, without its program's name
// and version; empty until then.
std::string ReadyLine(const ProcessRecord& record);
// The address in such a line.
std::string AddressOf(const std::string& ready_line);

// What its log ends with, for a message.
std::string LastLines(const std::string& log, int lines);

// Asks it to end and waits; after `grace_ms` ends it by force. *forced says so. False: it is still
// there.
bool EndProcess(const ProcessRecord& record, uint64_t grace_ms, bool* forced);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_PROCESS_H_
