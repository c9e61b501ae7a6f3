// How faults strike a World, and how they end.
#include <string>
#include <utility>

#include "tests/sim/world.h"

namespace onetrip {

void World::Strike(void* arg) {
  auto& planned = *static_cast<PlannedFault*>(arg);
  planned.world->StrikeNow(planned);
}

void World::EndFault(void* arg) {
  auto& planned = *static_cast<PlannedFault*>(arg);
  planned.world->EndNow(planned.fault);
}

void World::StrikeNow(PlannedFault& planned) {
  const Fault& fault = planned.fault;
  Agent& agent = *current_.at(fault.agent);
  const NodeId node{static_cast<uint16_t>(fault.node)};
  const bool of_agent = fault.kind == FaultKind::kCrashAgent ||
                        fault.kind == FaultKind::kPauseAgent ||
                        fault.kind == FaultKind::kBreakChannel;
  if (of_agent && (agent.process().dead() || !agent.started())) return;
  ++faults_;
  trace_.Note("FAULT " + DescribeFault(fault));
  switch (fault.kind) {
    case FaultKind::kCrashAgent:
      agent.process().Kill();
      lossy_ = true;
      break;
    case FaultKind::kPauseAgent:
      agent.process().Pause();
      break;
    case FaultKind::kPauseNode:
      network_->PauseNode(node);
      break;
    case FaultKind::kLoseNode:
      nodes_.at(node.value)->SetReachable(false);
      lossy_ = true;
      break;
    case FaultKind::kSlowNode:
      network_->SetSlowness(node, static_cast<uint32_t>(fault.amount));
      break;
    case FaultKind::kSlowLink:
      agent.fabric().SetSlowness(node, static_cast<uint32_t>(fault.amount));
      break;
    case FaultKind::kBreakChannel:
      agent.fabric().BreakChannel(node);
      lossy_ = true;
      break;
    case FaultKind::kStepClock:
      agent.process().skewed_clock().Step(fault.amount);
      break;
    case FaultKind::kDriftClock:
      agent.process().skewed_clock().SetDriftPpm(fault.amount);
      break;
    case FaultKind::kMasterDown:
      master_->SetDown(true);
      break;
  }
  if (fault.duration_ns > 0) {
    executor_.At(executor_.NowNs() + fault.duration_ns, EndFault, &planned);
  }
}

void World::EndNow(const Fault& fault) {
  const NodeId node{static_cast<uint16_t>(fault.node)};
  trace_.Note("END OF " + DescribeFault(fault));
  switch (fault.kind) {
    case FaultKind::kCrashAgent: {
      Agent& agent = AddAgent(fault.agent);
      ++starting_;
      agent.process().Spawn(agent.gate(), Restart(&agent, fault.agent));
      break;
    }
    case FaultKind::kPauseAgent:
      current_.at(fault.agent)->process().Resume();
      break;
    case FaultKind::kPauseNode:
      network_->ResumeNode(node);
      break;
    case FaultKind::kSlowNode:
      network_->SetSlowness(node, 1);
      break;
    case FaultKind::kSlowLink:
      current_.at(fault.agent)->fabric().SetSlowness(node, 1);
      break;
    case FaultKind::kMasterDown:
      master_->SetDown(false);
      break;
    case FaultKind::kLoseNode:
    case FaultKind::kBreakChannel:
    case FaultKind::kStepClock:
    case FaultKind::kDriftClock:
      break;
  }
}

Task<void> World::Restart(Agent* agent, uint32_t number) {
  const Status status = co_await agent->Start(OptionsOf(number), memory_.get());
  --starting_;
  // Without its nodes an agent cannot start; its clients have nobody to talk to.
  if (status.ok()) {
    StartClients(number);
  } else {
    agent->process().Kill();
  }
}

}  // namespace onetrip
