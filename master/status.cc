#include "master/status.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/facts.h"
#include "master/holds.h"
#include "master/lost_nodes.h"
#include "master/node_joins.h"
#include "master/placement.h"
#include "master/reach.h"
#include "master/region_moves.h"
#include "master/shrinking.h"
#include "master/usage.h"

namespace onetrip::master {
namespace {

// Says what to do when the nodes that are lost do not come back.
std::string WhatLossWaitsFor(const ClusterState& state) {
  const size_t regions = RegionsWithoutMajority(state);
  if (regions == 0) return "";
  std::string text = ", and " + std::to_string(regions) + " regions have no majority without it";
  if (RegionsWithoutAny(state) != 0) return text;
  return text + "; if it is lost for good: onetrip node accept-loss";
}

std::string WhatRepairsWaitFor(const ClusterState& state) {
  const bool due = state.record.resolve_due || state.record.scrub_due || state.missing_regions != 0;
  if (!due) return "";
  for (uint16_t node = 0; node < state.NodesInView(); ++node) {
    if (!state.nodes[node].record.out || state.nodes[node].serving ||
        !HoldsRegion(state, NodeId{node}))
      continue;
    return std::to_string(state.missing_regions) + " regions lack a replica until memory node " +
           std::to_string(node) + " is back" +
           (HasRoomFor(state, NodeId{node})
                ? ", or is replaced after " +
                      std::to_string(state.options.replace_after_ms / 1000) + " s"
                : " or another with room for them joins");
  }
  if (!SomebodyWorks(state)) return "repairs need an agent with workers";
  for (uint16_t node = 0; node < state.NodesInView(); ++node) {
    if (state.lacking[node] == 0 || state.nodes[node].record.out) continue;
    std::string who = WhoDoesNotReach(state, NodeId{node});
    if (!who.empty()) return who;
  }
  return "";
}

std::string Moving(const ClusterState& state, uint64_t now_us) {
  if (!MovesAreWanted(state)) return "";
  std::string text;
  bool drains = false;
  for (size_t id = 0; id < state.nodes.size(); ++id) {
    const NodeRecord& record = state.nodes[id].record;
    const uint32_t held = id < state.held.size() ? state.held[id] : 0;
    std::string one;
    if (record.wish == NodeWish::kDrain && held != 0) {
      drains = true;
      one = "is draining, " + std::to_string(held) + " of " +
            std::to_string(std::max(held, record.wish_regions)) + " regions left";
    } else if (record.wish == NodeWish::kShare) {
      one = "is given its share, it has " + std::to_string(held) + " regions";
    }
    if (!one.empty())
      text += (text.empty() ? "" : "; ") + ("memory node " + std::to_string(id)) + " " + one;
  }
  text += Shrinking(state, now_us);
  if (!SomebodyWorks(state)) return text + "; moves need an agent with workers";
  if (!AwaitsNoCopy(state, now_us) || !AllServe(state)) {
    return text + "; they wait until no region lacks a replica";
  }
  if (state.record.leaving != 0) return text;
  MovePlanner planner = PlanMoves(state);
  if (const uint64_t more = planner.regions_to_come(); more != 0) {
    text += "; " + std::to_string(more) + " regions are to be added";
  }
  // The next region or replica goes there.
  std::vector<NodeId> next;
  const std::vector<RegionPlacement> grown = planner.Grow(1);
  if (!grown.empty()) {
    next.assign(grown[0].nodes.begin(), grown[0].nodes.begin() + state.record.replicas);
  } else if (const std::optional<RegionMove> move = planner.Next(); move.has_value()) {
    next.push_back(move->to);
  } else {
    return text + (drains ? "; there is no room for them" : "");
  }
  for (const NodeId node : next) {
    if (node.value >= state.NodesInView() || state.nodes[node.value].record.out) continue;
    const std::string who = WhoDoesNotReach(state, node);
    if (who.empty()) continue;
    text.append("; ").append(who);
    return text;
  }
  return grown.empty() && RegistersAreToEnd(state) ? text + "; keys become records first" : text;
}

// `missing` of the node's `regions` replicas do not count.
std::string NodeStateName(const ClusterState& state, uint16_t node, uint32_t regions,
                          uint32_t missing) {
  const Node& one = state.nodes[node];
  const NodeWish wish = one.record.wish;
  // Not while an agent may still ask it.
  const bool idle = one.record.out && (one.member == 0 || InForceEverywhere(state, one.out_epoch));
  if (wish == NodeWish::kDrain && regions == 0 && idle) return "drained";
  if (one.member == 0 && regions != 0 && one.record.out) return "out";
  if (one.member == 0) return one.left ? "left" : "lost";
  if (!one.damage.empty()) return "damaged";
  if (!one.serving) return "joining";
  if (missing != 0 && one.record.out && IsUnreached(state, node)) return "out";
  if (missing != 0) return "copying";
  if (wish == NodeWish::kDrain) return "draining";
  if (wish == NodeWish::kShare) return "filling";
  return regions == 0 ? "spare" : "up";
}

// By node: what it offers and no region can lie in.
// Of nodes that regions may lie on: those of a spare, or of one that drains, wait for their use.
std::vector<uint64_t> Unusable(const ClusterState& state) {
  std::vector<uint64_t> bytes(state.nodes.size(), 0);
  std::vector<uint32_t> held(state.nodes.size(), 0);
  for (uint16_t id = 0; id < static_cast<uint16_t>(state.nodes.size()); ++id) {
    if (!HoldsRegion(state, NodeId{id}) || state.nodes[id].record.wish == NodeWish::kDrain)
      continue;
    bytes[id] = state.nodes[id].record.bytes;
    held[id] = state.held[id];
  }
  return UnusableBytes(bytes, held, state.membership.view().regions.size(), state.record.replicas);
}

void AddNodeStatus(const ClusterState& state, uint64_t now_us, StatusReply* status) {
  std::vector<uint32_t> regions(state.nodes.size(), 0);
  std::vector<uint32_t> missing(state.nodes.size(), 0);
  const View& view = state.membership.view();
  for (const RegionPlacement& region : view.regions) {
    bool whole = region.missing == 0;
    for (int i = 0; i < view.replicas; ++i) {
      ++regions[region.nodes[i].value];
      if (i >= view.replicas - region.missing) ++missing[region.nodes[i].value];
      whole = whole && state.nodes[region.nodes[i].value].serving;
    }
    if (whole) ++status->status.regions_fully_redundant;
  }
  const auto add = [&](uint64_t id, const AgentRecord& info, const MemberReport& report) {
    MemberStatusInfo& one = status->status.members.emplace_back();
    one.kind = MemberKind::kMemoryNode;
    one.member = id;
    one.pid = info.pid;
    one.host = info.host;
    one.address = info.address;
    one.version = info.version;
    one.blocks = report.blocks;
    one.granted_blocks = report.granted_blocks;
    one.operations = report.operations;
    one.page_bytes = report.page_bytes;
    const auto member = state.members.find(id);
    if (member != state.members.end() && member->second.lease_end_us > now_us) {
      one.lease_left_ms = (member->second.lease_end_us - now_us) / 1000;
    }
    return &one;
  };
  const std::vector<uint64_t> unusable = Unusable(state);
  for (size_t i = 0; i < state.nodes.size(); ++i) {
    const auto id = static_cast<uint16_t>(i);
    const Node& node = state.nodes[id];
    // The cluster does not wait for it: people need not see it any more.
    if (IsGoneForGood(state, id, now_us)) {
      continue;
    }
    MemberStatusInfo* const one = add(node.member, node.info, node.report);
    one->node = id;
    one->state = NodeStateName(state, id, regions[id], missing[id]);
    one->bytes = node.record.bytes;
    one->unusable_bytes = unusable[id];
    one->regions = regions[id];
    one->rdma = node.record.address.rdma;
  }
  // Those that wait for the map have no number yet; they are shown in the order of their coming.
  for (size_t i = 0; i < state.forming.size(); ++i) {
    const Member& member = state.members.at(state.forming[i]);
    MemberStatusInfo* const one = add(member.id, member.info, member.report);
    one->node = static_cast<uint32_t>(i);
    one->state = "joining";
    one->bytes = member.offer.bytes;
  }
}

void AddAgentStatus(const ClusterState& state, uint64_t now_us, StatusReply* status) {
  for (const auto& [id, member] : state.members) {
    if (member.kind != MemberKind::kAgent) continue;
    MemberStatusInfo& one = status->status.members.emplace_back();
    one.kind = MemberKind::kAgent;
    one.member = id;
    one.pid = member.info.pid;
    one.host = member.info.host;
    one.address = member.info.address;
    one.version = member.info.version;
    one.workers = member.seats.size();
    switch (member.standing) {
      case Standing::kUp:
        one.state = "up";
        break;
      case Standing::kAway:
        one.state = "lost";
        break;
      case Standing::kExpelled:
      case Standing::kFenced:
        one.state = "fencing";
        break;
    }
    if (member.lease_end_us > now_us && member.stream != 0) {
      one.lease_left_ms = (member.lease_end_us - now_us) / 1000;
    }
  }
}

}  // namespace

std::string WaitingFor(const ClusterState& state) {
  if (!state.has_map()) {
    return std::to_string(state.forming.size()) + " of " + std::to_string(state.record.nodes) +
           " memory nodes have joined";
  }
  if (std::string damaged = WhatDamagedWaitFor(state); !damaged.empty()) return damaged;
  for (uint16_t node = 0; node < state.NodesInView(); ++node) {
    if (state.nodes[node].serving || state.nodes[node].record.out) continue;
    return "memory node " + std::to_string(node) +
           (state.nodes[node].member != 0 ? " has joined and does not serve yet"
                                          : " is not there") +
           WhatLossWaitsFor(state);
  }
  if (!state.time_is_known && HasQueued(state, ChangeKind::kJoin)) {
    return "for a member of before the restart, which knows the cluster's time, to come back";
  }
  if (state.due.empty() && state.queue.empty() && !state.hold.has_value())
    return WhatRepairsWaitFor(state);
  if (state.former_repairer != 0) {
    return "agent " + std::to_string(state.former_repairer) + " has a repair under way";
  }
  std::string who =
      WhoIsAway(state, state.hold.has_value() ? state.hold->leave : std::vector<NodeId>());
  if (!who.empty()) return who;
  for (const auto& [id, member] : state.members) {
    if (!Counts(member) ||
        (state.hold.has_value() ? member.held >= state.hold->epoch
                                : member.in_force >= state.membership.view().epoch.value)) {
      continue;
    }
    return "agent " + std::to_string(id) + " has not taken over the newest map yet";
  }
  if (state.hold.has_value() && state.repair.has_value()) {
    return "agent " + std::to_string(state.repair->member) + " has a repair under way";
  }
  return "";
}

std::string WhatDamagedWaitFor(const ClusterState& state) {
  std::vector<NodeId> damaged;
  std::string numbers;
  std::string absent;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    if (node.record.out || node.serving) continue;
    if (!node.damage.empty()) damaged.push_back(NodeId{id});
    std::string& text = node.damage.empty() ? absent : numbers;
    text += (text.empty() ? "" : ", ") + std::to_string(id);
  }
  if (damaged.empty()) return "";
  const std::string whose = damaged.size() == 1 ? "memory node " : "memory nodes ";
  const std::string is = "the memory of " + whose + numbers + " is damaged";
  if (const size_t regions = RegionsWithoutMajority(state); regions != 0) {
    const std::string lacking = std::to_string(regions) + " regions have no majority without it";
    if (!absent.empty()) return is + ", and " + lacking + ": memory nodes must be back: " + absent;
    return is + ", and " + lacking +
           ": start with --accept-damaged yes to go on with what it holds";
  }
  const std::string who = WhoIsAway(state, damaged);
  return is + "; it is copied from the others once all agents do without it" +
         (who.empty() ? "" : ": " + who);
}

