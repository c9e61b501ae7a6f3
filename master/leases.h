// Leases: members that renew, that are away for a while, and that leave.
#ifndef ONETRIP_MASTER_LEASES_H_
#define ONETRIP_MASTER_LEASES_H_

#include "master/state.h"

namespace onetrip::master {

// The member was heard of at this time.
void ProlongLease(const ClusterState& state, Member& member, uint64_t now_us);
// A process that says it is this member has a handshake under way, and has not proved it: the next
// tick does not judge the member unless it is two leases late.
//
// Sound, for an agent's safety does not depend on when the master takes it for dead. No agent
// counts its lease and stops by itself (it would have to stop before the master expels it): what it
// may do ends where every memory node has fenced its workers, and the seats are free only then. So
// an end that comes later is as safe, and all that a stranger without the secret gains is that a
// dead member counts as away for at most so long.
void OnHandshake(ClusterState& state, uint64_t member);
// A renewal, which is answered unless it is quiet.
void OnRenew(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
             const RenewMessage& message);
// A member leaves in order; `member` may be gone afterwards.
void OnLeave(ClusterState& state, Effects& effects, Member& member, uint64_t now_us);
// Until when a member whose stream ended may come back.
uint64_t AwayUntil(ClusterState& state, uint64_t now_us);
// The stream of the agent has ended: it has a while to come back.
void AgentAway(ClusterState& state, Effects& effects, Member& member, uint64_t now_us);
// To be called before time or a stream's end is judged: this process may have stood still.
void NoticeStall(ClusterState& state, uint64_t now_us);
// Judges its lease, and its time to come back or to acknowledge.
void OnMemberTick(ClusterState& state, Effects& effects, Member& member, uint64_t now_us);
// Frees the seats of joins whose reply the process can no longer get.
void FreeUnclaimedSeats(ClusterState& state, const Member& member);
// Requests and replies of a stream that is gone.
void DropRequests(ClusterState& state, const Member& member);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_LEASES_H_
