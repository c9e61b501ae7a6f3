// Regions that move from living nodes to others: a node drains, or is given its share
// (docs/MASTER.md). One at a time, under a hold of everything: what a view says is there is there.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

// Until it is looked again whether there is room.
constexpr uint64_t kLookAgainUs = 1'000'000;

std::string NodeText(size_t node) { return "memory node " + std::to_string(node); }

}  // namespace

// ---- What is asked for ----

void Coordinator::OnMoveRegions(StreamId stream, uint64_t request,
                                const MoveRegionsRequest& wanted) {
  const auto refuse = [&](StatusCode code, std::string reason) {
    Reply(stream, request, code, std::move(reason));
  };
  if (!has_map()) return refuse(StatusCode::kUnavailable, "the cluster has no map yet");
  if (wanted.node >= nodes_.size()) {
    return refuse(StatusCode::kInvalidArgument, "there is no " + NodeText(wanted.node));
  }
  const auto id = static_cast<uint16_t>(wanted.node);
  Node& node = nodes_[id];
  if (wanted.wish == NodeWish::kShare && !node.serving) {
    return refuse(StatusCode::kInvalidArgument, NodeText(id) + " does not serve; start it first");
  }
  if (wanted.wish == NodeWish::kDrain) {
    bool shrinks = false;
    auto refusal = RefuseDrain(id, &shrinks);
    // Whoever asks again may find less room than there was.
    if (refusal.has_value() && node.record.wish != NodeWish::kDrain) {
      return refuse(StatusCode::kInvalidArgument, std::move(*refusal));
    }
    if (shrinks) {
      record_.may_shrink = true;
      SaveCluster();
    }
  }
  if (node.record.wish != wanted.wish) {
    node.record.wish = wanted.wish;
    node.record.wish_regions = id < held_.size() ? held_[id] : 0;
    effects_.change.nodes[id] = node.record;
    move_not_before_us_ = 0;
    const char* const what = wanted.wish == NodeWish::kDrain ? " is to give its regions to others"
                             : wanted.wish == NodeWish::kShare
                                 ? " is to be given its share of regions"
                                 : " keeps the regions that it has";
    Log(LogLevel::kInfo, NodeText(id) + what);
  }
  Reply(stream, request, StatusCode::kOk);
}

std::optional<std::string> Coordinator::RefuseDrain(uint16_t id, bool* shrinks) const {
  const auto replicas = static_cast<size_t>(record_.replicas);
  if (nodes_[id].record.out && HoldsRegion(NodeId{id})) {
    return NodeText(id) + " is out; others take its places when it stays away";
  }
  std::vector<MovePart> parts;
  size_t takers = 0;
  for (uint16_t other = 0; other < static_cast<uint16_t>(nodes_.size()); ++other) {
    const Node& node = nodes_[other];
    MovePart& part = parts.emplace_back();
    part.bytes = node.record.bytes;
    part.drains = other == id || node.record.wish == NodeWish::kDrain;
    part.takes = !part.drains && node.serving;
    takers += part.takes || (!part.drains && HoldsRegion(NodeId{other})) ? 1 : 0;
  }
  if (takers < replicas) {
    return "each region has " + std::to_string(replicas) + " replicas, and without " +
           NodeText(id) + " there are " + std::to_string(takers) + " memory nodes for them; add " +
           std::to_string(replicas - takers);
  }
  MovePlanner planner(parts, record_.replicas, membership_.view().regions);
  while (planner.Next().has_value()) continue;
  const uint64_t left = planner.left_on_draining();
  if (left == 0) return std::nullopt;
  const size_t given_up = RegionsToGiveUp(parts);
  std::string why = WhyNotWithout(given_up);
  *shrinks = why.empty();
  if (*shrinks) return std::nullopt;
  return "the other memory nodes have no room for " + std::to_string(left) +
         " regions: they need " + std::to_string(left * kRegionBytes >> 20) + " MiB more; and " +
         why + "; add a memory node";
}

// ---- What is so ----

bool Coordinator::MovesAreWanted() const {
  for (size_t id = 0; id < nodes_.size(); ++id) {
    const NodeWish wish = nodes_[id].record.wish;
    const bool drains = wish == NodeWish::kDrain && HoldsRegion(NodeId{static_cast<uint16_t>(id)});
    if (drains || wish == NodeWish::kShare) return true;
  }
  return false;
}

bool Coordinator::TakesRegions(uint16_t id) const {
  const Node& node = nodes_[id];
  return node.serving && node.record.wish != NodeWish::kDrain && MovesAreWanted();
}

std::vector<MovePart> Coordinator::MoveParts() const {
  std::vector<MovePart> parts;
  for (uint16_t id = 0; id < static_cast<uint16_t>(nodes_.size()); ++id) {
    const NodeRecord& record = nodes_[id].record;
    parts.push_back({record.bytes, record.wish == NodeWish::kDrain, TakesRegions(id),
                     record.wish == NodeWish::kShare});
  }
  return parts;
}

MovePlanner Coordinator::PlanMoves() const {
  return {MoveParts(), record_.replicas, membership_.view().regions};
}

bool Coordinator::MayMove(uint64_t now_us) const {
  return AwaitsNoCopy() && now_us >= copy_not_before_us_ && now_us >= repair_not_before_us_ &&
         now_us >= move_not_before_us_ && !record_.scrub_due && !record_.resolve_due &&
         !repair_.has_value() && SomebodyWorks() && AllServe() &&
         InForceEverywhere(placement_epoch_);
}

// ---- One move ----

