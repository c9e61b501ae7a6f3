// RunRebuild: `onetrip-master rebuild`, from its options to the file.
#ifndef ONETRIP_MASTER_REBUILD_COMMAND_H_
#define ONETRIP_MASTER_REBUILD_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/options.h"
#include "client_core/base/status.h"

namespace onetrip {

struct RebuildOptions {
  std::vector<std::string> files;  // beside images of memory nodes that do not run
  uint64_t wait_s = 30;            // for those who have not answered
  bool force = false;              // go on with what too few memory nodes keep
};

// Takes the options that only a rebuild has out of `arguments`. False: *reason says in one line
// what is wrong.
bool TakeRebuildOptions(std::vector<std::string>* arguments, RebuildOptions* options,
                        std::string* reason);

// Listens where the master would, until all have answered or the time is over, and writes the state
// into a data directory that has none. Blocks; prints what it waits for. On failure nothing was
// written and *reason is one line.
Status RunRebuild(const MasterOptions& master, const RebuildOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_REBUILD_COMMAND_H_
