// What people are shown of the cluster.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {

std::string ClusterText(uint64_t cluster) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(cluster));
  return text;
}

std::string Coordinator::WaitingFor() const {
  if (!has_map()) {
    return std::to_string(forming_.size()) + " of " + std::to_string(record_.nodes) +
           " memory nodes have joined";
  }
  if (std::string damaged = WhatDamagedWaitFor(); !damaged.empty()) return damaged;
  for (uint16_t node = 0; node < NodesInView(); ++node) {
    if (nodes_[node].serving || nodes_[node].record.out) continue;
    return "memory node " + std::to_string(node) +
           (nodes_[node].member != 0 ? " has joined and does not serve yet" : " is not there") +
           WhatLossWaitsFor();
  }
  if (!time_is_known_ && HasQueued(ChangeKind::kJoin)) {
    return "for a member of before the restart, which knows the cluster's time, to come back";
  }
  if (due_.empty() && queue_.empty() && !hold_.has_value()) return WhatRepairsWaitFor();
  if (former_repairer_ != 0) {
    return "agent " + std::to_string(former_repairer_) + " has a repair under way";
  }
  std::string who = WhoIsAway(hold_.has_value() ? hold_->leave : std::vector<NodeId>());
  if (!who.empty()) return who;
  for (const auto& [id, member] : members_) {
    if (!Counts(member) ||
        (hold_.has_value() ? member.held >= hold_->epoch
                           : member.in_force >= membership_.view().epoch.value)) {
      continue;
    }
    return "agent " + std::to_string(id) + " has not taken over the newest map yet";
  }
  if (hold_.has_value() && repair_.has_value()) {
    return "agent " + std::to_string(repair_->member) + " has a repair under way";
  }
  return "";
}

// What to do when the nodes that are lost do not come back.
std::string Coordinator::WhatLossWaitsFor() const {
  const size_t regions = RegionsWithoutMajority();
  if (regions == 0) return "";
  const std::string text =
      ", and " + std::to_string(regions) + " regions have no majority without it";
  if (RegionsWithoutAny() != 0) return text;
  return text + "; if it is lost for good: onetrip node accept-loss";
}

std::string Coordinator::WhatDamagedWaitFor() const {
  std::vector<NodeId> damaged;
  std::string numbers;
  std::string absent;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    if (node.record.out || node.serving) continue;
    if (!node.damage.empty()) damaged.push_back(NodeId{id});
    std::string& text = node.damage.empty() ? absent : numbers;
    text += (text.empty() ? "" : ", ") + std::to_string(id);
  }
  if (damaged.empty()) return "";
  const std::string whose = damaged.size() == 1 ? "memory node " : "memory nodes ";
  const std::string is = "the memory of " + whose + numbers + " is damaged";
  if (const size_t regions = RegionsWithoutMajority(); regions != 0) {
    const std::string lacking = std::to_string(regions) + " regions have no majority without it";
    if (!absent.empty()) return is + ", and " + lacking + ": memory nodes must be back: " + absent;
    return is + ", and " + lacking +
           ": start with --accept-damaged yes to go on with what it holds";
  }
  const std::string who = WhoIsAway(damaged);
  return is + "; it is copied from the others once all agents do without it" +
         (who.empty() ? "" : ": " + who);
}

std::string Coordinator::WhatRepairsWaitFor() const {
  const bool due = record_.resolve_due || record_.scrub_due || missing_regions_ != 0;
  if (!due) return "";
  for (uint16_t node = 0; node < NodesInView(); ++node) {
    if (!nodes_[node].record.out || nodes_[node].serving || !HoldsRegion(NodeId{node})) continue;
    return std::to_string(missing_regions_) + " regions lack a replica until memory node " +
           std::to_string(node) + " is back" +
           (HasRoomFor(NodeId{node}) ? ", or is replaced after " +
                                           std::to_string(options_.replace_after_ms / 1000) + " s"
                                     : " or another with room for them joins");
  }
  if (!SomebodyWorks()) return "repairs need an agent with workers";
  for (uint16_t node = 0; node < NodesInView(); ++node) {
    if (lacking_[node] == 0 || nodes_[node].record.out) continue;
    std::string who = WhoDoesNotReach(NodeId{node});
    if (!who.empty()) return who;
  }
  return "";
}

std::string Coordinator::Moving() const {
  if (!MovesAreWanted()) return "";
  std::string text;
  bool drains = false;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    const NodeRecord& record = nodes_[id].record;
    const uint32_t held = id < held_.size() ? held_[id] : 0;
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
  text += Shrinking();
  if (!SomebodyWorks()) return text + "; moves need an agent with workers";
  if (!AwaitsNoCopy() || !AllServe()) {
    return text + "; they wait until no region lacks a replica";
  }
  if (record_.leaving != 0) return text;
  MovePlanner planner = PlanMoves();
  if (const uint64_t more = planner.regions_to_come(); more != 0) {
    text += "; " + std::to_string(more) + " regions are to be added";
  }
  // What is next goes there.
  std::vector<NodeId> next;
  const std::vector<RegionPlacement> grown = planner.Grow(1);
  if (!grown.empty()) {
    next.assign(grown[0].nodes.begin(), grown[0].nodes.begin() + record_.replicas);
  } else if (const std::optional<RegionMove> move = planner.Next(); move.has_value()) {
    next.push_back(move->to);
  } else {
    return text + (drains ? "; there is no room for them" : "");
  }
  for (const NodeId node : next) {
    if (node.value >= NodesInView() || nodes_[node.value].record.out) continue;
    const std::string who = WhoDoesNotReach(node);
    if (!who.empty()) return text + "; " + who;
  }
  return grown.empty() && RegistersAreToEnd() ? text + "; keys become records first" : text;
}

