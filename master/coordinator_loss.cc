// Memory nodes that are lost for good: so many that the cluster would wait for them for ever. A
// tool may accept that, and the cluster goes on with what is left (docs/MASTER.md, "A loss that is
// accepted").
#include <algorithm>

#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

std::string NodesText(const std::vector<NodeId>& nodes) {
  std::string text = nodes.size() == 1 ? "memory node" : "memory nodes";
  for (size_t i = 0; i < nodes.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(nodes[i].value);
  }
  return text;
}

}  // namespace

// Those that may be about to be back are waited for first.
std::vector<NodeId> Coordinator::LostNodes(uint64_t now_us) const {
  std::vector<NodeId> lost;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    if (!node.record.out && !node.serving && now_us >= node.lost_at_us && HoldsRegion(NodeId{id})) {
      lost.push_back(NodeId{id});
    }
  }
  return lost;
}

size_t Coordinator::RegionsWithoutAny() const {
  const View& view = membership_.view();
  return static_cast<size_t>(
      std::count_if(view.regions.begin(), view.regions.end(), [&](const RegionPlacement& region) {
        const auto* const end = region.nodes.begin() + view.replicas - region.missing;
        return std::none_of(region.nodes.begin(), end,
                            [&](NodeId node) { return nodes_[node.value].serving; });
      }));
}

bool Coordinator::LossIsAccepted(const std::vector<NodeId>& leaving) const {
  return !accepted_loss_.empty() && RegionsWithoutAny() == 0 &&
         std::all_of(leaving.begin(), leaving.end(), [&](NodeId node) {
           return std::find(accepted_loss_.begin(), accepted_loss_.end(), node) !=
                  accepted_loss_.end();
         });
}

void Coordinator::OnAcceptLoss(StreamId stream, uint64_t now_us, uint64_t request,
                               const AcceptLossRequest& wanted) {
  const auto refuse = [&](StatusCode code, const std::string& reason) {
    Reply(stream, request, code, reason);
  };
  if (!has_map()) return refuse(StatusCode::kUnavailable, "the cluster has no map yet");
  const std::vector<NodeId> lost = LostNodes(now_us);
  const size_t lacking = RegionsWithoutMajority();
  if (!LacksMajority(now_us)) {
    return refuse(
        StatusCode::kUnavailable,
        lacking == 0 ? "there is no loss to accept: every region has enough replicas on memory "
                       "nodes that serve, and the cluster goes on by itself"
                     : "memory nodes may still come back by themselves; ask again in some seconds");
  }
  const std::string regions = std::to_string(membership_.view().regions.size());
  if (const size_t gone = RegionsWithoutAny(); gone != 0) {
    return refuse(StatusCode::kInvalidArgument,
                  std::to_string(gone) + " of " + regions +
                      " regions have no replica on a memory node that serves: without " +
                      NodesText(lost) +
                      " there is nothing to go on with. Bring back one of them with its memory "
                      "(damaged memory by --accept-damaged yes); if there is none, what the "
                      "cluster held is lost, and it has to be started anew");
  }
  const std::string text = NodesText(lost) + " would be given up: of " + std::to_string(lacking) +
                           " of " + regions + " regions less than a majority of " +
                           std::to_string(record_.replicas) +
                           " replicas is left. Lost are the last writes of keys for which only "
                           "those nodes had answered; older values may be read instead, and keys "
                           "of which nothing whole is left are named in an agent's log";
  if (!wanted.confirmed) {
    // What the tool shows before it asks again.
    return refuse(StatusCode::kCorrupt, text);
  }
  accepted_loss_ = lost;
  Log(LogLevel::kWarning, "a loss has been accepted: " + NodesText(lost) + " is put out, though " +
                              std::to_string(lacking) + " of " + regions +
                              " regions have less than a majority of their replicas then");
  Reply(stream, request, StatusCode::kOk);
}

}  // namespace onetrip