StatusReply MakeStatus(const ClusterState& state, uint64_t now_us) {
  StatusReply status;
  ClusterStatusInfo& cluster = status.status;
  cluster.cluster = state.record.cluster;
  cluster.epoch = state.membership.view().epoch.value;
  cluster.replicas = static_cast<uint32_t>(state.record.replicas);
  cluster.nodes_expected = state.record.nodes;
  cluster.regions = static_cast<uint32_t>(state.membership.view().regions.size());
  cluster.region_bytes = kRegionBytes;
  const std::vector<ReachReport> reports = ReachReports(state);
  const bool all_reach = std::all_of(reports.begin(), reports.end(),
                                     [](const ReachReport& one) { return one.unreached.empty(); });
  cluster.state = !AddressesKnown(state)                                       ? "forming"
                  : AllServe(state) && state.missing_regions == 0 && all_reach ? "serving"
                  : LacksMajority(state, now_us)                               ? "not serving"
                                                                               : "degraded";
  AddNodeStatus(state, now_us, &status);
  AddAgentStatus(state, now_us, &status);
  status.waiting_for = WaitingFor(state);
  status.moving = Moving(state, now_us);
  status.unreached = WhatIsUnreached(state, now_us);
  cluster.usage = Usage(state);
  cluster.short_of_memory = WhyShortOfMemory(state);
  return status;
}

}  // namespace onetrip::master
