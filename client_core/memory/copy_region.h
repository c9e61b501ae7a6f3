// CopyRegion and MoveRegion: bring one region to a memory node that lacks it (FUSEE 5.2; PROTOCOLS,
// "Memory nodes that are lost and come back").
#ifndef ONETRIP_CLIENT_CORE_MEMORY_COPY_REGION_H_
#define ONETRIP_CLIENT_CORE_MEMORY_COPY_REGION_H_

#include <cstdint>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

// Copies what is granted of `region`, and then its header with the block table, from the primary to
// the first missing replica of `view`. What is free there may hold anything. Not ok: the copy is
// not complete. Other coroutines of `executor`, the caller's, go on meanwhile. REQUIRES:
// nothing else touches the region on either node meanwhile; the view has a missing replica of it;
// `executor`, `fabric` and `view` outlive the call.
Task<Status> CopyRegion(Executor& executor, Fabric& fabric, const View& view, uint32_t region);

// The same from the replica of `region` on the node `source`, whatever differs between the
// replicas, to a place at `target` where nothing lies. kInvalidArgument: the view has no live
// replica there.
Task<Status> MoveRegion(Executor& executor, Fabric& fabric, const View& view, uint32_t region,
                        NodeId source, RemoteAddr target);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_COPY_REGION_H_
