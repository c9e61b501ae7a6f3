// How faults strike a World, how they end, and how agents come back.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/sim/world.h"

namespace onetrip {
namespace {

// How often an agent that cannot start is started again, and after how long.
constexpr uint32_t kAttemptsMax = 6;
constexpr uint64_t kStartAgainNs = 300'000;

// An agent whose operations complete inline dies after at most kBatchOps of them: amid some batch.
constexpr uint32_t kBatchOps = 24;
// ... and so long after the fault at the latest, amid none if it has posted too little.
constexpr uint64_t kBatchNs = 20'000;
// Until one that is cut off is asked again.
constexpr uint64_t kAskAgainNs = 100'000;

}  // namespace

// ---- Memory nodes and their view of workers ----

void World::OnReachable(NodeId node, bool reachable) {
  MemoryNode& memory = *nodes_.at(node.value);
  if (memory.reachable() == reachable) return;
  memory.SetReachable(reachable);
  if (reachable) return;
  last_loss_ns_ = executor_.NowNs();
  // With the process its connections are gone.
  lossy_ = true;
  for (const auto& agent : agents_) agent->fabric().BreakChannel(node);
}

void World::OnJoined(Agent* agent, WorkerId worker) {
  workers_[worker] = agent;
  // The cluster may have taken it for dead while it was still being told its name.
  for (const NodeId node : refused_[worker]) agent->fabric().Fence(node);
  if (IsRefused(refused_[worker])) agent->memory().RefusedEverywhere();
}

bool World::IsRefused(const std::set<NodeId>& by) const {
  const View& view = master_.newest_view();
  for (uint16_t node = 0; node < view.node_count; ++node) {
    if (!by.contains(NodeId{node}) && !view.IsOut(NodeId{node})) return false;
  }
  return true;
}

void World::LookWhoIsRefused() {
  for (const auto& [worker, agent] : workers_) {
    const auto by = refused_.find(worker);
    if (by != refused_.end() && IsRefused(by->second)) agent->memory().RefusedEverywhere();
  }
}

void World::Refuse(NodeId node, WorkerId worker) {
  lossy_ = true;
  std::set<NodeId>& by = refused_[worker];
  if (!by.insert(node).second) return;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second->fabric().Fence(node);
  if (IsRefused(by)) found->second->memory().RefusedEverywhere();
}

// ---- Agents ----

void World::Bury(Agent* agent) {
  if (agent->dead()) return;
  agent->Die();
  lossy_ = true;
}

void World::Revive(uint32_t number, uint32_t attempt, uint64_t delay_ns) {
  ++reviving_;
  revivals_.push_back(std::make_unique<Revival>(Revival{this, number, attempt}));
  executor_.At(executor_.NowNs() + delay_ns, ReviveNow, revivals_.back().get());
}

void World::ReviveNow(void* arg) {
  const Revival& revival = *static_cast<Revival*>(arg);
  World& world = *revival.world;
  --world.reviving_;
  if (!world.current_.at(revival.number)->dead()) return;  // another agent has taken its place
  Agent& agent = world.AddAgent(revival.number);
  agent.process().Spawn(agent.gate(), world.Start(&agent, revival.attempt));
}

Task<void> World::Start(Agent* agent, uint32_t attempt) {
  const Status status = co_await agent->Start(OptionsOf(agent->number()));
  if (status.ok()) {
    StartClients(agent->number());
    co_return;
  }
  trace_.Note("agent " + std::to_string(agent->number()) + " cannot start: " + status.message());
  Bury(agent);
  if (attempt == kAttemptsMax) co_return;
  Revive(agent->number(), attempt + 1, kStartAgainNs);
}

// In order: nothing of it is lost, unless it cannot tell what became of something. As a process, it
// does not try for ever.
Task<void> World::Depart(Agent* agent, uint64_t away_ns) {
  constexpr uint64_t kLookNs = 1000;
  constexpr uint64_t kPatienceNs = 20'000'000;
  departures_.push_back(std::make_unique<Departure>(Departure{this, agent, away_ns}));
  executor_.At(executor_.NowNs() + kPatienceNs, EndDeparture, departures_.back().get());
  agent->StartLeaving();
  while (agent->busy() > 0) co_await agent->process().SleepFor(kLookNs);
  const Status status = co_await agent->Stop();
  if (status.ok()) {
    co_await agent->End();
  } else {
    Bury(agent);
  }
  Revive(agent->number(), 0, away_ns);
}

void World::EndDeparture(void* arg) {
  const Departure& departure = *static_cast<Departure*>(arg);
  World& world = *departure.world;
  if (departure.agent->dead()) return;
  world.trace_.Note("agent " + std::to_string(departure.agent->number()) + " does not wait longer");
  world.Bury(departure.agent);
  world.Revive(departure.agent->number(), 0, departure.away_ns);
}

// ---- Faults ----

// A node may be lost if another one has what would be lost with it. A node that was put out and has
// not been given all that it missed does not count.
bool World::MayLose(NodeId node) const {
  const View& view = master_.newest_view();
  const auto keeps_majority = [&](const RegionPlacement& region) {
    const auto live = region.nodes.begin() + view.replicas - region.missing;
    return live - region.nodes.begin() - std::count(region.nodes.begin(), live, node) >
           view.replicas / 2;
  };
  return std::all_of(view.regions.begin(), view.regions.end(), keeps_majority);
}

void World::Strike(void* arg) {
  auto& planned = *static_cast<PlannedFault*>(arg);
  World& world = *planned.world;
  constexpr uint64_t kLookAgainNs = 100'000;
  if (planned.fault.kind == FaultKind::kDrainNode && world.AwaitsGrowth(planned.fault)) {
    world.executor_.At(world.executor_.NowNs() + kLookAgainNs, Strike, arg);
    return;
  }
  world.StrikeNow(planned);
}

void World::NoteShrink(bool shrinks) {
  if (std::exchange(shrinks_, shrinks) == shrinks) return;
  shrinks ? meetings_.Began(Happening::kShrink) : meetings_.Ended(Happening::kShrink);
  const uint64_t now_ns = executor_.NowNs();
  if (!shrinks || amid_shrink_end_ns_ != 0) return;
  for (const Fault& fault : plan_.faults) {
    if (!fault.amid_shrink) continue;
    planned_.push_back(std::make_unique<PlannedFault>(PlannedFault{this, fault, nullptr}));
    executor_.At(now_ns + fault.at_ns, Strike, planned_.back().get());
    amid_shrink_end_ns_ = std::max(amid_shrink_end_ns_, now_ns + fault.at_ns + fault.duration_ns);
  }
}

bool World::AwaitsGrowth(const Fault& fault) const {
  return fault.duration_ns != 0 &&
         executor_.NowNs() < started_ns_ + fault.at_ns + fault.duration_ns &&
         master_.newest_view().regions.size() == memory_view_->regions.size();
}

void World::EndFault(void* arg) {
  const auto& planned = *static_cast<PlannedFault*>(arg);
  planned.world->EndNow(planned);
}

void World::CrashAtTheLatest(void* arg) {
  const auto& planned = *static_cast<PlannedFault*>(arg);
  planned.world->Crash(planned);
}

void World::Crash(const PlannedFault& planned) {
  if (planned.agent->dead()) return;
  Bury(planned.agent);
  if (planned.fault.duration_ns > 0) Revive(planned.fault.agent, 0, planned.fault.duration_ns);
}

void World::StrikeNow(PlannedFault& planned) {
  const Fault& fault = planned.fault;
  planned.agent = current_.at(fault.agent);
  const NodeId node{static_cast<uint16_t>(fault.node)};
  const bool of_agent =
      fault.kind == FaultKind::kCrashAgent || fault.kind == FaultKind::kPauseAgent ||
      fault.kind == FaultKind::kFreezeAgent || fault.kind == FaultKind::kBreakChannel ||
      fault.kind == FaultKind::kBreakControl || fault.kind == FaultKind::kLeaveAgent;
  if (of_agent && (planned.agent->dead() || !planned.agent->started())) return;
  // All leave at the end, for good.
  const bool leaves = planned.agent->leaving() || ending_;
  if (fault.kind == FaultKind::kLeaveAgent && leaves) return;
  if (fault.kind == FaultKind::kLoseNode && !MayLose(node)) return;
  // An agent that waits for the others to be done has come too late.
  if (fault.kind == FaultKind::kFreezeAgent && !program_runs_) return;
  ++faults_;
  NoteMeeting(fault);
  trace_.Note("FAULT " + DescribeFault(fault));
  switch (fault.kind) {
    case FaultKind::kPauseNode:
      network_->PauseNode(node);
      node_by_id_.at(node.value)->SetPaused(true);
      break;
    case FaultKind::kLoseNode:
      ++lost_nodes_;
      node_by_id_.at(node.value)->Lose();
      break;
    case FaultKind::kRestartNode:
      node_by_id_.at(node.value)->Crash();
      break;
    case FaultKind::kSlowNode:
      network_->SetSlowness(node, static_cast<uint32_t>(fault.amount));
      break;
    case FaultKind::kCrashAgent:
    case FaultKind::kLeaveAgent:
    case FaultKind::kPauseAgent:
    case FaultKind::kFreezeAgent:
    case FaultKind::kBreakChannel:
    case FaultKind::kSlowLink:
    case FaultKind::kStepClock:
    case FaultKind::kDriftClock:
      StrikeAgent(planned);
      break;
    case FaultKind::kMasterDown:
    case FaultKind::kPauseMaster:
    case FaultKind::kStoreFails:
    case FaultKind::kBreakControl:
    case FaultKind::kBreakNodeControl:
    case FaultKind::kImpostor:
    case FaultKind::kDrainNode:
    case FaultKind::kFillNode:
      StrikeControl(planned);
      break;
    case FaultKind::kCutLink:
      SetCut(fault.agent, node, true);
      break;
  }
  // An agent that ends comes back by itself.
  const bool ends = fault.kind == FaultKind::kCrashAgent || fault.kind == FaultKind::kLeaveAgent;
  if (fault.duration_ns > 0 && !ends) {
    const uint64_t end_ns = executor_.NowNs() + fault.duration_ns;
    struck_end_ns_ = std::max(struck_end_ns_, end_ns);
    executor_.At(end_ns, EndFault, &planned);
  }
}

void World::NoteMeeting(const Fault& fault) {
  const Happening happening = HappeningOf(fault.kind);
  if (happening == Happening::kCount) return;
  // An agent that dies leaves something to be taken over; what has no end is there until the run
  // ends.
  constexpr uint64_t kMournedNs = 1'000'000;
  uint64_t duration_ns = fault.duration_ns;
  switch (happening) {
    case Happening::kAgentDies:
    case Happening::kAgentLeaves:
    case Happening::kNodeLost:
      duration_ns = std::max(duration_ns, kMournedNs);
      break;
    case Happening::kAgentStands:
    case Happening::kNodeSlow:
    case Happening::kLinkCut:
    case Happening::kClockWrong:
      if (duration_ns == 0) duration_ns = Meetings::kForGood;
      break;
    default:
      break;
  }
  meetings_.Happened(happening, duration_ns);
}

void World::StrikeAgent(PlannedFault& planned) {
  const Fault& fault = planned.fault;
  Agent& agent = *planned.agent;
  const NodeId node{static_cast<uint16_t>(fault.node)};
  switch (fault.kind) {
    case FaultKind::kCrashAgent:
      if (agent.fabric().completes_inline()) {
        const auto ops = static_cast<uint32_t>(1 + executor_.rng().Below(kBatchOps));
        agent.fabric().DieAfter(ops, [this, &planned] { Crash(planned); });
        // Before others count on its life after all faults.
        executor_.At(executor_.NowNs() + kBatchNs, CrashAtTheLatest, &planned);
      } else {
        Crash(planned);
      }
      break;
    case FaultKind::kLeaveAgent:
      agent.process().Spawn(agent.gate(), Depart(&agent, fault.duration_ns));
      break;
    case FaultKind::kPauseAgent:
      agent.process().Pause();
      break;
    case FaultKind::kFreezeAgent:
      agent.process().Pause();
      frozen_.push_back(&planned);
      break;
    case FaultKind::kBreakChannel:
      agent.fabric().BreakChannel(node);
      lossy_ = true;
      break;
    case FaultKind::kSlowLink:
      agent.fabric().SetSlowness(node, static_cast<uint32_t>(fault.amount));
      break;
    case FaultKind::kStepClock:
      agent.process().skewed_clock().Step(fault.amount);
      break;
    case FaultKind::kDriftClock:
      agent.process().skewed_clock().SetDriftPpm(fault.amount);
      break;
    default:
      CHECK(false);
  }
}

void World::SetCut(uint32_t agent, NodeId node, bool cut) {
  if (cut) {
    cuts_.emplace(agent, node);
    lossy_ = true;
  } else {
    cuts_.erase({agent, node});
  }
  current_.at(agent)->fabric().SetCut(node, cut);
}

std::optional<NodeId> World::MissedByOne() const {
  if (plan_.faults.empty() || plan_.agents < 3) return std::nullopt;
  const Fault& first = plan_.faults.front();
  const bool is_one =
      std::all_of(plan_.faults.begin(), plan_.faults.end(), [&first](const Fault& fault) {
        return fault.kind == FaultKind::kCutLink && fault.agent == first.agent &&
               fault.node == first.node;
      });
  if (!is_one || !program_runs_) return std::nullopt;
  return NodeId{static_cast<uint16_t>(first.node)};
}

bool World::NobodyCanBeHelped() const {
  const View& view = master_.newest_view();
  const auto replicas = static_cast<uint32_t>(plan_.shape.replicas);
  const auto lacks = [&](const Agent* agent, const RegionPlacement& region) {
    uint32_t reached = 0;
    for (uint32_t i = 0; i + region.missing < replicas; ++i) {
      reached += cuts_.contains({agent->number(), region.nodes[i]}) ? 0 : 1;
    }
    return reached <= replicas / 2;
  };
  return std::all_of(current_.begin(), current_.end(), [&](const Agent* agent) {
    return std::any_of(view.regions.begin(), view.regions.end(),
                       [&](const RegionPlacement& region) { return lacks(agent, region); });
  });
}

Task<void> World::WriteUntilServed(Agent* agent, uint64_t until_ns) {
  // A new key each time: what is unknown of one is not to be explained with the others.
  uint64_t attempt = 0;
  for (bool served = false; !served && !agent->leaving();) {
    const Command command{
        "INCR", "served:" + std::to_string(agent->number()) + ":" + std::to_string(attempt++)};
    const size_t index = history_.Start(kWriter + agent->number(), command, executor_.NowNs());
    std::string reply;
    co_await agent->Execute(&command, &reply);
    history_.Finish(index, reply, executor_.NowNs());
    trace_.Note("agent " + std::to_string(agent->number()) + " is asked and says " +
                Quote(reply, 60));
    served = history_.ops()[index].ending == Ending::kAnswered || reply.starts_with("-OOM");
    if (!served && NobodyCanBeHelped()) co_return;
    if (!served && executor_.NowNs() >= until_ns) {
      Fail("agent " + std::to_string(agent->number()) +
           " does not reach a node, and nobody does anything about it");
      co_return;
    }
    co_await agent->process().SleepFor(kAskAgainNs);
  }
}

void World::OutlastFaults(const std::vector<Fault>& faults) {
  uint64_t end_ns = 0;
  for (const Fault& fault : faults) {
    if (!fault.amid_shrink) end_ns = std::max(end_ns, fault.at_ns + fault.duration_ns);
  }
  executor_.RunUntil(std::max(started_ns_ + end_ns, amid_shrink_end_ns_));
  // One that came amid a turn of an agent's has struck when that stood still no more.
  if (executor_.NowNs() < struck_end_ns_) executor_.RunUntil(struck_end_ns_);
}

bool World::OutlastCuts(const std::vector<Fault>& faults) {
  const bool any = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::kCutLink;
  });
  if (!any) return true;
  OutlastFaults(faults);
  const uint64_t until_ns = executor_.NowNs() + Patience();
  for (Agent* agent : current_) {
    if (agent->dead() || !agent->started() || agent->leaving()) continue;
    agent->process().Spawn(agent->gate(), WriteUntilServed(agent, until_ns));
  }
  if (!RunUntilDone("writes by agents that are cut off")) return false;
  program_runs_ = false;
  for (const auto& [agent, node] : std::set<std::pair<uint32_t, NodeId>>(cuts_)) {
    SetCut(agent, node, false);
  }
  trace_.Note("the network is whole again");
  return RunUntilDone("what waited for the network");
}

