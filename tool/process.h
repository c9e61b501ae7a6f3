// Processes of a local cluster: started apart from the terminal, found again by pid and start time,
// so that a pid that another process has by now is never touched.
#ifndef ONETRIP_TOOL_PROCESS_H_
#define ONETRIP_TOOL_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/status.h"

namespace onetrip {

// The facts that the tool remembers of a process; all of them go into the cluster's record.
struct ProcessRecord {
  std::string name;              // "master", "memnode-0", "agent-1"
  size_t number = 0;             // in its name
  pid_t pid = 0;                 // 0: not started, or ended by the tool
  uint64_t started = 0;          // clock ticks since boot, as /proc says
  std::string address;           // where it serves, as its ready line says
  std::string log;               // path
  uint64_t log_from = 0;         // where this life's lines begin in it
  std::optional<uint32_t> node;  // the master's number of a memory node, as it was last known
};

// Starts `argv[0]` with its output appended to `record->log`, in a session of its own. Fills in pid
// and start time. On failure *reason is one line.
Status StartProcess(const std::vector<std::string>& argv, ProcessRecord* record,
                    std::string* reason);

// True if the process still runs; a zombie does not, unless other threads of it do.
bool IsRunning(const ProcessRecord& record);

// Waits while the process is ending already, as one that was killed: until then it holds its ports
// and locks. False: it runs on, or is still there after the time.
bool AwaitEnding(const ProcessRecord& record, uint64_t timeout_ms);

// The process's line "... is ready: ADDRESS, ..." once it is in its log, without its program's name
// and version; empty until then.
std::string ReadyLine(const ProcessRecord& record);
// The address in such a line.
std::string AddressOf(const std::string& ready_line);

// The end of its log, for a message.
std::string LastLines(const std::string& log, int lines);

// Asks it to end and waits; after `grace_ms` ends it by force. *forced says so. False: it is still
// there.
bool EndProcess(const ProcessRecord& record, uint64_t grace_ms, bool* forced);

// The same for several at a time, with one grace for all. Appends the names of those that were
// ended by force; returns those that are still there.
std::vector<const ProcessRecord*> EndProcesses(const std::vector<const ProcessRecord*>& processes,
                                               uint64_t grace_ms, std::vector<std::string>* forced);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_PROCESS_H_
