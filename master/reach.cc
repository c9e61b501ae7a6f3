#include "master/reach.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/placement.h"
#include "master/region_moves.h"
#include "master/texts.h"

namespace onetrip::master {
namespace {

constexpr uint64_t kUsPerMs = 1000;

// How often the time doubles that a node must stay out.
constexpr uint32_t kCutsMax = 6;

// A node whose channels broke so long ago is as good as any.
constexpr uint64_t kCutsForgottenUs = 600'000'000;

bool IsToBeGiven(const ClusterState& state, uint16_t id) {
  return !state.nodes[id].record.out && state.nodes[id].serving &&
         (state.lacking[id] != 0 || TakesRegions(state, id));
}

// For how long `unreached` of `member` has counted; 0: it does not count yet.
uint64_t CountsForMs(const ClusterState& state, const Member& member, uint16_t node,
                     uint64_t now_us) {
  const uint64_t since_us = member.unreached.at(node).counts_us;
  // Channels to a node that has just come are made in their own time.
  const uint64_t first_us =
      state.nodes[node].reach_since_us + 2 * state.options.reach_settle_ms * kUsPerMs;
  const uint64_t from_us = std::max(since_us, first_us);
  return now_us <= from_us ? 0 : (now_us - from_us) / kUsPerMs;
}

// Reports of processes that go on, and have heard of the map.
bool IsHeard(const Member& member) {
  return member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
         member.stream != 0 && member.sent != 0;
}

// True if the node is in, and holds places of the map but nothing that lives.
bool IsEmpty(const ClusterState& state, uint16_t id) {
  return !state.nodes[id].record.out && state.nodes[id].serving && state.held[id] != 0 &&
         state.held[id] == state.lacking[id];
}

// The verdict on nodes that hold something that lives.
ReachVerdict VerdictOnLiveNodes(const ClusterState& state, uint64_t now_us, uint64_t settle_ms) {
  const std::vector<ReachReport> reports = ReachReports(state);
  bool due = false;
  for (const ReachReport& report : reports) {
    for (const uint16_t node : report.unreached) {
      due |= CountsForMs(state, state.members.at(report.agent), node, now_us) >= settle_ms;
    }
  }
  if (!due) return {};
  if (Planted(Bug::kOneReportForAll)) {
    for (const ReachReport& report : reports) {
      if (!report.unreached.empty()) {
        return {ReachVerdict::Kind::kNodeOut, 0, report.unreached.front(), 1, reports.size()};
      }
    }
  }
  ReachVerdict verdict = JudgeReach(reports, [&state](const std::vector<uint16_t>& nodes) {
    return RegionsWithoutMajority(state, nodes) == 0;
  });
  // While no agent works, no node or agent need go; but one that is to begin must be able to.
  const bool by_all = verdict.kind == ReachVerdict::Kind::kNodeOut && verdict.by == reports.size();
  const bool is_nobody = verdict.kind == ReachVerdict::Kind::kNobody;
  return SomebodyWorks(state) || by_all || is_nobody ? verdict : ReachVerdict();
}

// A node on which nothing lives, and which an agent does not reach that may wait to join for that
// alone. Else kNothing.
ReachVerdict EmptyNodeOut(const ClusterState& state, uint64_t now_us, uint64_t settle_ms) {
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (!IsEmpty(state, id) || Planted(Bug::kEmptyNodeStays)) continue;
    size_t by = 0;
    size_t of = 0;
    for (const auto& [member_id, member] : state.members) {
      if (!IsHeard(member)) continue;
      const auto found = member.unreached.find(id);
      const bool misses = found != member.unreached.end() && found->second.over_us == 0 &&
                          CountsForMs(state, member, id, now_us) >= settle_ms;
      by += misses ? 1 : 0;
      ++of;
    }
    if (by != 0) return {ReachVerdict::Kind::kNodeOut, 0, id, by, of};
  }
  return {};
}

// True soon after no agent could be helped: they do not find the nodes again all at once, and who
// is late is no reason for any to go.
bool IsHealing(const ClusterState& state, uint64_t now_us) {
  const uint64_t heals_us = 3 * state.options.reach_settle_ms * kUsPerMs;
  return state.nobody_helped_us != 0 && !state.nobody_helped_again &&
         now_us - state.nobody_helped_us < heals_us;
}

ReachVerdict VerdictOfReach(const ClusterState& state, uint64_t now_us) {
  // Whoever is lost is dealt with first; that may need a majority of what is left.
  if (!state.has_map() || !AllServe(state) || state.former_repairer != 0 ||
      Planted(Bug::kReportsIgnored)) {
    return {};
  }
  const bool some_work = SomebodyWorks(state);
  const uint64_t settle_ms =
      some_work ? state.options.reach_settle_ms
                : std::max(state.options.reach_settle_ms, state.options.node_wait_ms);
  const ReachVerdict verdict = VerdictOnLiveNodes(state, now_us, settle_ms);
  // No agent that works can go on: then one that waits must be able to begin.
  const bool needs_another = !some_work || verdict.kind == ReachVerdict::Kind::kNobody;
  const ReachVerdict empty =
      needs_another ? EmptyNodeOut(state, now_us, settle_ms) : ReachVerdict();
  return empty.kind == ReachVerdict::Kind::kNothing ? verdict : empty;
}

}  // namespace

