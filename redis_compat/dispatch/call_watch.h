// Tells SLOWLOG, LATENCY and MONITOR about calls.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_CALL_WATCH_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_CALL_WATCH_H_

#include <cstdint>
#include <string>

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// True if this call must be timed, beyond the samples that INFO takes: its run time depends on its
// arguments, or SLOWLOG asks for calls so short that only a clock tells.
bool MustBeTimed(const CommandContext& context);

// Enters a call that took `took_ns` where it belongs.
void NoteCallTime(const CommandContext& context, uint64_t took_ns);

// Tells the connections that have said MONITOR.
void ShowToMonitors(const CommandContext& context);

// One call as MONITOR shows it, with its line end.
std::string MonitorLine(const CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_CALL_WATCH_H_
