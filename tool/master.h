// `onetrip master`: copies of the master's state, and a state made anew.
#ifndef ONETRIP_TOOL_MASTER_H_
#define ONETRIP_TOOL_MASTER_H_

#include <string>
#include <vector>

#include "client_core/base/status.h"

namespace onetrip {

struct BackupOptions {
  std::string dir = "onetrip-cluster";
  std::string master;  // HOST:PORT; empty: of the cluster in `dir`
  std::string secret_file;
  std::string file;
};

// Asks the running master for a copy of its master.db and puts it at `file`, mode 0600: all of it,
// or the file stays as it was.
Status BackUpMaster(const BackupOptions& options, std::string* reason);

// Becomes `onetrip-master rebuild` with these arguments; returns only on failure.
Status RebuildMaster(const std::vector<std::string>& arguments, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_MASTER_H_