// True if every agent can use what is placed there: the nodes are in, and each agent reaches them.
bool AllReach(const ClusterState& state, const std::vector<RegionPlacement>& regions) {
  for (const RegionPlacement& region : regions) {
    for (int i = 0; i < state.record.replicas; ++i) {
      const NodeId node = region.nodes[i];
      if (node.value >= state.NodesInView() || state.nodes[node.value].record.out) return false;
      if (!WhoDoesNotReach(state, node).empty()) return false;
    }
  }
  return true;
}

void AskWhoReaches(ClusterState& state, Effects& effects) {
  if (state.missing_regions == 0 && !MovesAreWanted(state)) return;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (!IsToBeGiven(state, id)) continue;
    for (auto& entry : state.members) {
      Member& member = entry.second;
      const bool attends = member.kind == MemberKind::kAgent && member.stream != 0;
      if (!attends || member.sent == 0 || member.reaches.contains(id)) continue;
      member.reaches[id].id = state.next_reach;
      Send(effects, member.stream, ReachMessage{state.next_reach++, NodeId{id}});
    }
  }
}

void OnReached(Member& member, const ReachedMessage& message) {
  for (auto& [node, question] : member.reaches) {
    if (question.id == message.id) question.reached = true;
  }
}

void ForgetWhoReaches(ClusterState& state, uint16_t node) {
  for (auto& entry : state.members) entry.second.reaches.erase(node);
}

std::string WhoDoesNotReach(const ClusterState& state, NodeId node) {
  for (const auto& [id, member] : state.members) {
    if (!Counts(member) || IsHarmless(state, member, {})) continue;
    const auto found = member.reaches.find(node.value);
    if (found != member.reaches.end() && found->second.reached) continue;
    return AgentText(member) + " does not reach memory node " + std::to_string(node.value) + " yet";
  }
  return "";
}

void OnUnreached(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                 const UnreachedMessage& message) {
  if (member.kind != MemberKind::kAgent) return;
  for (auto& [node, unreached] : member.unreached) {
    const bool still = std::any_of(message.nodes.begin(), message.nodes.end(),
                                   [id = node](const auto& one) { return one.node.value == id; });
    if (!still && unreached.over_us == 0) unreached.over_us = now_us;
  }
  const uint64_t flap_us = state.options.reach_flap_ms * kUsPerMs;
  for (const UnreachedMessage::Node& one : message.nodes) {
    if (one.node.value >= state.nodes.size()) continue;
    const auto [entry, fresh] = member.unreached.try_emplace(one.node.value);
    Unreached& unreached = entry->second;
    const uint64_t over_us = std::exchange(unreached.over_us, 0);
    if (!fresh && over_us == 0) continue;
    unreached.worker = one.worker;
    unreached.since_us = now_us - std::min(now_us, one.for_ms * kUsPerMs);
    // A fault that comes and goes is one cut, not many short ones.
    if (fresh || now_us - over_us > flap_us) unreached.counts_us = now_us;
    Log(effects, LogLevel::kWarning,
        AgentText(member) + " does not reach memory node " + std::to_string(one.node.value));
  }
}

std::vector<ReachReport> ReachReports(const ClusterState& state) {
  const bool some_work = SomebodyWorks(state);
  std::vector<ReachReport> reports;
  for (const auto& [id, member] : state.members) {
    const bool has_say = IsHeard(member) && (!some_work || !member.seats.empty());
    if (!has_say) continue;
    ReachReport& report = reports.emplace_back();
    report.agent = id;
    for (const auto& [node, unreached] : member.unreached) {
      // A node without a live replica is asked by no agent.
      const bool is_asked = node < state.NodesInView() && !state.nodes[node].record.out &&
                            state.nodes[node].serving && state.held[node] != state.lacking[node];
      if (unreached.over_us == 0 && is_asked) report.unreached.push_back(node);
    }
  }
  return reports;
}

