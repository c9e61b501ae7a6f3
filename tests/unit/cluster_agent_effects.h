// Effects of an AgentSession as lines of text, for tests to compare.
#ifndef ONETRIP_TESTS_UNIT_CLUSTER_AGENT_EFFECTS_H_
#define ONETRIP_TESTS_UNIT_CLUSTER_AGENT_EFFECTS_H_

#include <string>
#include <vector>

#include "client_core/cluster/agent_session.h"

namespace onetrip {

class AgentEffectText {
 public:
  std::string operator()(const ViewHeldMessage& held) const {
    return "held " + std::to_string(held.epoch.value);
  }
  std::string operator()(const ViewInForceMessage& in_force) const {
    return "in force " + std::to_string(in_force.epoch.value);
  }
  std::string operator()(const ReachedMessage& reached) const {
    return "reached " + std::to_string(reached.id);
  }
  std::string operator()(const RepairedMessage& repaired) const {
    return (repaired.done ? "repaired " : "not repaired ") + std::to_string(repaired.id) +
           (repaired.done ? "" : ": " + repaired.reason);
  }
  std::string operator()(const UnreachedMessage& unreached) const {
    std::string text = "unreached:";
    for (const UnreachedMessage::Node& node : unreached.nodes) {
      text += (text.back() == ':' ? " " : ", ") + std::to_string(node.node.value) + " by " +
              std::to_string(node.worker) + " for " + std::to_string(node.for_ms) + " ms";
    }
    return text;
  }
  std::string operator()(const AgentMessage& message) const { return std::visit(*this, message); }

  std::string operator()(const QuiesceOrder& order) const {
    std::string text = order.kind == HoldKind::kAll     ? "quiesce all"
                       : order.kind == HoldKind::kSlots ? "quiesce slots"
                                                        : "quiesce";
    for (const NodeId node : order.evict) text += ", evict " + std::to_string(node.value);
    return text;
  }
  std::string operator()(const ReachOrder& order) const {
    return "reach " + std::to_string(order.node.value);
  }
  std::string operator()(const ViewOrder& order) const {
    return "view " + std::to_string(order.view->epoch.value) +
           (order.ends_quiesce ? ", go on" : "");
  }

  std::string operator()(const agent_effect::UseView& use) const {
    return "use view " + std::to_string(use.view->epoch.value);
  }
  std::string operator()(const agent_effect::TellWorkers& tell) const {
    std::string text = "tell";
    for (const WorkerId worker : tell.workers) text += " " + std::to_string(worker.value);
    return text + ": " + std::visit(*this, tell.order) + " (" + std::to_string(tell.ticket) + ")";
  }
  std::string operator()(const agent_effect::StartQuiesced& start) const {
    return std::to_string(start.worker.value) + " starts quiesced";
  }
  std::string operator()(const agent_effect::StartRepair& start) const {
    return std::to_string(start.worker.value) + " repairs " + std::to_string(start.id);
  }
  std::string operator()(const agent_effect::Complain& /*complain*/) const { return "complain"; }
};

inline std::vector<std::string> EffectTexts(const std::vector<AgentEffect>& effects) {
  std::vector<std::string> texts;
  texts.reserve(effects.size());
  for (const AgentEffect& effect : effects) {
    texts.push_back(std::visit(AgentEffectText(), effect));
  }
  return texts;
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_CLUSTER_AGENT_EFFECTS_H_
