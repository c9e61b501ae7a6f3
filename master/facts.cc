#include "master/facts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "master/placement.h"
#include "master/status.h"

namespace onetrip::master {
namespace {

bool Contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

bool LacksMajority(const ClusterState& state, uint64_t now_us) {
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    // One that may be coming back, as after the master's restart, is not given up yet.
    if (!node.record.out && !node.serving && now_us < node.lost_at_us) return false;
  }
  return RegionsWithoutMajority(state) != 0;
}

bool IsOutvoted(const ClusterState& state) {
  const auto counted = std::count_if(state.nodes.begin(), state.nodes.begin() + state.NodesInView(),
                                     [](const Node& node) { return !node.record.out; });
  return state.knows_newer.size() * 2 > static_cast<size_t>(counted);
}

Member* MemberOn(ClusterState& state, StreamId stream) {
  const auto found = state.streams.find(stream);
  if (found == state.streams.end()) return nullptr;
  const auto member = state.members.find(found->second);
  return member == state.members.end() ? nullptr : &member->second;
}

bool HoldsRegion(const ClusterState& state, NodeId node) {
  return node.value < state.held.size() && state.held[node.value] != 0;
}

size_t RegionsWithoutMajority(const ClusterState& state, const std::vector<uint16_t>& without) {
  const View& view = state.membership.view();
  const auto serves = [&](NodeId node) {
    return state.nodes[node.value].serving && !state.nodes[node.value].cut_off &&
           std::find(without.begin(), without.end(), node.value) == without.end();
  };
  return static_cast<size_t>(
      std::count_if(view.regions.begin(), view.regions.end(), [&](const RegionPlacement& region) {
        const auto live = std::count_if(
            region.nodes.begin(), region.nodes.begin() + view.replicas - region.missing, serves);
        // Fewer live only where the loss of the others was accepted.
        return live < std::min(Majority(view.replicas), view.replicas - region.missing);
      }));
}

bool IsHarmless(const ClusterState& state, const Member& member, const std::vector<NodeId>& leave) {
  if (member.standing == Standing::kFenced) return true;
  if (member.standing != Standing::kExpelled) return false;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    if (node.record.out || Contains(leave, NodeId{id})) continue;
    for (const uint16_t index : member.seats) {
      if (!node.fenced.contains(state.seats.at(index).worker.value)) return false;
    }
  }
  return true;
}

bool InForceEverywhere(const ClusterState& state, uint64_t epoch) {
  return std::all_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
    const Member& member = entry.second;
    return !Counts(member) || member.in_force >= epoch || IsHarmless(state, member, {});
  });
}

bool HasFencedAll(const ClusterState& state, uint16_t node) {
  const std::vector<WorkerId> workers = ExpelledWorkers(state);
  return std::all_of(workers.begin(), workers.end(), [&](WorkerId worker) {
    return state.nodes[node].fenced.contains(worker.value);
  });
}

bool SomebodyWorks(const ClusterState& state) {
  return std::any_of(state.members.begin(), state.members.end(), [](const auto& entry) {
    const Member& member = entry.second;
    return member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
           member.stream != 0 && member.sent != 0 && !member.seats.empty();
  });
}

Member* Repairer(ClusterState& state) {
  Member* first = nullptr;
  for (auto& [id, member] : state.members) {
    const bool works = member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
                       member.stream != 0 && member.sent != 0 && !member.seats.empty();
    if (!works) continue;
    if (id > state.failed_repairer) return &member;
    if (first == nullptr) first = &member;
  }
  return first;
}

std::optional<uint16_t> FindNode(const ClusterState& state, uint64_t incarnation) {
  for (size_t node = 0; node < state.nodes.size(); ++node) {
    if (state.nodes[node].record.incarnation == incarnation) return static_cast<uint16_t>(node);
  }
  return std::nullopt;
}

bool AllServe(const ClusterState& state) {
  return state.has_map() &&
         std::all_of(state.nodes.begin(), state.nodes.begin() + state.NodesInView(),
                     [](const Node& node) { return node.serving || node.record.out; });
}

bool AddressesKnown(const ClusterState& state) {
  return state.has_map() &&
         std::all_of(state.view->nodes.begin(), state.view->nodes.end(), [](const NodeInfo& node) {
           return node.out || node.address != NodeAddress();
         });
}

std::vector<WorkerId> ExpelledWorkers(const ClusterState& state) {
  std::vector<WorkerId> workers;
  for (const auto& [index, seat] : state.seats) {
    if (seat.expelled) workers.push_back(seat.worker);
  }
  for (const uint32_t worker : state.former) workers.push_back(WorkerId{worker});
  return workers;
}

bool Counts(const Member& member) {
  return member.kind == MemberKind::kAgent && member.standing != Standing::kFenced &&
         (!member.seats.empty() || (member.stream != 0 && member.sent != 0));
}

bool SomebodyAttendingIsLate(const ClusterState& state) {
  return std::any_of(state.members.begin(), state.members.end(), [](const auto& entry) {
    const Member& member = entry.second;
    return Counts(member) && member.stream != 0 && member.in_force < member.sent;
  });
}

bool HasQueued(const ClusterState& state, ChangeKind kind) {
  return std::any_of(state.queue.begin(), state.queue.end(),
                     [kind](const Change& change) { return change.kind == kind; });
}

size_t RegionsWithoutAny(const ClusterState& state) {
  const View& view = state.membership.view();
  return static_cast<size_t>(
      std::count_if(view.regions.begin(), view.regions.end(), [&](const RegionPlacement& region) {
        const auto* const end = region.nodes.begin() + view.replicas - region.missing;
        return std::none_of(region.nodes.begin(), end,
                            [&](NodeId node) { return state.nodes[node.value].serving; });
      }));
}

bool HasQueuedOfKeyspaces(const ClusterState& state) {
  return HasQueued(state, ChangeKind::kFlush) || HasQueued(state, ChangeKind::kSwap);
}

}  // namespace onetrip::master
