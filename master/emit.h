// Puts what the master says into the effects of an event.
#ifndef ONETRIP_MASTER_EMIT_H_
#define ONETRIP_MASTER_EMIT_H_

#include "master/state.h"

namespace onetrip::master {

// To one stream; messages of an event go out in the order in which they were put here.
void Send(Effects& effects, StreamId stream, MasterMessage message);
// The answer to `request`, without a body.
void Reply(Effects& effects, StreamId stream, uint64_t request, StatusCode code,
           std::string reason = {});
// Ends the stream after what was sent to it: the state forgets it at once. `reason` is for the
// process; empty: all is well.
void Close(ClusterState& state, Effects& effects, StreamId stream, std::string reason);
// One line of the master's log.
void Log(Effects& effects, LogLevel level, std::string text);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_EMIT_H_
