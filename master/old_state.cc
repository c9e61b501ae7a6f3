#include "master/old_state.h"

#include <algorithm>
#include <optional>
#include <string>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/worker_id.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/records.h"

namespace onetrip::master {
namespace {

constexpr const char* kOlderCopy =
    "the master's data directory is an older copy; stop the master and restore the newest one, or "
    "make one from what the nodes know by `onetrip master rebuild`";

}  // namespace

std::optional<std::string> RefuseOlderState(const ClusterState& state,
                                            const JoinNodeRequest& offer) {
  if (!state.has_map() || Planted(Bug::kOlderMasterServes)) return std::nullopt;
  const uint64_t epoch = state.membership.view().epoch.value;
  if (offer.epoch > epoch) {
    return "its memory was used under the cluster map of epoch " + std::to_string(offer.epoch) +
           ", but this master knows only " + std::to_string(epoch) + ": " + kOlderCopy;
  }
  const std::optional<uint16_t> node = FindNode(state, offer.incarnation);
  // 0: a state that was made anew, or is of a version that stored none.
  if (!node.has_value() || state.nodes[*node].record.mark == 0) return std::nullopt;
  if (offer.told <= state.nodes[*node].record.mark) return std::nullopt;
  return "a master has stored mark " + std::to_string(offer.told) +
         " of its memory, but this one knows only " +
         std::to_string(state.nodes[*node].record.mark) + ": " + kOlderCopy;
}

std::string WhyOutdated(const ClusterState& state, uint16_t node, const JoinNodeRequest& offer) {
  const uint64_t known = std::max(state.nodes[node].record.mark, state.nodes[node].mark);
  // A node that is out counts for nothing anyway, and damaged memory is treated as such.
  if (!offer.adopted || offer.mark >= known || state.nodes[node].record.out ||
      !offer.damage.empty() || Planted(Bug::kOldImageBelieved)) {
    return "";
  }
  return "it is an older copy of the node's memory (its mark is " + std::to_string(offer.mark) +
         ", but it was seen with " + std::to_string(known) + "): what was written later is missing";
}

void RaiseIds(ClusterState& state, Effects& effects, const JoinNodeRequest& offer) {
  if (offer.next_worker <= state.membership.next_worker() || Planted(Bug::kIdsStartOver)) return;
  if (offer.next_worker > kMaxWorkerId + 1) {
    return Log(effects, LogLevel::kWarning,
               "a memory node says that it has seen worker " +
                   std::to_string(offer.next_worker - 1) +
                   ", a number that no worker can have; nobody is kept from one");
  }
  Log(effects, LogLevel::kWarning,
      "workers up to " + std::to_string(offer.next_worker - 1) +
          " have been seen by a memory node, though this master has given out "
          "only those below " +
          std::to_string(state.membership.next_worker()) + "; it goes on behind them");
  state.membership.RaiseNextWorker(offer.next_worker);
  SaveCluster(state, effects);
}

}  // namespace onetrip::master
