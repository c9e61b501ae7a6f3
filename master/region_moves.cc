#include "master/region_moves.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/placement.h"
#include "master/records.h"
#include "master/shrinking.h"
#include "master/texts.h"
#include "master/view_changes.h"
#include "master/work/leave.h"

namespace onetrip::master {
namespace {

// Until it is looked again whether there is room.
constexpr uint64_t kLookAgainUs = 1'000'000;

// `shrinks`: there is no room but by giving up regions.
std::optional<std::string> RefuseDrain(const ClusterState& state, uint16_t id, uint64_t now_us,
                                       bool* shrinks) {
  const auto replicas = static_cast<size_t>(state.record.replicas);
  if (state.nodes[id].record.out && HoldsRegion(state, NodeId{id})) {
    return NodeText(id) + " is out; others take its places when it stays away";
  }
  std::vector<MovePart> parts;
  size_t takers = 0;
  for (uint16_t other = 0; other < static_cast<uint16_t>(state.nodes.size()); ++other) {
    const Node& node = state.nodes[other];
    MovePart& part = parts.emplace_back();
    part.bytes = node.record.bytes;
    part.drains = other == id || node.record.wish == NodeWish::kDrain;
    part.takes = !part.drains && node.serving;
    takers += part.takes || (!part.drains && HoldsRegion(state, NodeId{other})) ? 1 : 0;
  }
  if (takers < replicas) {
    return "each region has " + std::to_string(replicas) + " replicas, and without " +
           NodeText(id) + " there are " + std::to_string(takers) + " memory nodes for them; add " +
           std::to_string(replicas - takers);
  }
  MovePlanner planner(parts, state.record.replicas, state.membership.view().regions);
  while (planner.Next().has_value()) continue;
  const uint64_t left = planner.left_on_draining();
  if (left == 0) return std::nullopt;
  const size_t given_up = RegionsToGiveUp(state, parts, now_us);
  std::string why = WhyNotWithout(state, given_up);
  *shrinks = why.empty();
  if (*shrinks) return std::nullopt;
  return "the other memory nodes have no room for " + std::to_string(left) +
         " regions: they need " + std::to_string(left * kRegionBytes >> 20) + " MiB more; and " +
         why + "; add a memory node";
}

}  // namespace

void OnMoveRegions(ClusterState& state, Effects& effects, StreamId stream, uint64_t now_us,
                   uint64_t request, const MoveRegionsRequest& wanted) {
  const auto refuse = [&](StatusCode code, std::string reason) {
    Reply(effects, stream, request, code, std::move(reason));
  };
  if (!state.has_map()) return refuse(StatusCode::kUnavailable, "the cluster has no map yet");
  if (wanted.node >= state.nodes.size()) {
    return refuse(StatusCode::kInvalidArgument, "there is no " + NodeText(wanted.node));
  }
  const auto id = static_cast<uint16_t>(wanted.node);
  Node& node = state.nodes[id];
  if (wanted.wish == NodeWish::kShare && !node.serving) {
    return refuse(StatusCode::kInvalidArgument, NodeText(id) + " does not serve; start it first");
  }
  if (wanted.wish == NodeWish::kDrain) {
    bool shrinks = false;
    auto refusal = RefuseDrain(state, id, now_us, &shrinks);
    // Whoever asks again may find less room than there was.
    if (refusal.has_value() && node.record.wish != NodeWish::kDrain) {
      return refuse(StatusCode::kInvalidArgument, std::move(*refusal));
    }
    if (shrinks) {
      state.record.may_shrink = true;
      SaveCluster(state, effects);
    }
  }
  if (node.record.wish != wanted.wish) {
    node.record.wish = wanted.wish;
    node.record.wish_regions = id < state.held.size() ? state.held[id] : 0;
    effects.change.nodes[id] = node.record;
    state.move_not_before_us = 0;
    const char* const what = wanted.wish == NodeWish::kDrain ? " is to give its regions to others"
                             : wanted.wish == NodeWish::kShare
                                 ? " is to be given its share of regions"
                                 : " keeps the regions that it has";
    Log(effects, LogLevel::kInfo, NodeText(id) + what);
  }
  Reply(effects, stream, request, StatusCode::kOk);
}

bool NodesDrain(const ClusterState& state) {
  for (size_t id = 0; id < state.nodes.size(); ++id) {
    if (state.nodes[id].record.wish != NodeWish::kDrain) continue;
    if (HoldsRegion(state, NodeId{static_cast<uint16_t>(id)})) return true;
  }
  return false;
}

bool MovesAreWanted(const ClusterState& state) {
  return NodesDrain(state) ||
         std::any_of(state.nodes.begin(), state.nodes.end(),
                     [](const Node& node) { return node.record.wish == NodeWish::kShare; });
}

bool TakesRegions(const ClusterState& state, uint16_t id) {
  const Node& node = state.nodes[id];
  return node.serving && node.record.wish != NodeWish::kDrain && MovesAreWanted(state);
}

std::vector<MovePart> MoveParts(const ClusterState& state) {
  std::vector<MovePart> parts;
  for (uint16_t id = 0; id < static_cast<uint16_t>(state.nodes.size()); ++id) {
    const NodeRecord& record = state.nodes[id].record;
    parts.push_back({record.bytes, record.wish == NodeWish::kDrain, TakesRegions(state, id),
                     record.wish == NodeWish::kShare});
  }
  return parts;
}

MovePlanner PlanMoves(const ClusterState& state) {
  return {MoveParts(state), state.record.replicas, state.membership.view().regions};
}

bool MayMove(const ClusterState& state, uint64_t now_us) {
  return AwaitsNoCopy(state, now_us) && now_us >= state.copy_not_before_us &&
         now_us >= state.repair_not_before_us && now_us >= state.move_not_before_us &&
         !state.record.scrub_due && !state.record.resolve_due && !state.repair.has_value() &&
         SomebodyWorks(state) && AllServe(state) && InForceEverywhere(state, state.placement_epoch);
}

void EnqueueMoveChanges(ClusterState& state, uint64_t now_us) {
  const auto enqueue = [&state](ChangeKind kind, uint16_t node) {
    Change change;
    change.kind = kind;
    change.node = node;
    EnqueueOwn(state, change);
  };
  const bool wanted = MovesAreWanted(state);
  // Behind the master's start, say.
  const auto may_be_back = [now_us](const Node& node) {
    return node.record.wish == NodeWish::kShare && !node.serving && now_us < node.lost_at_us;
  };
  if (!HasQueued(state, ChangeKind::kIdleOut)) {
    for (uint16_t id = 0; id < state.NodesInView(); ++id) {
      if (state.nodes[id].record.out || HoldsRegion(state, NodeId{id}) || TakesRegions(state, id))
        continue;
      if (may_be_back(state.nodes[id])) continue;
      enqueue(ChangeKind::kIdleOut, id);
    }
  }
  const auto end = static_cast<uint16_t>(state.nodes.size());
  for (uint16_t id = end; wanted && id-- > state.NodesInView();) {
    if (!TakesRegions(state, id) || HasQueued(state, ChangeKind::kNameNodes)) continue;
    enqueue(ChangeKind::kNameNodes, id);
  }
  const bool shares = std::any_of(state.nodes.begin(), state.nodes.end(), [](const Node& node) {
    return node.record.wish == NodeWish::kShare;
  });
  if (wanted) {
    if (!MayMove(state, now_us) || state.record.leaving != 0 ||
        NextLeave(state, now_us).has_value())
      return;
    if (std::any_of(state.nodes.begin(), state.nodes.end(), may_be_back)) return;
    MovePlanner planner = PlanMoves(state);
    if (!planner.Grow(1).empty() || planner.Next().has_value()) return;
  }
  if (wanted) state.move_not_before_us = now_us + kLookAgainUs;
  const bool shrank = !wanted && (state.record.may_shrink || state.record.leaving != 0);
  if ((state.record.records_only || shares || shrank) &&
      !HasQueued(state, ChangeKind::kMovesOver)) {
    enqueue(ChangeKind::kMovesOver, 0);
  }
}

// Out still: it refuses first whom it must.
void NameNodes(ClusterState& state, Effects& effects, uint16_t last) {
  std::vector<NodeInfo> infos;
  for (uint16_t id = 0; id <= last; ++id) {
    const NodeRecord& record = state.nodes[id].record;
    infos.push_back({record.incarnation, record.address, record.out});
  }
  const uint16_t known = state.NodesInView();
  state.membership.NameNodes(infos);
  CountMissing(state);
  for (uint16_t id = known; id < state.NodesInView(); ++id) SendFences(state, effects, id);
}

// No agent has anything there, nor has had since the view that says so.
void IdleOut(ClusterState& state, Effects& effects, uint16_t id) {
  Node& node = state.nodes[id];
  if (node.record.out || HoldsRegion(state, NodeId{id})) return;
  node.record.out = true;
  node.out_epoch = state.membership.view().epoch.value + 1;
  state.placement_epoch = node.out_epoch;
  effects.change.nodes[id] = node.record;
  state.membership.SetNodeOut(NodeId{id}, true);
  if (node.record.wish == NodeWish::kDrain) {
    Log(effects, LogLevel::kInfo, NodeText(id) + " is drained and may be switched off");
  }
}

void MovesOver(ClusterState& state, Effects& effects) {
  state.record.records_only = false;
  state.membership.SetRecordsOnly(false);
  EndLeaving(state, effects);
  for (uint16_t id = 0; id < static_cast<uint16_t>(state.nodes.size()); ++id) {
    NodeRecord& record = state.nodes[id].record;
    if (record.wish != NodeWish::kShare) continue;
    record.wish = NodeWish::kNone;
    effects.change.nodes[id] = record;
    Log(effects, LogLevel::kInfo,
        state.nodes[id].serving ? NodeText(id) + " has its share of regions"
                                : NodeText(id) + " is not there to be given regions");
  }
}

bool RegistersAreToEnd(const ClusterState& state) {
  return state.record.records_only && !state.registers_ended && MovesAreWanted(state);
}

}  // namespace onetrip::master
