// Changes of the view: one after the other, several in one view where they wait together.
#ifndef ONETRIP_MASTER_VIEW_CHANGES_H_
#define ONETRIP_MASTER_VIEW_CHANGES_H_

#include "master/state.h"

namespace onetrip::master {

// A request of `member` for a change waits for its turn; refused, if too many do.
void Enqueue(ClusterState& state, Effects& effects, const Member& member, uint64_t now_us,
             Change change);
// The master's own change.
void EnqueueOwn(ClusterState& state, Change change);
// Those that have waited since `since_us` or longer.
void FailChangesOfKeyspaces(ClusterState& state, Effects& effects, uint64_t since_us,
                            const std::string& why);
// True if the change may be in the next view; `held`: what all are quiesced for.
[[nodiscard]] bool MayCommit(const ClusterState& state, const Change& change,
                             std::optional<Work> held);
// Makes the next view of everything queued that may be in it. Changes of keyspaces are only after a
// quiesce for them, `held`.
void Commit(ClusterState& state, Effects& effects, uint64_t now_us,
            std::optional<Work> held = std::nullopt);
// True if the agent may be released into the newest view.
[[nodiscard]] bool MaySendView(const ClusterState& state, const Member& member);
// Sends the newest view, which the agent has to acknowledge in time.
void SendView(ClusterState& state, Effects& effects, Member& member, uint64_t now_us);
// The agent has put the view of `epoch` in force.
void OnViewInForce(Member& member, uint64_t now_us, Epoch epoch);
// Replies that waited until every agent is under their view.
void SendDueReplies(ClusterState& state, Effects& effects, uint64_t now_us);
// One line of the log, whenever it is another.
void TellWhatJoinsWaitFor(ClusterState& state, Effects& effects);
// Likewise.
void TellWhatDamagedWaitFor(ClusterState& state, Effects& effects);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_VIEW_CHANGES_H_
