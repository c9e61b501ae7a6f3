// `onetrip status`: what a cluster is made of and how it does: the master's word on members and
// regions, every agent's INFO, and the processes that a directory expects.
#ifndef ONETRIP_TOOL_STATUS_H_
#define ONETRIP_TOOL_STATUS_H_

#include <cstdint>
#include <string>

#include "client_core/base/status.h"
#include "tool/overview.h"

namespace onetrip {

struct StatusOptions {
  std::string dir = "onetrip-cluster";
  std::string master;  // HOST:PORT; empty: of the cluster in `dir`
  std::string secret_file;
  std::string password;
  bool json = false;
  uint64_t watch_s = 0;  // shows it again every so often until Ctrl-C; 0: once
};

// Prints a table for people, or JSON. A master that does not answer is part of the picture of a
// cluster in a directory; without one there is nothing to show, and *reason says why.
Result<Service> ShowStatus(const StatusOptions& options, std::string* reason);

// Tells for what the cluster in `dir` waits instead of serving; empty: it serves, or it is not
// known.
std::string WhyNotServing(const std::string& dir);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_STATUS_H_
