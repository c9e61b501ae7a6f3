#include "master/work/node_out.h"

#include <algorithm>
#include <string>

#include "client_core/base/planted_bug.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/lost_nodes.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/repairs.h"
#include "master/texts.h"

namespace onetrip::master {
namespace {

// True if a process wants to work without these nodes, which are lost: it asks to join, or waits
// with that because it does not reach one of them.
bool IsWaitedFor(const ClusterState& state, const std::vector<NodeId>& lost) {
  if (HasQueued(state, ChangeKind::kJoin)) return true;
  return std::any_of(lost.begin(), lost.end(),
                     [&state](NodeId node) { return IsUnreached(state, node.value); });
}

// The lost nodes that have to be out: for a worker's sake, or for the node itself to be of use
// again.
std::vector<NodeId> DueOut(const ClusterState& state, uint64_t now_us) {
  std::vector<NodeId> leave = Leaving(state, now_us);
  // A node that has no region goes without a quiesce.
  std::erase_if(leave, [&state](NodeId node) { return !HoldsRegion(state, node); });
  const bool long_enough = std::all_of(leave.begin(), leave.end(), [&](NodeId node) {
    return now_us >= state.nodes[node.value].lost_at_us + state.options.node_wait_ms * 1000;
  });
  if (SomebodyWorks(state) || (long_enough && IsWaitedFor(state, leave))) return leave;
  // No agent needs to go on without the others, which may come back as they were.
  std::erase_if(leave, [&state](NodeId node) {
    return state.nodes[node.value].damage.empty() && !state.nodes[node.value].cut_off;
  });
  return leave;
}

class NodeOut final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const override {
    if (now_us < state.repair_not_before_us) return std::nullopt;
    Hold hold;
    hold.work = Work::kNodeOut;
    hold.leave = DueOut(state, now_us);
    if (hold.leave.empty()) return std::nullopt;
    return hold;
  }
  [[nodiscard]] bool IsStillDue(const ClusterState& state, const Hold& hold,
                                uint64_t now_us) const override {
    return DueOut(state, now_us) == hold.leave;
  }
  [[nodiscard]] HoldKind hold_kind() const override { return HoldKind::kSlots; }
  [[nodiscard]] bool is_of_region() const override { return false; }
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    PutOut(state, effects, hold.leave, now_us);
  }
};

}  // namespace

// There is no way back: what is resolved without a node, now or after a restart, it has missed.
void PutOut(ClusterState& state, Effects& effects, const std::vector<NodeId>& nodes,
            uint64_t now_us) {
  const uint64_t epoch = state.membership.view().epoch.value + 1;
  for (const NodeId id : nodes) {
    Node& node = state.nodes[id.value];
    node.record.out = true;
    node.out_epoch = epoch;
    // From now on it may come back, and others are to take its places only if it does not.
    if (!node.damage.empty()) node.lost_at_us = now_us;
    if (node.cut_off) NoteCut(state, id.value, now_us);
    effects.change.nodes[id.value] = node.record;
    SaveRegions(state, effects, state.membership.LoseNode(id));
  }
  if (!state.accepted_loss.empty()) {
    // The replicas that are left may name what only they had.
    state.record.heal_due = true;
    state.accepted_loss.clear();
  }
  state.record.resolve_due = !Planted(Bug::kOutUnresolved);
  // One that is under way may have counted on what these nodes hold.
  ScrubAnew(state);
  // Another node's word counts now, of an owner whose end it may not have heard of.
  if (state.record.leaving != 0) OrphanBlocks(state);
  state.placement_epoch = epoch;
  Log(effects, LogLevel::kWarning,
      NodesText(nodes) + " is put out: " + std::to_string(state.missing_regions) + " of " +
          std::to_string(state.membership.view().regions.size()) +
          " regions lack a replica, the cluster goes on without");
}

const WorkKind& NodeOutWork() {
  static const NodeOut kind;
  return kind;
}

}  // namespace onetrip::master
