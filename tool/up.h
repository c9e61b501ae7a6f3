// `onetrip up`, `onetrip down` and `onetrip restart`: a whole cluster on this host, as processes.
#ifndef ONETRIP_TOOL_UP_H_
#define ONETRIP_TOOL_UP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client_core/base/status.h"

namespace onetrip {

// Options that are not given are as the directory remembers them, or else as said here.
struct UpOptions {
  std::string dir = "onetrip-cluster";
  std::optional<uint16_t> memnodes;   // 3
  std::optional<uint16_t> agents;     // 2
  std::optional<uint16_t> replicas;   // three, or as many as there are memory nodes
  std::optional<std::string> fabric;  // "shm", "tcp", "mixed" or "verbs"; shm
  std::optional<std::string> device;  // the RDMA one, for verbs; the only one there is
  std::optional<int16_t> gid_index;   // its port's GID; as onetrip-agent takes it
  std::optional<uint16_t> port;       // the first agent's, the others follow; 7000
  std::optional<std::string> bind;    // 127.0.0.1
  std::optional<std::string> memory;  // each memory node's, as onetrip-memnode takes it; 1GiB
  std::optional<std::string> engine;  // the agents'; their default
  std::optional<uint64_t> threads;    // each agent's; 1
  bool persistent = false;
  uint64_t timeout_s = 30;
};

// Starts master, memory nodes and agents, or those of a cluster that do not run; waits until every
// agent answers PING, and prints how to use and stop them. When anything fails, what this call has
// started is ended (beside a cluster that runs: but for what is ready), every file stays, and
// *reason says in some lines which process failed and what it said. kInvalidArgument: the options
// are not those of the cluster in the directory.
Status Up(const UpOptions& options, std::string* reason);

struct DownOptions {
  std::string dir = "onetrip-cluster";
  uint64_t grace_ms = 10'000;  // for all agents, all memory nodes, the master to end in order
};

// Ends agents, then memory nodes, then the master, and removes what `up` made; of a persistent
// cluster only the processes go. Fails if a process could not be ended.
Status Down(const DownOptions& options, std::string* reason);

struct RestartOptions {
  std::string dir = "onetrip-cluster";
  std::string name;    // the process's
  bool force = false;  // also a memory node whose end would cost data
  uint64_t timeout_s = 30;
};

// Ends the process if it runs, and starts it as it was. kInvalidArgument: there is none of that
// name, or it holds what is nowhere else.
Status Restart(const RestartOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_UP_H_