bool World::IsFrozen(const Agent* agent) const {
  return std::any_of(frozen_.begin(), frozen_.end(),
                     [agent](const PlannedFault* planned) { return planned->agent == agent; });
}

bool World::GoOnFrozen() {
  for (const PlannedFault* planned : std::exchange(frozen_, {})) {
    if (planned->fault.amount != 0) {
      frozen_.push_back(planned);
      // No agent learns what became of its operations.
      lossy_ = true;
      continue;
    }
    trace_.Note("END OF " + DescribeFault(planned->fault));
    planned->agent->process().Resume();
  }
  return RunUntilDone("what the frozen had begun");
}

void World::StrikeControl(const PlannedFault& planned) {
  switch (planned.fault.kind) {
    case FaultKind::kMasterDown:
      master_.Crash();
      break;
    case FaultKind::kPauseMaster:
      master_.SetPaused(true);
      break;
    case FaultKind::kStoreFails:
      master_.SetStoreFailing(true);
      break;
    case FaultKind::kBreakControl:
      planned.agent->link().Break();
      break;
    case FaultKind::kBreakNodeControl:
      node_by_id_.at(planned.fault.node)->BreakControl();
      break;
    case FaultKind::kImpostor:
      master_.Impersonate(static_cast<SimMaster::Impostor>(planned.fault.amount % 3));
      break;
    case FaultKind::kDrainNode:
      master_.AskToMoveRegions(planned.fault.node, NodeWish::kDrain);
      break;
    case FaultKind::kFillNode:
      master_.AskToMoveRegions(planned.fault.node, NodeWish::kShare);
      break;
    default:
      CHECK(false);
  }
}

