// `onetrip check`: has an agent walk the whole pool, and tells what is named there and what is
// wrong.
#ifndef ONETRIP_TOOL_CHECK_H_
#define ONETRIP_TOOL_CHECK_H_

#include <string>

#include "client_core/base/status.h"

namespace onetrip {

struct CheckOptions {
  std::string dir = "onetrip-cluster";
  std::string master;  // HOST:PORT; empty: of the cluster in `dir`
  std::string secret_file;
  std::string password;  // the agents'; may be empty
};

// Prints the counts, and how many bytes live, are free, are retired, and are lost: in use, though
// nothing names them. Those come back some seconds after a death. Whether nothing is wrong. Not ok:
// nothing could be counted, and *reason says why. The cluster should be quiet: what changes
// meanwhile may be told as wrong.
Result<bool> CheckPool(const CheckOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_CHECK_H_
