#include "master/work/swap.h"

#include "master/facts.h"
#include "master/lost_nodes.h"

namespace onetrip::master {

// What a lost node or agent has left half done must not come to its end in the other database; and
// what is under way on a lost node takes too long to end.
bool MaySwap(const ClusterState& state, uint64_t now_us) {
  return HasQueued(state, ChangeKind::kSwap) && !HasQueued(state, ChangeKind::kFenced) &&
         !state.record.resolve_due && Leaving(state, now_us).empty();
}

}  // namespace onetrip::master