void JudgeWhoIsReached(ClusterState& state, Effects& effects, uint64_t now_us) {
  std::optional<uint16_t> before;
  for (uint16_t id = 0; id < static_cast<uint16_t>(state.nodes.size()); ++id) {
    if (std::exchange(state.nodes[id].cut_off, false)) before = id;
  }
  ReachVerdict verdict = VerdictOfReach(state, now_us);
  if (verdict.kind == ReachVerdict::Kind::kNobody) {
    // A fault that comes again and again does not heal.
    if (state.told_unreached.empty()) {
      const uint64_t flap_us = state.options.reach_flap_ms * kUsPerMs;
      state.nobody_helped_again =
          state.nobody_helped_us != 0 && now_us - state.nobody_helped_us < flap_us;
    }
    state.nobody_helped_us = now_us;
  } else if (IsHealing(state, now_us)) {
    verdict = {};
  }
  const std::string node = "memory node " + std::to_string(verdict.node);
  if (verdict.kind != ReachVerdict::Kind::kNobody) state.told_unreached.clear();
  switch (verdict.kind) {
    case ReachVerdict::Kind::kNothing:
      break;
    case ReachVerdict::Kind::kNodeOut:
      state.nodes[verdict.node].cut_off = true;
      if (before == verdict.node) break;
      Log(effects, LogLevel::kWarning,
          node + " is to be put out: " + std::to_string(verdict.by) + " of " +
              std::to_string(verdict.of) + " agents do not reach it");
      break;
    case ReachVerdict::Kind::kAgentOut:
      Expel(state, effects, state.members.at(verdict.agent),
            "it does not reach " + node + ", and others reach what the cluster needs; mend the " +
                "network between the two, it is let in again when it reaches every memory node");
      break;
    case ReachVerdict::Kind::kNobody:
      if (std::exchange(state.told_unreached, node) == node) break;
      Log(effects, LogLevel::kWarning,
          "no agent reaches " + node + " and all that is needed without it: " +
              "nobody can be helped until the network is whole");
      break;
  }
}

bool IsUnreached(const ClusterState& state, uint16_t node) {
  return std::any_of(state.members.begin(), state.members.end(), [node](const auto& entry) {
    const Member& member = entry.second;
    const auto found = member.unreached.find(node);
    return found != member.unreached.end() && found->second.over_us == 0 &&
           member.standing == Standing::kUp && member.stream != 0;
  });
}

bool MayComeIn(const ClusterState& state, uint16_t node, uint64_t now_us) {
  // Whoever is away may say that it does not.
  const bool somebody_is_away =
      std::any_of(state.members.begin(), state.members.end(),
                  [](const auto& entry) { return entry.second.standing == Standing::kAway; });
  return !somebody_is_away && now_us >= state.nodes[node].not_back_before_us &&
         !IsUnreached(state, node);
}

void NoteCut(ClusterState& state, uint16_t id, uint64_t now_us) {
  Node& node = state.nodes[id];
  node.cut_off = false;
  // Others take its places if that lasts.
  node.lost_at_us = now_us;
  if (now_us - node.last_cut_us > kCutsForgottenUs) node.cuts = 0;
  node.last_cut_us = now_us;
  node.not_back_before_us = now_us + (state.options.reach_back_ms * kUsPerMs << node.cuts);
  node.cuts = std::min(node.cuts + 1, kCutsMax);
}

std::string WhatIsUnreached(const ClusterState& state, uint64_t now_us) {
  std::string text;
  for (const auto& [id, member] : state.members) {
    if (member.kind != MemberKind::kAgent || member.standing != Standing::kUp) continue;
    for (const auto& [node, unreached] : member.unreached) {
      // A process that does not attend is told as lost, or was given up.
      if (unreached.over_us != 0 || state.nodes[node].member == 0) continue;
      text += (text.empty() ? "" : "; ") + AgentText(member) +
              (member.seats.empty() ? " waits to join, for it does not reach memory node "
                                    : " does not reach memory node ") +
              std::to_string(node) + " for " +
              std::to_string((now_us - unreached.since_us) / 1'000'000) + " s";
      if (unreached.worker != 0) text += " (worker " + std::to_string(unreached.worker) + ")";
    }
  }
  if (!state.told_unreached.empty()) {
    text +=
        "; no agent reaches all that is needed: nobody can be helped until the network is whole";
  }
  return text;
}

}  // namespace onetrip::master
