// Which agents reach the nodes that regions come to. A node is in the view before every agent has a
// channel to it, and a record that has a replica there cannot be written without one: so nothing is
// copied to a node before all have said that they reach it.
#include "master/coordinator.h"

namespace onetrip {

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

}  // namespace onetrip
