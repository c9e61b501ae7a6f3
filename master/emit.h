// Puts what the master says into the effects of an event.
#ifndef ONETRIP_MASTER_EMIT_H_
#define ONETRIP_MASTER_EMIT_H_

#include "master/state.h"

namespace onetrip::master {

void Send(Effects& effects, StreamId stream, MasterMessage message);
void Reply(Effects& effects, StreamId stream, uint64_t request, StatusCode code,
           std::string reason = {});
void Close(ClusterState& state, Effects& effects, StreamId stream, std::string reason);
void Log(Effects& effects, LogLevel level, std::string text);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_EMIT_H_
