// `onetrip status`: what a cluster is made of and how it does: the master's word on members and
// regions, and every agent's INFO.
#ifndef ONETRIP_TOOL_STATUS_H_
#define ONETRIP_TOOL_STATUS_H_

#include <string>

#include "client_core/base/status.h"

namespace onetrip {

struct StatusOptions {
  std::string dir = "onetrip-cluster";
  std::string master;  // HOST:PORT; empty: of the cluster in `dir`
  std::string secret_file;
  std::string password;
  bool json = false;
};

// Prints a table for people, or JSON. A master that does not answer is part of the picture of a
// cluster in a directory; without one there is nothing to show, and *reason says why.
Status ShowStatus(const StatusOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_STATUS_H_
