// `onetrip up` and `onetrip down`: a whole cluster on this host, as processes.
#ifndef ONETRIP_TOOL_UP_H_
#define ONETRIP_TOOL_UP_H_

#include <cstdint>
#include <string>

#include "client_core/base/status.h"

namespace onetrip {

struct UpOptions {
  std::string dir = "onetrip-cluster";
  uint16_t memnodes = 3;
  uint16_t agents = 2;
  uint16_t replicas = 0;  // 0: three, or as many as there are memory nodes
  // "shm", "tcp", or "mixed": agents take shm and tcp in turn.
  std::string fabric = "shm";
  uint16_t port = 7000;  // of the first agent; the others follow
  std::string bind = "127.0.0.1";
  std::string memory = "1GiB";  // of each memory node, as onetrip-memnode takes it
  std::string engine;           // of the agents; empty: their default
  uint64_t threads = 1;         // of each agent
  bool persistent = false;
  uint64_t timeout_s = 30;
};

// Starts master, memory nodes and agents, waits until every agent answers PING, and prints how to
// use and stop them. When anything fails, nothing is left running, and *reason says in some lines
// which process failed and what it said.
Status Up(const UpOptions& options, std::string* reason);

struct DownOptions {
  std::string dir = "onetrip-cluster";
  uint64_t grace_ms = 10'000;  // for each process to end in order
};

// Ends agents, then memory nodes, then the master, and removes what `up` made; of a persistent
// cluster the data stays. Fails if a process could not be ended.
Status Down(const DownOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_UP_H_
