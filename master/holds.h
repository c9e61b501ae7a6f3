// Holds: agents stand still while what cannot be done beside operations is done. What it is, is a
// WorkKind (work/work_kind.h); the life of a hold, which is the same for all, is here.
#ifndef ONETRIP_MASTER_HOLDS_H_
#define ONETRIP_MASTER_HOLDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "master/state.h"

namespace onetrip::master {

class WorkKind;

// Starts the hold that is due before all others, if any agent that it would have to wait for is
// there. REQUIRES: there is no hold.
void TryStartHold(ClusterState& state, Effects& effects, uint64_t now_us);
// Does what the agents' answers allow: asks one of them to do the work, commits what it has done,
// or ends the hold. REQUIRES: there is one.
void SettleHold(ClusterState& state, Effects& effects, uint64_t now_us);
// Ends the hold with what it was for, in the next view.
void CommitHeld(ClusterState& state, Effects& effects, uint64_t now_us);
// Ends the hold without. `why` is logged, unless it is empty.
void EndHold(ClusterState& state, Effects& effects, uint64_t now_us, const std::string& why);
// The agent `missing` did not hold in time for `what`: fails the flushes and swaps that wait, and
// ends the hold.
void GiveUpChangesOfKeyspaces(ClusterState& state, Effects& effects, const std::string& what,
                              const std::string& missing, uint64_t now_us);
// Until as long as it says after what all stood still for, in `hold`, nothing of its kind begins.
void PauseCopies(ClusterState& state, const Hold& hold, uint64_t now_us);

// Who keeps a hold from starting or ending; empty: nobody. Agents that could do harm only on the
// nodes `leave` do not.
[[nodiscard]] std::string WhoIsAway(const ClusterState& state, const std::vector<NodeId>& leave);
[[nodiscard]] std::string WhoDoesNotHold(const ClusterState& state, const Hold& hold);
// How agents are told of the hold. REQUIRES: there is one.
[[nodiscard]] HoldForViewMessage HoldMessage(const ClusterState& state);
[[nodiscard]] uint64_t HoldTimeoutMs(const ClusterState& state, const WorkKind& kind);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_HOLDS_H_
