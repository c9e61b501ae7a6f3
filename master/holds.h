// Quiesces: agents stand still while work is done that cannot be done beside operations. The work
// is a WorkKind (work/work_kind.h); the life of a quiesce, which is the same for all, is here.
#ifndef ONETRIP_MASTER_HOLDS_H_
#define ONETRIP_MASTER_HOLDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "master/state.h"

namespace onetrip::master {

class WorkKind;

// Starts the quiesce that is due before all others, if every agent that it would have to wait for
// is there. REQUIRES: there is no quiesce.
void TryStartHold(ClusterState& state, Effects& effects, uint64_t now_us);
// Does what the agents' answers allow: asks one of them to do the work, commits what it has done,
// or ends the quiesce. REQUIRES: there is one.
void SettleHold(ClusterState& state, Effects& effects, uint64_t now_us);
// Ends the quiesce with its change, in the next view.
void CommitHeld(ClusterState& state, Effects& effects, uint64_t now_us);
// Ends the quiesce without its change. `why` is logged, unless it is empty.
void EndHold(ClusterState& state, Effects& effects, uint64_t now_us, const std::string& why);
// The agent `missing` did not quiesce in time for `what`: fails the flushes and swaps that wait,
// and ends the quiesce.
void GiveUpChangesOfKeyspaces(ClusterState& state, Effects& effects, const std::string& what,
                              const std::string& missing, uint64_t now_us);
// Until as long as it says after what all stood still for, in `hold`, nothing of its kind begins.
void PauseCopies(ClusterState& state, const Hold& hold, uint64_t now_us);

// The agent that keeps a quiesce from starting or ending; empty: none does. Agents that could do
// harm only on the nodes `leave` do not.
[[nodiscard]] std::string WhoIsAway(const ClusterState& state, const std::vector<NodeId>& leave);
[[nodiscard]] std::string WhoDoesNotHold(const ClusterState& state, const Hold& hold);
// The message that tells agents of the quiesce. REQUIRES: there is one.
[[nodiscard]] HoldForViewMessage HoldMessage(const ClusterState& state);
[[nodiscard]] uint64_t HoldTimeoutMs(const ClusterState& state, const WorkKind& kind);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_HOLDS_H_