void World::EndNow(const PlannedFault& planned) {
  const Fault& fault = planned.fault;
  const NodeId node{static_cast<uint16_t>(fault.node)};
  trace_.Note("END OF " + DescribeFault(fault));
  switch (fault.kind) {
    case FaultKind::kPauseAgent:
      planned.agent->process().Resume();
      break;
    case FaultKind::kPauseNode:
      network_->ResumeNode(node);
      node_by_id_.at(node.value)->SetPaused(false);
      break;
    case FaultKind::kRestartNode:
      if (!node_by_id_.at(node.value)->up()) node_by_id_.at(node.value)->Start();
      break;
    case FaultKind::kSlowNode:
      network_->SetSlowness(node, 1);
      break;
    case FaultKind::kSlowLink:
      planned.agent->fabric().SetSlowness(node, 1);
      break;
    case FaultKind::kMasterDown:
    case FaultKind::kImpostor:
      master_.Restart();
      break;
    case FaultKind::kPauseMaster:
      master_.SetPaused(false);
      break;
    case FaultKind::kStoreFails:
      master_.SetStoreFailing(false);
      break;
    case FaultKind::kCutLink:
      SetCut(fault.agent, node, false);
      break;
    case FaultKind::kCrashAgent:
    case FaultKind::kLeaveAgent:
    case FaultKind::kFreezeAgent:
    case FaultKind::kLoseNode:
    case FaultKind::kBreakChannel:
    case FaultKind::kBreakControl:
    case FaultKind::kBreakNodeControl:
    case FaultKind::kDrainNode:
    case FaultKind::kFillNode:
    case FaultKind::kStepClock:
    case FaultKind::kDriftClock:
      break;
  }
}

}  // namespace onetrip
