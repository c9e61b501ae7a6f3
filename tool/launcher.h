// Launcher: starts processes of a local cluster and waits until they serve; knows what it has
// started, so that a failing start ends that and nothing else.
#ifndef ONETRIP_TOOL_LAUNCHER_H_
#define ONETRIP_TOOL_LAUNCHER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/control/cluster_status.h"
#include "tool/cluster_dir.h"
#include "tool/process.h"

namespace onetrip {

class Launcher {
 public:
  // `record` is of `dir`; both outlive the launcher. The deadline is of all that it waits for.
  // Takes SIGINT and SIGTERM: what waits fails then with "interrupted".
  Launcher(const ClusterDir& dir, ClusterRecord& record, uint64_t timeout_s);

  // Starts the process, which is one of the record's and does not run, as its name and number say;
  // its name is set. Saves the record.
  Status Launch(ProcessRecord* process, std::string* reason);
  // Waits for the process's ready line and, of an agent, for its answer to PING. Fails when one
  // that this launcher started ends: whatever ended may be why this one waits.
  Status AwaitReady(ProcessRecord* process, std::string* reason);
  // Waits until the master knows of `memnodes` memory nodes, as long as `process` runs: the master
  // numbers them in the order of their coming.
  Status AwaitJoined(const ProcessRecord& process, size_t memnodes, std::string* reason);
  // Notes the master's numbers of memory nodes in the record, and saves it.
  Status LearnNumbers(std::string* reason);

  // Ends what this launcher has started; `ready_too`: also what is ready. Removes no file.
  void EndStarted(bool ready_too);

 private:
  std::vector<std::string> CommandLine(const ProcessRecord& process) const;
  std::vector<std::string> MasterArgv() const;
  std::vector<std::string> MemnodeArgv(size_t number) const;
  std::vector<std::string> AgentArgv(size_t number) const;
  Result<ClusterStatusInfo> AskMaster(std::string* reason) const;
  void ClaimFiles(const ProcessRecord& process);
  Status Await(const ProcessRecord& process, const char* what, const std::function<bool()>& done,
               std::string* reason);

  const ClusterDir& dir_;
  ClusterRecord& record_;
  const uint64_t timeout_s_;
  const std::chrono::steady_clock::time_point deadline_;
  std::vector<std::string> started_;  // names
  std::vector<std::string> ready_;
};

// The process of that name; null: there is none.
ProcessRecord* FindProcess(ClusterRecord& record, const std::string& name);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_LAUNCHER_H_
