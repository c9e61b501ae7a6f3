// Call accounting: where a call shows up once it has run: INFO's counters and times, SLOWLOG,
// LATENCY and MONITOR.
//
// Thread rule: the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_CALL_ACCOUNTING_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_CALL_ACCOUNTING_H_

#include <cstdint>
#include <string>

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// The outcome of a call, for those that are accounted for later: inside EXEC.
struct CallEnd {
  uint64_t took_ns = 0;    // 0: the call was not timed.
  std::string error_word;  // Empty: it went well.
};

// Before the handler runs: notes the errors so far, and the time if this call is to be timed.
// REQUIRES: context.command is set.
void BeginAccounting(CommandContext& context);

// The outcome of a call that has run since BeginAccounting().
CallEnd EndOf(const CommandContext& context);

// Accounts for a call that has ended, or for one that ended before with `end`. Not for a call that
// EXEC ran in vain.
void EndAccounting(CommandContext& context);
void AccountFor(CommandContext& context, const CallEnd& end);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_CALL_ACCOUNTING_H_