std::optional<Coordinator::Hold> Coordinator::NextMove(uint64_t now_us) const {
  if (!MovesAreWanted() || !MayMove(now_us)) return std::nullopt;
  std::optional<Hold> leave = NextLeave();
  // Where regions go to is known when those are gone that go nowhere.
  if (leave.has_value() || record_.leaving != 0) return leave;
  MovePlanner planner = PlanMoves();
  // For what is added no key need be anything else.
  if (std::optional<Hold> growth = NextGrowth(&planner); growth.has_value()) {
    return AllReach(growth->grown) ? growth : std::nullopt;
  }
  if (RegistersAreToEnd()) return std::nullopt;
  const std::optional<RegionMove> move = planner.Next();
  // Whoever is to have it is in first.
  if (!move.has_value() || move->to.value >= NodesInView() || nodes_[move->to.value].record.out) {
    return std::nullopt;
  }
  if (!WhoDoesNotReach(move->to).empty() && !Planted(Bug::kMoveUnreached)) return std::nullopt;
  Hold hold;
  hold.work = record_.records_only ? Work::kMove : Work::kRecordsOnly;
  hold.move = *move;
  return hold;
}

// In the next view, which the caller commits. All hold: nobody is at the region, nor comes to it
// under an older view.
void Coordinator::CommitMove(const Hold& hold, uint64_t now_us) {
  placement_epoch_ = membership_.view().epoch.value + 1;
  if (hold.work == Work::kRecordsOnly) {
    record_.records_only = true;
    registers_ended_ = false;
    BeginWalkAnew();
    membership_.SetRecordsOnly(true);
    return;
  }
  PauseCopies(hold, now_us);
  // It would be missing there at once.
  if (!nodes_[hold.move.to.value].serving) return;
  membership_.MoveReplica(hold.move);
  SaveRegions({hold.move.region});
}

void Coordinator::PauseCopies(const Hold& hold, uint64_t now_us) {
  copy_not_before_us_ = now_us + std::max(options_.copy_pause_ms * 1000,
                                          options_.copy_pause_factor * (now_us - hold.since_us));
}

// ---- Before and after ----

void Coordinator::EnqueueMoveChanges(uint64_t now_us) {
  const auto enqueue = [this](ChangeKind kind, uint16_t node) {
    Change change;
    change.kind = kind;
    change.node = node;
    EnqueueOwn(change);
  };
  const bool wanted = MovesAreWanted();
  // Behind the master's start, say.
  const auto may_be_back = [now_us](const Node& node) {
    return node.record.wish == NodeWish::kShare && !node.serving && now_us < node.lost_at_us;
  };
  if (!HasQueued(ChangeKind::kIdleOut)) {
    for (uint16_t id = 0; id < NodesInView(); ++id) {
      if (nodes_[id].record.out || HoldsRegion(NodeId{id}) || TakesRegions(id)) continue;
      if (may_be_back(nodes_[id])) continue;
      enqueue(ChangeKind::kIdleOut, id);
    }
  }
  const auto end = static_cast<uint16_t>(nodes_.size());
  for (uint16_t id = end; wanted && id-- > NodesInView();) {
    if (!TakesRegions(id) || HasQueued(ChangeKind::kNameNodes)) continue;
    enqueue(ChangeKind::kNameNodes, id);
  }
  const bool shares = std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.record.wish == NodeWish::kShare;
  });
  if (wanted) {
    if (!MayMove(now_us) || record_.leaving != 0 || NextLeave().has_value()) return;
    if (std::any_of(nodes_.begin(), nodes_.end(), may_be_back)) return;
    MovePlanner planner = PlanMoves();
    if (!planner.Grow(1).empty() || planner.Next().has_value()) return;
  }
  if (wanted) move_not_before_us_ = now_us + kLookAgainUs;
  const bool shrank = !wanted && (record_.may_shrink || record_.leaving != 0);
  if ((record_.records_only || shares || shrank) && !HasQueued(ChangeKind::kMovesOver)) {
    enqueue(ChangeKind::kMovesOver, 0);
  }
}

// Out still: it refuses first whom it must.
void Coordinator::NameNodes(uint16_t last) {
  std::vector<NodeInfo> infos;
  for (uint16_t id = 0; id <= last; ++id) {
    const NodeRecord& record = nodes_[id].record;
    infos.push_back({record.incarnation, record.address, record.out});
  }
  const uint16_t known = NodesInView();
  membership_.NameNodes(infos);
  CountMissing();
  for (uint16_t id = known; id < NodesInView(); ++id) SendFences(id);
}

// Nobody has anything there, nor has had since the view that says so.
void Coordinator::IdleOut(uint16_t id) {
  Node& node = nodes_[id];
  if (node.record.out || HoldsRegion(NodeId{id})) return;
  node.record.out = true;
  node.out_epoch = membership_.view().epoch.value + 1;
  placement_epoch_ = node.out_epoch;
  effects_.change.nodes[id] = node.record;
  membership_.SetNodeOut(NodeId{id}, true);
  if (node.record.wish == NodeWish::kDrain) {
    Log(LogLevel::kInfo, NodeText(id) + " is drained and may be switched off");
  }
}

void Coordinator::MovesOver() {
  record_.records_only = false;
  membership_.SetRecordsOnly(false);
  EndLeaving();
  for (uint16_t id = 0; id < static_cast<uint16_t>(nodes_.size()); ++id) {
    NodeRecord& record = nodes_[id].record;
    if (record.wish != NodeWish::kShare) continue;
    record.wish = NodeWish::kNone;
    effects_.change.nodes[id] = record;
    Log(LogLevel::kInfo, nodes_[id].serving ? NodeText(id) + " has its share of regions"
                                            : NodeText(id) + " is not there to be given regions");
  }
}

}  // namespace onetrip
