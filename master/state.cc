#include "master/state.h"

#include <algorithm>

#include "client_core/cluster/repair_order.h"

namespace onetrip::master {
namespace {

std::string WhatIsWrongWithSeats(const ClusterState& state) {
  for (const auto& [index, seat] : state.seats) {
    const auto member = state.members.find(seat.member);
    if (member == state.members.end() || !member->second.seats.contains(index)) {
      return "seat " + std::to_string(index) + " is none of its agent's";
    }
  }
  for (const auto& [id, member] : state.members) {
    for (const uint16_t index : member.seats) {
      const auto seat = state.seats.find(index);
      if (seat == state.seats.end() || seat->second.member != id) {
        return "agent " + std::to_string(id) + " has a seat that is another's";
      }
    }
  }
  return "";
}

std::string WhatIsWrongWithStreams(const ClusterState& state) {
  for (const auto& [stream, id] : state.streams) {
    if (id == 0) continue;  // a tool
    const auto member = state.members.find(id);
    if (member == state.members.end() || member->second.stream != stream) {
      return "stream " + std::to_string(stream) + " belongs to no member";
    }
  }
  for (const Change& change : state.queue) {
    if (change.stream != 0 && !state.members.contains(change.member)) {
      return "a change waits for a member that is gone";
    }
  }
  for (size_t node = 0; node < state.nodes.size(); ++node) {
    const uint64_t id = state.nodes[node].member;
    if (id == 0) continue;
    const auto member = state.members.find(id);
    if (member == state.members.end() || member->second.node != node) {
      return "memory node " + std::to_string(node) + " is attended by no member";
    }
  }
  return "";
}

std::string WhatIsWrongWithRegions(const ClusterState& state) {
  const View& view = state.membership.view();
  if (state.nodes.size() < view.nodes.size()) return "the view names nodes that are not known";
  std::vector<uint32_t> held(view.nodes.size(), 0);
  size_t missing = 0;
  for (const RegionPlacement& region : view.regions) {
    missing += region.missing != 0 ? 1 : 0;
    for (int i = 0; i < view.replicas; ++i) ++held.at(region.nodes[i].value);
  }
  if (missing != state.missing_regions || held != state.held) {
    return "the counts of regions are not those of the view";
  }
  return "";
}

}  // namespace

std::string WhatDoesNotHold(const ClusterState& state) {
  if (std::string wrong = WhatIsWrongWithSeats(state); !wrong.empty()) return wrong;
  if (std::string wrong = WhatIsWrongWithStreams(state); !wrong.empty()) return wrong;
  if (!state.has_map()) return state.hold.has_value() ? "a hold without a map" : "";
  const uint64_t epoch = state.membership.view().epoch.value;
  if (state.view == nullptr || state.view->epoch.value != epoch) {
    return "members were not sent the newest view";
  }
  if (state.hold.has_value() && state.hold->epoch != epoch + 1) return "a hold for an old view";
  if (state.repair.has_value() && IsUnderHold(state.repair->kind) && !state.hold.has_value()) {
    return "a repair that needs a hold, without one";
  }
  return WhatIsWrongWithRegions(state);
}

}  // namespace onetrip::master
