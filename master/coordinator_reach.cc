// Which agents reach which nodes. A node is in the view before every agent has a channel to it, and
// a record that has a replica there cannot be written without one: so nothing is copied to a node
// before all have said that they reach it, and who says later that it does not must go, or the node
// (reach_verdict.h).
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "master/coordinator.h"

namespace onetrip {
namespace {

constexpr uint64_t kUsPerMs = 1000;
// How often the time doubles that a node must stay out.
constexpr uint32_t kCutsMax = 6;
// A node whose channels broke so long ago is as good as any.
constexpr uint64_t kCutsForgottenUs = 600'000'000;

}  // namespace

bool Coordinator::IsToBeGiven(uint16_t id) const {
  return !nodes_[id].record.out && nodes_[id].serving && (lacking_[id] != 0 || TakesRegions(id));
}

void Coordinator::AskWhoReaches() {
  if (missing_regions_ == 0 && !MovesAreWanted()) return;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    if (!IsToBeGiven(id)) continue;
    for (auto& entry : members_) {
      Member& member = entry.second;
      const bool attends = member.kind == MemberKind::kAgent && member.stream != 0;
      if (!attends || member.sent == 0 || member.reaches.contains(id)) continue;
      member.reaches[id].id = next_reach_;
      Send(member.stream, ReachMessage{next_reach_++, NodeId{id}});
    }
  }
}

void Coordinator::OnReached(Member& member, const ReachedMessage& message) {
  for (auto& [node, question] : member.reaches) {
    if (question.id == message.id) question.reached = true;
  }
}

void Coordinator::ForgetWhoReaches(uint16_t node) {
  for (auto& entry : members_) entry.second.reaches.erase(node);
}

std::string Coordinator::WhoDoesNotReach(NodeId node) const {
  for (const auto& [id, member] : members_) {
    if (!Counts(member) || IsHarmless(member, {})) continue;
    const auto found = member.reaches.find(node.value);
    if (found != member.reaches.end() && found->second.reached) continue;
    return AgentText(member) + " does not reach memory node " + std::to_string(node.value) + " yet";
  }
  return "";
}

// ---- Nodes that agents do not reach ----

void Coordinator::OnUnreached(Member& member, uint64_t now_us, const UnreachedMessage& message) {
  if (member.kind != MemberKind::kAgent) return;
  for (auto& [node, unreached] : member.unreached) {
    const bool still = std::any_of(message.nodes.begin(), message.nodes.end(),
                                   [id = node](const auto& one) { return one.node.value == id; });
    if (!still && unreached.over_us == 0) unreached.over_us = now_us;
  }
  const uint64_t flap_us = options_.reach_flap_ms * kUsPerMs;
  for (const UnreachedMessage::Node& one : message.nodes) {
    if (one.node.value >= nodes_.size()) continue;
    const auto [entry, fresh] = member.unreached.try_emplace(one.node.value);
    Unreached& unreached = entry->second;
    const uint64_t over_us = std::exchange(unreached.over_us, 0);
    if (!fresh && over_us == 0) continue;
    unreached.worker = one.worker;
    unreached.since_us = now_us - std::min(now_us, one.for_ms * kUsPerMs);
    // What comes and goes is one cut, not many short ones.
    if (fresh || now_us - over_us > flap_us) unreached.counts_us = now_us;
    Log(LogLevel::kWarning,
        AgentText(member) + " does not reach memory node " + std::to_string(one.node.value));
  }
}

std::vector<ReachReport> Coordinator::ReachReports() const {
  const bool some_work = SomebodyWorks();
  std::vector<ReachReport> reports;
  for (const auto& [id, member] : members_) {
    const bool has_say = member.kind == MemberKind::kAgent && member.standing == Standing::kUp &&
                         member.stream != 0 && member.sent != 0 &&
                         (!some_work || !member.seats.empty());
    if (!has_say) continue;
    ReachReport& report = reports.emplace_back();
    report.agent = id;
    for (const auto& [node, unreached] : member.unreached) {
      // Who has nothing that lives is asked by nobody.
      const bool is_asked = node < NodesInView() && !nodes_[node].record.out &&
                            nodes_[node].serving && held_[node] != lacking_[node];
      if (unreached.over_us == 0 && is_asked) report.unreached.push_back(node);
    }
  }
  return reports;
}

uint64_t Coordinator::CountsForMs(const Member& member, uint16_t node, uint64_t now_us) const {
  const uint64_t since_us = member.unreached.at(node).counts_us;
  // Channels to a node that has just come are made in their own time.
  const uint64_t first_us = nodes_[node].reach_since_us + 2 * options_.reach_settle_ms * kUsPerMs;
  const uint64_t from_us = std::max(since_us, first_us);
  return now_us <= from_us ? 0 : (now_us - from_us) / kUsPerMs;
}

