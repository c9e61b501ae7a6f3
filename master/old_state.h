// Old state: an older copy of a memory node's image, and an older copy of the master's own data.
//
// A node's mark grows with each life of its memory and every few seconds of it. It is written to
// the image before the master is told, and stored by the master before the node hears that it is
// (`told`). So an image is never taken for newer than it is; one below the stored mark lacks what
// was written later; and a master whose stored mark is below what the node was told has lost that.
#ifndef ONETRIP_MASTER_OLD_STATE_H_
#define ONETRIP_MASTER_OLD_STATE_H_

#include "master/state.h"

namespace onetrip::master {

// Why the offer shows that the master's own state is an older copy; nothing: it does not.
[[nodiscard]] std::optional<std::string> RefuseOlderState(const ClusterState& state,
                                                          const JoinNodeRequest& offer);
// Why the memory counts for nothing as an older copy of what it was; empty: it is none.
[[nodiscard]] std::string WhyOutdated(const ClusterState& state, uint16_t node,
                                      const JoinNodeRequest& offer);
// Ids that the node has seen are not given out again.
void RaiseIds(ClusterState& state, Effects& effects, const JoinNodeRequest& offer);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_OLD_STATE_H_
