// Agents that are expelled, and the fences that keep them from writing.
#ifndef ONETRIP_MASTER_FENCING_H_
#define ONETRIP_MASTER_FENCING_H_

#include "master/state.h"

namespace onetrip::master {

// The agent is no member any more; it holds no seat.
void ForgetAgent(ClusterState& state, Effects& effects, uint64_t member);
// Takes the agent for dead: its stream ends, and memory nodes are asked to refuse its workers;
// without workers it is forgotten at once, and `member` with it.
void Expel(ClusterState& state, Effects& effects, Member& member, const std::string& why);
// Asks the node to refuse those expelled workers that it does not refuse yet.
void SendFences(ClusterState& state, Effects& effects, uint16_t node);
// A memory node has answered a fence.
void OnFenced(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const FencedMessage& message);
// A worker whose seat is free need not be remembered when every node of the view has fenced it.
void ForgetFormer(ClusterState& state, Effects& effects, WorkerId worker);
// Agents that can write nowhere any more: their seats will be free in the next view.
void CheckFenced(ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_FENCING_H_