ReachVerdict Coordinator::VerdictOfReach(uint64_t now_us) const {
  // Whoever is lost is dealt with first; that may need a majority of what is left.
  if (!has_map() || !AllServe() || former_repairer_ != 0 || Planted(Bug::kReportsIgnored)) {
    return {};
  }
  const std::vector<ReachReport> reports = ReachReports();
  const bool some_work = SomebodyWorks();
  const uint64_t settle_ms = some_work ? options_.reach_settle_ms
                                       : std::max(options_.reach_settle_ms, options_.node_wait_ms);
  bool due = false;
  for (const ReachReport& report : reports) {
    for (const uint16_t node : report.unreached) {
      due |= CountsForMs(members_.at(report.agent), node, now_us) >= settle_ms;
    }
  }
  if (!due) return {};
  if (Planted(Bug::kOneReportForAll)) {
    for (const ReachReport& report : reports) {
      if (!report.unreached.empty()) {
        return {ReachVerdict::Kind::kNodeOut, 0, report.unreached.front(), 1};
      }
    }
  }
  ReachVerdict verdict = JudgeReach(reports, [this](const std::vector<uint16_t>& nodes) {
    return RegionsWithoutMajority(nodes) == 0;
  });
  // Where nobody works nobody need go; but who is to begin must be able to.
  const bool by_all = verdict.kind == ReachVerdict::Kind::kNodeOut && verdict.by == reports.size();
  if (!some_work && !by_all && verdict.kind != ReachVerdict::Kind::kNobody) return {};
  return verdict;
}

void Coordinator::JudgeWhoIsReached(uint64_t now_us) {
  std::optional<uint16_t> before;
  for (uint16_t id = 0; id < static_cast<uint16_t>(nodes_.size()); ++id) {
    if (std::exchange(nodes_[id].cut_off, false)) before = id;
  }
  const ReachVerdict verdict = VerdictOfReach(now_us);
  const std::string node = "memory node " + std::to_string(verdict.node);
  if (verdict.kind != ReachVerdict::Kind::kNobody) told_unreached_.clear();
  switch (verdict.kind) {
    case ReachVerdict::Kind::kNothing:
      break;
    case ReachVerdict::Kind::kNodeOut:
      nodes_[verdict.node].cut_off = true;
      if (before == verdict.node) break;
      Log(LogLevel::kWarning, node + " is to be put out: " + std::to_string(verdict.by) + " of " +
                                  std::to_string(ReachReports().size()) +
                                  " agents do not reach it");
      break;
    case ReachVerdict::Kind::kAgentOut:
      Expel(members_.at(verdict.agent),
            "it does not reach " + node + ", and others reach what the cluster needs; mend the " +
                "network between the two, it is let in again when it reaches every memory node");
      break;
    case ReachVerdict::Kind::kNobody:
      if (std::exchange(told_unreached_, node) == node) break;
      Log(LogLevel::kWarning, "no agent reaches " + node + " and all that is needed without it: " +
                                  "nobody can be helped until the network is whole");
      break;
  }
}

bool Coordinator::IsUnreached(uint16_t node) const {
  return std::any_of(members_.begin(), members_.end(), [node](const auto& entry) {
    const Member& member = entry.second;
    const auto found = member.unreached.find(node);
    return found != member.unreached.end() && found->second.over_us == 0 &&
           member.standing == Standing::kUp && member.stream != 0;
  });
}

bool Coordinator::MayComeIn(uint16_t node, uint64_t now_us) const {
  // Whoever is away may say that it does not.
  const bool somebody_is_away =
      std::any_of(members_.begin(), members_.end(),
                  [](const auto& entry) { return entry.second.standing == Standing::kAway; });
  return !somebody_is_away && now_us >= nodes_[node].not_back_before_us && !IsUnreached(node);
}

void Coordinator::NoteCut(uint16_t id, uint64_t now_us) {
  Node& node = nodes_[id];
  node.cut_off = false;
  // Others take its places if that lasts.
  node.lost_at_us = now_us;
  if (now_us - node.last_cut_us > kCutsForgottenUs) node.cuts = 0;
  node.last_cut_us = now_us;
  node.not_back_before_us = now_us + (options_.reach_back_ms * kUsPerMs << node.cuts);
  node.cuts = std::min(node.cuts + 1, kCutsMax);
}

std::string Coordinator::WhatIsUnreached(uint64_t now_us) const {
  std::string text;
  for (const auto& [id, member] : members_) {
    if (member.kind != MemberKind::kAgent || member.standing != Standing::kUp) continue;
    for (const auto& [node, unreached] : member.unreached) {
      if (unreached.over_us != 0) continue;
      text += (text.empty() ? "" : "; ") + AgentText(member) +
              (member.seats.empty() ? " waits to join, for it does not reach memory node "
                                    : " does not reach memory node ") +
              std::to_string(node) + " for " +
              std::to_string((now_us - unreached.since_us) / 1'000'000) + " s";
      if (unreached.worker != 0) text += " (worker " + std::to_string(unreached.worker) + ")";
    }
  }
  if (!told_unreached_.empty()) {
    text +=
        "; no agent reaches all that is needed: nobody can be helped until the network is whole";
  }
  return text;
}

}  // namespace onetrip
