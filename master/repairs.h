// Agents that repair: what one is asked, what it answers, and what follows if it does not
// (docs/MASTER.md).
#ifndef ONETRIP_MASTER_REPAIRS_H_
#define ONETRIP_MASTER_REPAIRS_H_

#include "master/state.h"

namespace onetrip::master {

// RepairOrder::walk of scrubs and of ends of registers: a new one whenever there is more to be
// walked than an agent may know of that has begun. Larger than in any life before.
void BeginWalkAnew(ClusterState& state);
// Asks the agent. REQUIRES: no other has been asked.
void SendRepair(ClusterState& state, Effects& effects, Member& agent, uint64_t now_us,
                RepairOrder order);
// An agent has answered; answers to what was not asked are ignored.
void OnRepaired(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                const RepairedMessage& message);
// Takes back repairs whose agent is gone or takes too long.
void CheckRepairer(ClusterState& state, Effects& effects, uint64_t now_us);
// Starts work that needs no quiesce: registers are scrubbed, then blocks taken over.
void StartBackgroundRepair(ClusterState& state, Effects& effects, uint64_t now_us);
// There are blocks, or may be, whose owner is gone.
void OrphanBlocks(ClusterState& state);
// The life before may have left a repairer: agents quiesced since then wait for its end.
void CheckFormerRepairer(ClusterState& state, Effects& effects, uint64_t now_us);
// Registers are to be scrubbed, whatever a scrub that is under way comes to.
void ScrubAnew(ClusterState& state);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_REPAIRS_H_
