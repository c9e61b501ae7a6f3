// Agents that are expelled, and the fences that keep them from writing.
#ifndef ONETRIP_MASTER_FENCING_H_
#define ONETRIP_MASTER_FENCING_H_

#include "master/state.h"

namespace onetrip::master {

void ForgetAgent(ClusterState& state, Effects& effects, uint64_t member);
void Expel(ClusterState& state, Effects& effects, Member& member, const std::string& why);
void SendFences(ClusterState& state, Effects& effects, uint16_t node);
void OnFenced(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const FencedMessage& message);
void ForgetFormer(ClusterState& state, Effects& effects, WorkerId worker);
void CheckFenced(ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_FENCING_H_
