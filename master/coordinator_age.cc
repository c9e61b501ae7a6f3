// Old state: an older copy of a memory node's image, and an older copy of the master's own data.
//
// A node's mark grows with each life of its memory and every few seconds of it. It is written to
// the image before the master is told, and stored by the master before the node hears that it is
// (`told`). So an image is never taken for newer than it is; one below the stored mark lacks what
// was written later; and a master whose stored mark is below what the node was told has lost that.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/worker_id.h"
#include "master/coordinator.h"

namespace onetrip {
namespace {

constexpr const char* kOlderCopy =
    "the master's data directory is an older copy; stop the master and restore the newest one, or "
    "make one from what the nodes know by `onetrip master rebuild`";

}  // namespace

std::optional<std::string> Coordinator::RefuseOlderState(const JoinNodeRequest& offer) const {
  if (!has_map() || Planted(Bug::kOlderMasterServes)) return std::nullopt;
  const uint64_t epoch = membership_.view().epoch.value;
  if (offer.epoch > epoch) {
    return "its memory was used under the cluster map of epoch " + std::to_string(offer.epoch) +
           ", but this master knows only " + std::to_string(epoch) + ": " + kOlderCopy;
  }
  const std::optional<uint16_t> node = FindNode(offer.incarnation);
  // 0: a state that was made anew, or is of a version that stored none.
  if (!node.has_value() || nodes_[*node].record.mark == 0) return std::nullopt;
  if (offer.told <= nodes_[*node].record.mark) return std::nullopt;
  return "a master has stored mark " + std::to_string(offer.told) +
         " of its memory, but this one knows only " + std::to_string(nodes_[*node].record.mark) +
         ": " + kOlderCopy;
}

std::string Coordinator::WhyOutdated(uint16_t node, const JoinNodeRequest& offer) const {
  const uint64_t known = std::max(nodes_[node].record.mark, nodes_[node].mark);
  // What is out counts for nothing anyway, and damaged memory is treated as such.
  if (!offer.adopted || offer.mark >= known || nodes_[node].record.out || !offer.damage.empty() ||
      Planted(Bug::kOldImageBelieved)) {
    return "";
  }
  return "it is an older copy of the node's memory (its mark is " + std::to_string(offer.mark) +
         ", but it was seen with " + std::to_string(known) + "): what was written later is missing";
}

void Coordinator::RaiseIds(const JoinNodeRequest& offer) {
  if (offer.next_worker <= membership_.next_worker() || Planted(Bug::kIdsStartOver)) return;
  if (offer.next_worker > kMaxWorkerId + 1) {
    return Log(LogLevel::kWarning,
               "a memory node says that it has seen worker " +
                   std::to_string(offer.next_worker - 1) +
                   ", a number that no worker can have; nobody is kept from one");
  }
  Log(LogLevel::kWarning, "workers up to " + std::to_string(offer.next_worker - 1) +
                              " have been seen by a memory node, though this master has given out "
                              "only those below " +
                              std::to_string(membership_.next_worker()) +
                              "; it goes on behind them");
  membership_.RaiseNextWorker(offer.next_worker);
  SaveCluster();
}

void Coordinator::SaveMark(uint16_t node, uint64_t mark) {
  Node& known = nodes_[node];
  known.mark = std::max(known.mark, mark);
  if (known.mark <= known.record.mark) return;
  known.record.mark = known.mark;
  effects_.change.nodes[node] = known.record;
}

void Coordinator::SaveMarks() {
  for (uint16_t node = 0; node < nodes_.size(); ++node) SaveMark(node, nodes_[node].mark);
}

}  // namespace onetrip
