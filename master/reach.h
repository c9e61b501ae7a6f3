// Which agents reach which nodes. A node is in the view before every agent has a channel to it, and
// a record that has a replica there cannot be written without one: so nothing is copied to a node
// before all have said that they reach it, and who says later that it does not must go, or the node
// (reach_verdict.h).
#ifndef ONETRIP_MASTER_REACH_H_
#define ONETRIP_MASTER_REACH_H_

#include "master/reach_verdict.h"
#include "master/state.h"

namespace onetrip::master {

// Asks those who have not been asked.
void AskWhoReaches(ClusterState& state, Effects& effects);
// The agent answers: it reaches the node that it was asked about.
void OnReached(Member& member, const ReachedMessage& message);
// The agents' reports on the node were about a life of it, or a channel, that is over.
void ForgetWhoReaches(ClusterState& state, uint16_t node);
// One line about an agent that does not reach the node, or has not said so; empty: all do.
[[nodiscard]] std::string WhoDoesNotReach(const ClusterState& state, NodeId node);
// True if all can use what is placed there: the nodes are in, and every agent reaches them.
[[nodiscard]] bool AllReach(const ClusterState& state, const std::vector<RegionPlacement>& regions);
// The agent lists all nodes that it does not reach.
void OnUnreached(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                 const UnreachedMessage& message);
// The agents that have a say: those with workers, or all if there are none. Of their reports
// those on nodes that hold something.
[[nodiscard]] std::vector<ReachReport> ReachReports(const ClusterState& state);
// Decides who has to go for what is not reached, and expels agents; nodes are cut_off from then
// on, as long as that is so.
void JudgeWhoIsReached(ClusterState& state, Effects& effects, uint64_t now_us);
// True if an agent says that it does not reach the node.
[[nodiscard]] bool IsUnreached(const ClusterState& state, uint16_t node);
// True if a node that was put out may come in: every agent reaches it again, as far as is known.
[[nodiscard]] bool MayComeIn(const ClusterState& state, uint16_t node, uint64_t now_us);
// The node goes out because agents do not reach it: when it may come back.
void NoteCut(ClusterState& state, uint16_t node, uint64_t now_us);
// One line of who does not reach what; empty: all is reached.
[[nodiscard]] std::string WhatIsUnreached(const ClusterState& state, uint64_t now_us);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_REACH_H_
