// Judges a refusal by whoever answers at the master's address: what it means to a process.
//
// Anybody may sit at that address for a while: a master that was started with another secret, on an
// empty data directory or on an old copy of one, or no master at all. A process that never was a
// member ends, with the reason, for its operator to mend. A member holds memory or serves clients,
// and ends for one reason only: its own cluster's master, which has proved itself and knows all
// that the member knows, has taken it for dead. A memory node does not even end then: its memory
// may be the last copy there is. Whoever does not end goes on trying. Pure.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_REFUSAL_H_
#define ONETRIP_CLIENT_CORE_CONTROL_REFUSAL_H_

#include <cstdint>

#include "client_core/base/planted_bug.h"

namespace onetrip {

struct RefusalFacts {
  bool was_member = false;   // the process was welcomed before
  bool is_node = false;      // it is a memory node
  bool is_proved = false;    // whoever refuses knows the cluster's secret, which may be none
  bool is_cluster = false;   // ... and is a master of the cluster that the process is a member of
  bool is_older = false;     // ... but its newest view is older than the process's
  bool is_expelled = false;  // it says that the process was taken for dead
  bool may_retry = false;    // it says that trying again can help
};

// True if the process gives up. Otherwise it goes on as it is, and tries again.
inline bool EndsProcess(const RefusalFacts& facts) {
  if (!facts.was_member || Planted(Bug::kRefusalBelieved)) return !facts.may_retry;
  return facts.is_expelled && facts.is_proved && facts.is_cluster && !facts.is_older &&
         !facts.is_node;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_REFUSAL_H_
