// Holds: agents stand still while what cannot be done beside operations is done.
#ifndef ONETRIP_MASTER_HOLDS_H_
#define ONETRIP_MASTER_HOLDS_H_

#include "master/state.h"

namespace onetrip::master {

// Who keeps a hold from starting or ending; empty: nobody. Agents that could do harm only on the
// nodes `leave` do not.
[[nodiscard]] std::string WhoIsAway(const ClusterState& state, const std::vector<NodeId>& leave);
[[nodiscard]] std::string WhoDoesNotHold(const ClusterState& state, const Hold& hold);
void TryStartHold(ClusterState& state, Effects& effects, uint64_t now_us);
[[nodiscard]] HoldForViewMessage HoldMessage(const ClusterState& state);
void SettleHold(ClusterState& state, Effects& effects, uint64_t now_us);
// Does what the hold was for, in the next view.
void CommitRepaired(ClusterState& state, Effects& effects, uint64_t now_us);
void EndHold(ClusterState& state, Effects& effects, uint64_t now_us, const std::string& why);
// Until as long as it says after what all stood still for, in `hold`, nothing of its kind begins.
void PauseCopies(ClusterState& state, const Hold& hold, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_HOLDS_H_
