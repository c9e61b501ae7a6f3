#include "master/lost_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/placement.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/texts.h"
#include "master/view_changes.h"

namespace onetrip::master {
namespace {

// By node id: the bytes of those that may take regions.
std::vector<uint64_t> BytesToTake(const ClusterState& state) {
  std::vector<uint64_t> bytes;
  bytes.reserve(state.nodes.size());
  for (const Node& node : state.nodes) {
    const auto id = static_cast<uint16_t>(bytes.size());
    const bool takes =
        node.serving && node.record.wish != NodeWish::kDrain && !IsUnreached(state, id);
    bytes.push_back(takes ? node.record.bytes : 0);
  }
  return bytes;
}

// Nodes of the map that do not serve and are not expected back at once.
// Those that may be about to be back are waited for first.
std::vector<NodeId> LostNodes(const ClusterState& state, uint64_t now_us) {
  std::vector<NodeId> lost;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    if (!node.record.out && !node.serving && now_us >= node.lost_at_us &&
        HoldsRegion(state, NodeId{id})) {
      lost.push_back(NodeId{id});
    }
  }
  return lost;
}

// True if the nodes may be put out without a majority being left.
bool LossIsAccepted(const ClusterState& state, const std::vector<NodeId>& leaving) {
  return !state.accepted_loss.empty() && RegionsWithoutAny(state) == 0 &&
         std::all_of(leaving.begin(), leaving.end(), [&](NodeId node) {
           return std::find(state.accepted_loss.begin(), state.accepted_loss.end(), node) !=
                  state.accepted_loss.end();
         });
}

}  // namespace

std::vector<NodeId> Leaving(const ClusterState& state, uint64_t now_us) {
  std::vector<NodeId> leaving;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    if (!node.record.out && (node.cut_off || (!node.serving && now_us >= node.lost_at_us))) {
      leaving.push_back(NodeId{id});
    }
  }
  if (!leaving.empty() && RegionsWithoutMajority(state) != 0 && !LossIsAccepted(state, leaving))
    return {};
  return leaving;
}

void EnqueueNodesIn(ClusterState& state, uint64_t now_us) {
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    Node& node = state.nodes[id];
    if (!node.record.out || !node.serving || !HasFencedAll(state, id) ||
        !MayComeIn(state, id, now_us))
      continue;
    const bool queued =
        std::any_of(state.queue.begin(), state.queue.end(), [id](const Change& change) {
          return change.kind == ChangeKind::kNodeIn && change.node == id;
        });
    if (queued || !(HoldsRegion(state, NodeId{id}) || TakesRegions(state, id))) continue;
    Change change;
    change.kind = ChangeKind::kNodeIn;
    change.node = id;
    EnqueueOwn(state, change);
    node.reach_since_us = now_us;
  }
}

void NodeIn(ClusterState& state, Effects& effects, uint16_t id) {
  Node& node = state.nodes[id];
  if (!node.record.out || !node.serving || !HasFencedAll(state, id)) return;
  node.record.out = false;
  ForgetWhoReaches(state, id);
  effects.change.nodes[id] = node.record;
  state.membership.SetNodeOut(NodeId{id}, false);
  state.placement_epoch = state.membership.view().epoch.value + 1;
  Log(effects, LogLevel::kInfo,
      "memory node " + std::to_string(id) +
          (HoldsRegion(state, NodeId{id}) ? " is back; what it has missed is copied to it"
                                          : " is in, to be given regions"));
}

bool IsToBeReplaced(const ClusterState& state, uint16_t id, uint64_t now_us) {
  const Node& node = state.nodes[id];
  return node.record.out && (!node.serving || IsUnreached(state, id)) &&
         now_us >= node.lost_at_us + state.options.replace_after_ms * 1000 &&
         HoldsRegion(state, NodeId{id});
}

bool HasRoomFor(const ClusterState& state, NodeId lost) {
  std::vector<RegionPlacement> regions = state.membership.view().regions;
  return !::onetrip::ReplaceNode(lost, state.membership.view().replicas, BytesToTake(state),
                                 &regions)
              .empty();
}

bool CopiesAreToCome(const ClusterState& state, uint64_t now_us) {
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (state.lacking[id] == 0) continue;
    if (!IsToBeReplaced(state, id, now_us) || HasRoomFor(state, NodeId{id})) return true;
  }
  return false;
}

void EnqueueReplacements(ClusterState& state, uint64_t now_us) {
  if (state.missing_regions == 0 || HasQueued(state, ChangeKind::kReplace)) return;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (!IsToBeReplaced(state, id, now_us) || !HasRoomFor(state, NodeId{id})) continue;
    Change change;
    change.kind = ChangeKind::kReplace;
    change.node = id;
    EnqueueOwn(state, change);
  }
}

// Missing replicas stay missing until they are copied, so no agent need wait.
void ReplaceNode(ClusterState& state, Effects& effects, uint16_t lost) {
  if (!state.nodes[lost].record.out || (state.nodes[lost].serving && !IsUnreached(state, lost)))
    return;
  std::vector<NodeInfo> infos;
  infos.reserve(state.nodes.size());
  for (const Node& node : state.nodes) {
    infos.push_back({node.record.incarnation, node.record.address, node.record.out});
  }
  const uint16_t known = state.NodesInView();
  const std::vector<uint32_t> changed =
      state.membership.ReplaceNode(NodeId{lost}, BytesToTake(state), infos);
  SaveRegions(state, effects, changed);
  state.placement_epoch = state.membership.view().epoch.value + 1;
  for (uint16_t id = known; id < state.NodesInView(); ++id) SendFences(state, effects, id);
  Log(effects, LogLevel::kInfo,
      "memory node " + std::to_string(lost) + " is replaced: other nodes take " +
          std::to_string(changed.size()) + " of its regions, which are copied");
}

void OnAcceptLoss(ClusterState& state, Effects& effects, StreamId stream, uint64_t now_us,
                  uint64_t request, const AcceptLossRequest& wanted) {
  const auto refuse = [&](StatusCode code, const std::string& reason) {
    Reply(effects, stream, request, code, reason);
  };
  if (!state.has_map()) return refuse(StatusCode::kUnavailable, "the cluster has no map yet");
  const std::vector<NodeId> lost = LostNodes(state, now_us);
  const size_t lacking = RegionsWithoutMajority(state);
  if (!LacksMajority(state, now_us)) {
    return refuse(
        StatusCode::kUnavailable,
        lacking == 0 ? "there is no loss to accept: every region has enough replicas on memory "
                       "nodes that serve, and the cluster goes on by itself"
                     : "memory nodes may still come back by themselves; ask again in some seconds");
  }
  const std::string regions = std::to_string(state.membership.view().regions.size());
  if (const size_t gone = RegionsWithoutAny(state); gone != 0) {
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
                           std::to_string(state.record.replicas) +
                           " replicas is left. Lost are the last writes of keys for which only "
                           "those nodes had answered; older values may be read instead, and keys "
                           "of which nothing whole is left are named in an agent's log";
  if (!wanted.confirmed) {
    // The tool shows this text before it asks again.
    return refuse(StatusCode::kCorrupt, text);
  }
  state.accepted_loss = lost;
  Log(effects, LogLevel::kWarning,
      "a loss has been accepted: " + NodesText(lost) + " is put out, though " +
          std::to_string(lacking) + " of " + regions +
          " regions have less than a majority of their replicas then");
  Reply(effects, stream, request, StatusCode::kOk);
}

}  // namespace onetrip::master
