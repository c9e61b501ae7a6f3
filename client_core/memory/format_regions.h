// FormatRegions: makes regions of room that is not used yet (PROTOCOLS, "Regions that are added").
#ifndef ONETRIP_CLIENT_CORE_MEMORY_FORMAT_REGIONS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_FORMAT_REGIONS_H_

#include <cstdint>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

// Writes the headers of the regions of `view` from `first` on to all places that the view has them
// in, with block tables in which all is free. What else lies there stays: a block is zeroed when it
// is granted. Not ok: some may lack theirs. kInvalidArgument, and nothing is written: there are no
// such regions, or a replica of one is missing. REQUIRES: the view in force has nothing in those
// places, and no worker touches them meanwhile; `fabric` and `view` outlive the call.
Task<Status> FormatRegions(Fabric& fabric, const View& view, uint32_t first);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_FORMAT_REGIONS_H_