std::string Coordinator::NodeStateName(uint16_t node, uint32_t regions, uint32_t missing) const {
  const Node& one = nodes_[node];
  const NodeWish wish = one.record.wish;
  // Not while somebody may still ask it.
  const bool idle = one.record.out && (one.member == 0 || InForceEverywhere(one.out_epoch));
  if (wish == NodeWish::kDrain && regions == 0 && idle) return "drained";
  if (one.member == 0 && regions != 0 && one.record.out) return "out";
  if (one.member == 0) return one.left ? "left" : "lost";
  if (!one.damage.empty()) return "damaged";
  if (!one.serving) return "joining";
  if (missing != 0 && one.record.out && IsUnreached(node)) return "out";
  if (missing != 0) return "copying";
  if (wish == NodeWish::kDrain) return "draining";
  if (wish == NodeWish::kShare) return "filling";
  return regions == 0 ? "spare" : "up";
}

// Of nodes that regions may lie on: those of a spare, or of one that drains, wait for their use.
std::vector<uint64_t> Coordinator::Unusable() const {
  std::vector<uint64_t> bytes(nodes_.size(), 0);
  std::vector<uint32_t> held(nodes_.size(), 0);
  for (uint16_t id = 0; id < static_cast<uint16_t>(nodes_.size()); ++id) {
    if (!HoldsRegion(NodeId{id}) || nodes_[id].record.wish == NodeWish::kDrain) continue;
    bytes[id] = nodes_[id].record.bytes;
    held[id] = held_[id];
  }
  return UnusableBytes(bytes, held, membership_.view().regions.size(), record_.replicas);
}

void Coordinator::AddNodeStatus(uint64_t now_us, StatusReply* status) const {
  std::vector<uint32_t> regions(nodes_.size(), 0);
  std::vector<uint32_t> missing(nodes_.size(), 0);
  const View& view = membership_.view();
  for (const RegionPlacement& region : view.regions) {
    bool whole = region.missing == 0;
    for (int i = 0; i < view.replicas; ++i) {
      ++regions[region.nodes[i].value];
      if (i >= view.replicas - region.missing) ++missing[region.nodes[i].value];
      whole = whole && nodes_[region.nodes[i].value].serving;
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
    const auto member = members_.find(id);
    if (member != members_.end() && member->second.lease_end_us > now_us) {
      one.lease_left_ms = (member->second.lease_end_us - now_us) / 1000;
    }
    return &one;
  };
  const std::vector<uint64_t> unusable = Unusable();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto id = static_cast<uint16_t>(i);
    const Node& node = nodes_[id];
    // Nobody waits for it: people need not see it any more.
    if (IsGoneForGood(id, now_us)) {
      continue;
    }
    MemberStatusInfo* const one = add(node.member, node.info, node.report);
    one->node = id;
    one->state = NodeStateName(id, regions[id], missing[id]);
    one->bytes = node.record.bytes;
    one->unusable_bytes = unusable[id];
    one->regions = regions[id];
  }
  // Those that wait for the map have no number yet; they are shown in the order of their coming.
  for (size_t i = 0; i < forming_.size(); ++i) {
    const Member& member = members_.at(forming_[i]);
    MemberStatusInfo* const one = add(member.id, member.info, member.report);
    one->node = static_cast<uint32_t>(i);
    one->state = "joining";
    one->bytes = member.offer.bytes;
  }
}

void Coordinator::AddAgentStatus(uint64_t now_us, StatusReply* status) const {
  for (const auto& [id, member] : members_) {
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

bool Coordinator::LacksMajority(uint64_t now_us) const {
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    // One that may be coming back, as after the master's restart, is not given up yet.
    if (!node.record.out && !node.serving && now_us < node.lost_at_us) return false;
  }
  return RegionsWithoutMajority() != 0;
}

StatusReply Coordinator::Status(uint64_t now_us) const {
  StatusReply status;
  ClusterStatusInfo& cluster = status.status;
  cluster.cluster = record_.cluster;
  cluster.epoch = membership_.view().epoch.value;
  cluster.replicas = static_cast<uint32_t>(record_.replicas);
  cluster.nodes_expected = record_.nodes;
  cluster.regions = static_cast<uint32_t>(membership_.view().regions.size());
  cluster.region_bytes = kRegionBytes;
  const std::vector<ReachReport> reports = ReachReports();
  const bool all_reach = std::all_of(reports.begin(), reports.end(),
                                     [](const ReachReport& one) { return one.unreached.empty(); });
  cluster.state = !AddressesKnown()                                  ? "forming"
                  : AllServe() && missing_regions_ == 0 && all_reach ? "serving"
                  : LacksMajority(now_us)                            ? "not serving"
                                                                     : "degraded";
  AddNodeStatus(now_us, &status);
  AddAgentStatus(now_us, &status);
  status.waiting_for = WaitingFor();
  status.moving = Moving();
  status.unreached = WhatIsUnreached(now_us);
  cluster.usage = Usage();
  cluster.short_of_memory = WhyShortOfMemory();
  return status;
}

}  // namespace onetrip
