#include "tests/sim/world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client_core/layout/index_layout.h"
#include "tests/sim/large_pages.h"
#include "tests/sim/pool_account.h"
#include "tests/support/append_history.h"
#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

// Until an agent that was expelled starts anew.
constexpr uint64_t kReviveNsMax = 200'000;
// About how long it takes until every agent has a view.
constexpr uint64_t kViewSpreadsNs = 20'000;
// Until the last flush is tried again.
constexpr uint64_t kFlushAgainNs = 50'000;

std::vector<std::string> KeysOf(const Program& program) {
  std::set<std::string> keys;
  for (const std::vector<Command>& client : program) {
    for (const Command& command : client) {
      HistoryOp op;
      op.argv = command;
      std::vector<HistoryOp> steps;
      SplitByKey(op, &steps);
      for (const HistoryOp& step : steps) keys.emplace(KeyOf(step.argv));
      if (steps.empty()) keys.emplace(KeyOf(command));
    }
  }
  keys.erase("");
  return {keys.begin(), keys.end()};
}

}  // namespace

std::vector<MemoryEndpoint*> World::Endpoints() const {
  std::vector<MemoryEndpoint*> endpoints;
  endpoints.reserve(nodes_.size());
  for (const auto& node : nodes_) endpoints.push_back(node.get());
  return endpoints;
}

World::World(const Plan& plan, const RunOptions& options)
    : plan_(plan),
      steps_max_(options.steps_max),
      executor_(plan.seed),
      trace_(executor_.clock(), options.timeline),
      meetings_(executor_.clock()),
      master_(executor_, plan_.control, plan_.shape, trace_) {
  FormCluster();
  current_.resize(plan_.agents);
  for (uint32_t number = 0; number < plan_.agents; ++number) {
    Agent& agent = AddAgent(number);
    CHECK(BlockOn(agent.process(), agent.Start(OptionsOf(number))).ok());
  }
}

World::~World() {
  // Clients run on agents and refer to the world: they go first.
  for (auto& agent : agents_) agent->process().Kill();
  for (auto& agent : agents_) agent->process().DropBackground();
  agents_.clear();
}

void World::FormCluster() {
  const uint32_t count = plan_.shape.nodes + plan_.spares;
  nodes_.resize(count);
  node_by_id_.resize(count);
  const SimNode::Events events{
      [this](NodeId node, const View& view) { OnPlaced(node, view); },
      [this](NodeId node, WorkerId worker) { Refuse(node, worker); },
      [this](NodeId node, bool reachable) { OnReachable(node, reachable); },
      [this](NodeId node) { network_->CloseChannels(node); },
      [this](NodeId node, const View& view) {
        std::string reason;
        if (!nodes_.at(node.value)->UseView(view, &reason).ok()) Fail("a node's roles: " + reason);
      },
      [this](NodeId node) { return nodes_.at(node.value)->Usage(); }};
  for (uint32_t number = 0; number < count; ++number) {
    node_processes_.push_back(std::make_unique<SimNode>(executor_, master_, plan_.control, number,
                                                        plan_.shape.node_bytes, events));
    node_processes_.back()->Start();
  }
  master_.SetOnView([this] {
    meetings_.Happened(Happening::kViewChange, kViewSpreadsNs);
    if (memory_ != nullptr) memory_->UseView(master_.newest_view());
    NoteShrink(master_.newest_view().leaving != 0);
    FreeTaken(master_.newest_view());
    TakeTheRest(master_.newest_view());
    LookWhoIsRefused();
    const std::optional<NodeId> missed = MissedByOne();
    if (missed.has_value() && master_.newest_view().IsOut(*missed)) {
      Fail("a node is out that all but one agent reach");
    }
  });
  const auto serves = [](const auto& node) { return node->serving(); };
  while (!std::all_of(node_processes_.begin(), node_processes_.end(), serves)) {
    CHECK(executor_.RunOnce());
  }
  for (const auto& node : node_processes_) node_by_id_[node->id()->value] = node.get();
  network_ = std::make_unique<SimNetwork>(executor_, Endpoints(), plan_.fabric);
  network_->set_observer(&trace_);
  memory_ = std::make_unique<MemoryWatch>(Endpoints(), *memory_view_);
  memory_->SetOnReuse([this] { meetings_.Happened(Happening::kRecycling); });
  trace_.set_memory(memory_.get());
  TakeBlocks();
  const bool freezes =
      std::any_of(plan_.faults.begin(), plan_.faults.end(),
                  [](const Fault& fault) { return fault.kind == FaultKind::kFreezeAgent; });
  if (!freezes) return;
  wait_freedom_ = std::make_unique<WaitFreedom>(plan_, trace_, Endpoints(), *memory_view_);
  network_->set_observer(wait_freedom_.get());
}

void World::OnPlaced(NodeId node, const View& view) {
  if (memory_view_ == nullptr) memory_view_ = std::make_unique<const View>(view);
  std::string reason;
  Result<std::unique_ptr<Backing>> backing =
      Backing::Open({.bytes = plan_.shape.node_bytes}, &reason);
  CHECK(backing.ok());
  AskForLargePages((*backing)->base(), plan_.shape.node_bytes);
  Result<std::unique_ptr<MemoryNode>> made =
      MemoryNode::Create(node, view, std::move(*backing), &reason);
  CHECK(made.ok());
  nodes_.at(node.value) = std::move(made.value());
}

Agent& World::AddAgent(uint32_t number) {
  const Agent::World world{executor_,
                           *network_,
                           master_,
                           plan_.control,
                           *memory_,
                           meetings_,
                           EngineOf(plan_, number),
                           plan_.transactions_every,
                           plan_.inline_agents};
  const auto index = static_cast<uint32_t>(agents_.size());
  const SimMasterClient::Events events{
      [this, index](WorkerId worker) { OnJoined(agents_[index].get(), worker); },
      [this, index](const std::string& reason) {
        Agent* const agent = agents_[index].get();
        trace_.Note("agent " + std::to_string(agent->number()) + " ends: " + reason);
        if (plan_.nobody_ends != 0 && agent->link().was_member()) {
          Fail("agent " + std::to_string(agent->number()) +
               " ends, and nothing has died: " + reason);
        }
        Bury(agent);
        Revive(agent->number(), 0, executor_.rng().Below(kReviveNsMax));
      },
      [this, index] { return agents_[index]->usage(); }};
  agents_.push_back(std::make_unique<Agent>(world, number, plan_.seed * 64 + index, events));
  Agent& agent = *agents_.back();
  trace_.NameFabric(agent.fabric().index(), "agent " + std::to_string(number));
  current_[number] = &agent;
  for (const auto& [whose, node] : cuts_) {
    if (whose == number) agent.fabric().SetCut(node, true);
  }
  return agent;
}

DataPathOptions World::OptionsOf(uint32_t number) const {
  DataPathOptions options = plan_.data_path;
  for (uint32_t i = 0; i < number; ++i) options.epoch_tick_us *= plan_.tick_spread;
  if (plan_.large_value_bytes != 0) {
    options.large_values = std::make_shared<MemoryBudget>(plan_.large_value_bytes);
  }
  return options;
}

void World::Fail(std::string text) {
  if (failure_.empty()) failure_ = std::move(text);
}

Task<void> World::NextTurn(Agent* agent) {
  if (agent->fabric().completes_inline()) co_await agent->process().Yield();
}

Task<void> World::ReadKeys(Agent* agent, const std::vector<std::string>* keys) {
  for (size_t i = 0; i < keys->size() * plan_.databases; ++i) {
    co_await NextTurn(agent);
    if (agent->leaving()) co_return;
    const Command command{"GET", (*keys)[i / plan_.databases]};
    const uint32_t database = i % plan_.databases;
    const size_t index = history_.Start(kReader, command, executor_.NowNs(), database);
    std::string reply;
    WatchBeginning(agent);
    ++agent->busy();
    co_await agent->Execute(&command, &reply, database);
    --agent->busy();
    history_.Finish(index, reply, executor_.NowNs());
    WatchEnd(agent, history_.ops()[index]);
    trace_.Note(trace_.keeps_lines() ? "the last read gets " + Quote(reply, 60) : reply);
    if (history_.ops()[index].ending == Ending::kFault) {
      Fail("a reply that nothing excuses: " + DescribeOp(history_.ops()[index]));
    }
  }
}

WaitFreedom::Moment World::Now() const {
  WaitFreedom::Moment moment;
  moment.frozen = frozen_.size();
  for (const auto& agent : agents_) {
    if (!agent->started()) continue;
    const StoreMetrics& metrics = agent->kv().metrics();
    moment.registers_ended += metrics.registers_thawed.Value() + metrics.registers_dropped.Value();
  }
  return moment;
}

void World::WatchBeginning(Agent* agent) {
  if (wait_freedom_ != nullptr) wait_freedom_->Began(*agent, Now());
}

void World::WatchEnd(Agent* agent, const HistoryOp& op) {
  if (wait_freedom_ == nullptr) return;
  // A word that a read that gave up had proposed to a slot is left alone, for a recovery to find.
  lossy_ |= op.ending != Ending::kAnswered;
  std::string wrong = wait_freedom_->Ended(*agent, op, Now());
  if (!wrong.empty()) Fail(std::move(wrong));
}

Task<void> World::StopAgent(Agent* agent) { (void)co_await agent->Stop(); }

Task<void> World::StartAlone(Agent* agent, bool* started) {
  *started = (co_await agent->Start(OptionsOf(agent->number()))).ok();
}

Task<void> World::FlushAll(Agent* agent, uint64_t until_ns, bool* flushed) {
  const Command command{"FLUSHALL"};
  while (!*flushed && executor_.NowNs() < until_ns) {
    const size_t index = history_.Start(kFlusher, command, executor_.NowNs());
    std::string reply;
    co_await agent->Execute(&command, &reply);
    history_.Finish(index, reply, executor_.NowNs());
    trace_.Note("the last flush gets " + Quote(reply, 60));
    *flushed = history_.ops()[index].ending == Ending::kAnswered;
    co_await agent->process().SleepFor(kFlushAgainNs);
  }
}

uint64_t World::Patience() const {
  const ControlSettings& control = plan_.control;
  return 10'000'000 * (control.lease_ms + control.grace_ms + control.hold_timeout_ms +
                       control.flush_wait_ms + control.ack_timeout_ms + control.request_ms);
}

Agent* World::JoinAtTheEnd(uint64_t until_ns) {
  Agent* agent = nullptr;
  bool started = false;
  while (!started) {
    if (executor_.NowNs() >= until_ns) Fail("after all faults no agent can join");
    if (agent != nullptr) Bury(agent);
    agent = &AddAgent(0);
    agent->process().Spawn(agent->gate(), StartAlone(agent, &started));
    if (!RunUntilDone("the last start")) return nullptr;
  }
  return agent;
}

Task<void> World::ReadAll(Agent* agent, const std::vector<std::string>* keys, uint64_t until_ns) {
  for (const std::string& key : *keys) {
    for (bool read = false; !read;) {
      co_await NextTurn(agent);
      const Command command{"GET", key};
      const size_t index = history_.Start(kReader, command, executor_.NowNs());
      std::string reply;
      co_await agent->Execute(&command, &reply);
      history_.Finish(index, reply, executor_.NowNs());
      trace_.Note("the last read gets " + Quote(reply, 60));
      const Ending ending = history_.ops()[index].ending;
      read = ending == Ending::kAnswered;
      if (ending == Ending::kFault || (!read && executor_.NowNs() >= until_ns)) {
        Fail("with one node lost a key cannot be read: " + DescribeOp(history_.ops()[index]));
        co_return;
      }
    }
  }
}

bool World::LoseAtTheEnd(const std::vector<std::string>& keys) {
  const uint64_t until_ns = executor_.NowNs() + Patience();
  Agent* const agent = JoinAtTheEnd(until_ns);
  if (agent == nullptr) return false;
  const auto is_whole = [this] {
    const View& view = master_.newest_view();
    return std::all_of(view.regions.begin(), view.regions.end(),
                       [](const RegionPlacement& region) { return region.missing == 0; });
  };
  const auto serves = [](const auto& node) { return node->serving() || node->lost(); };
  while (!is_whole() || !std::all_of(node_processes_.begin(), node_processes_.end(), serves)) {
    if (executor_.NowNs() >= until_ns) {
      Fail("after all faults regions still lack replicas: " + master_.moving());
    }
    if (!failure_.empty() || !executor_.RunOnce()) return false;
  }
  if (!LoseDrained(until_ns)) return false;
  trace_.Note("every region is whole; one node more is lost");
  ++lost_nodes_;
  lossy_ = true;
  node_by_id_.at(plan_.last_loss - 1)->Lose();
  agent->process().Spawn(agent->gate(), ReadAll(agent, &keys, executor_.NowNs() + Patience()));
  return RunUntilDone("the reads after the last loss");
}

bool World::FlushAtTheEnd(const std::vector<std::string>& keys) {
  const uint64_t until_ns = executor_.NowNs() + Patience();
  Agent* const agent = JoinAtTheEnd(until_ns);
  if (agent == nullptr) return false;
  bool flushed = false;
  agent->process().Spawn(agent->gate(), FlushAll(agent, until_ns, &flushed));
  if (!RunUntilDone("the last flush")) return false;
  if (!flushed) Fail("after all faults nothing can be flushed");
  agent->process().Spawn(agent->gate(), ReadKeys(agent, &keys));
  return RunUntilDone("the reads after the last flush");
}

Agent* World::LiveAgent(uint32_t first) {
  for (uint32_t i = 0; i < plan_.agents; ++i) {
    Agent* agent = current_[(first + i) % plan_.agents];
    if (!agent->dead() && agent->started() && !IsFrozen(agent)) return agent;
  }
  return nullptr;
}

bool World::IsBeyondRepair() const {
  if (lost_nodes_ == 0) return false;
  const uint32_t replicas = plan_.shape.replicas;
  const auto is_lost = [&](const RegionPlacement& region) {
    uint32_t whole = 0;
    for (uint32_t i = 0; i + region.missing < replicas; ++i) {
      if (!node_by_id_.at(region.nodes[i].value)->lost()) ++whole;
    }
    return whole <= replicas / 2;
  };
  const std::vector<RegionPlacement>& regions = master_.newest_view().regions;
  return std::any_of(regions.begin(), regions.end(), is_lost);
}

bool World::RunUntilDone(std::string_view what) {
  const auto busy = [this] {
    if (reviving_ > 0) return true;
    return std::any_of(agents_.begin(), agents_.end(), [this](const auto& agent) {
      if (agent->dead() || agent->gate().inside() == 0 || IsFrozen(agent.get())) return false;
      const bool waits_in_vain =
          !agent->started() && (IsBeyondRepair() || (agent->awaits_network() && !cuts_.empty()));
      return !waits_in_vain;
    });
  };
  for (uint64_t steps = 0; busy() && failure_.empty(); ++steps) {
    if (!executor_.RunOnce()) {
      Fail(std::string(what) + ": nothing moves any more, and clients still wait");
    } else if (steps == steps_max_) {
      Fail(std::string(what) + ": no end after " + std::to_string(steps_max_) + " steps");
    }
  }
  if (!memory_->failure().empty()) Fail(memory_->failure());
  if (!master_.failure().empty()) Fail(master_.failure());
  return failure_.empty();
}

bool World::RunProgram(const Program& program, const std::vector<Fault>& faults) {
  history_.Clear();
  clients_.clear();
  started_ns_ = executor_.NowNs();
  for (uint32_t id = 0; id < program.size(); ++id) {
    clients_.push_back(std::make_unique<Client>(Client{id, &program[id], 0}));
  }
  for (const Fault& fault : faults) {
    if (fault.amid_shrink) continue;
    planned_.push_back(std::make_unique<PlannedFault>(PlannedFault{this, fault, nullptr}));
    executor_.At(started_ns_ + fault.at_ns, Strike, planned_.back().get());
  }
  for (uint32_t number = 0; number < plan_.agents; ++number) {
    if (current_[number]->started() && !current_[number]->dead()) StartClients(number);
  }
  program_runs_ = true;
  if (!RunUntilDone("the program")) return Explain();
  if (!OutlastCuts(faults)) return Explain();
  program_runs_ = false;
  if (!frozen_.empty() && !GoOnFrozen()) return Explain();

  // By two agents, for one of them may have its own memories of where things are.
  const std::vector<std::string> keys = KeysOf(program);
  for (uint32_t first = 0; first < 2; ++first) {
    Agent* agent = LiveAgent(first);
    if (agent == nullptr) break;
    agent->process().Spawn(agent->gate(), ReadKeys(agent, &keys));
    if (!RunUntilDone("the last reads")) return Explain();
  }
  if (plan_.last_flush != 0) {
    OutlastFaults(faults);
    if (lost_nodes_ <= 1 && !IsBeyondRepair() && !FlushAtTheEnd(keys)) return Explain();
  }
  if (plan_.last_growth != 0 && lost_nodes_ <= 1) {
    OutlastFaults(faults);
    if (!IsBeyondRepair() && !GrowAtTheEnd()) return Explain();
  }
  if (plan_.last_loss != 0 && lost_nodes_ <= plan_.spares) {
    OutlastFaults(faults);
    if (!IsBeyondRepair() && !LoseAtTheEnd(keys)) return Explain();
  }
  const CheckResult result = CheckHistory(history_.ops(), CheckOptionsOf());
  if (!result.ok()) Fail(result.message);
  const std::string appends = CheckAppends(history_.ops());
  if (!appends.empty()) Fail(appends);
  return failure_.empty() || Explain();
}

CheckOptions World::CheckOptionsOf() const {
  CheckOptions options;
  options.model.clock_error_ns = plan_.clock_error_ns;
  options.model.unix_offset_ns = static_cast<int64_t>(executor_.clock().UnixUs()) * 1000 -
                                 static_cast<int64_t>(executor_.NowNs() / 1000 * 1000);
  return options;
}

// Appends to the failure what every client saw. Returns false.
bool World::Explain() {
  failure_ += "\n" + DescribeHistory(history_.ops());
  return false;
}

bool World::Finish() {
  if (!failure_.empty()) return false;
  ending_ = true;
  const std::string free = AccountForNamed(Endpoints(), master_.newest_view(), *memory_);
  if (!free.empty()) Fail(free);
  if (!failure_.empty()) return false;
  // Memory of the dead has no owner yet: an agent that leaves would wait for it in vain. A read
  // that gave up helping to end a register, and a DEL whose register could not be cleared away
  // behind it, leave something for a recovery to find, though they are answered.
  const auto gave_up = [](const auto& agent) {
    if (!agent->started()) return false;
    const StoreMetrics& metrics = agent->kv().metrics();
    return metrics.unknown_outcomes.Value() + metrics.objects_left.Value() > 0;
  };
  if (lossy_ || std::any_of(agents_.begin(), agents_.end(), gave_up)) {
    const bool may_end = plan_.last_death != 0 && lost_nodes_ == 0 && frozen_.empty();
    return !may_end || DieAtTheEnd();
  }
  // The agents' last ticks would push out what the clients did.
  trace_.EndLines();
  std::vector<Agent*> last;
  for (const auto& agent : agents_) {
    if (!agent->dead()) last.push_back(agent.get());
  }
  for (Agent* agent : last) agent->process().Spawn(agent->gate(), StopAgent(agent));
  if (!RunUntilDone("the end")) return false;
  // An agent that a last fault held up may have been expelled before it had ended.
  if (lossy_) return true;
  // Behind those that left earlier the others have looked, or owe it themselves.
  AccountForAll(/*owes_look=*/std::any_of(last.begin(), last.end(), [](Agent* agent) {
    return agent->kv().metrics().ends_unsigned.Value() > 0;
  }));
  return failure_.empty();
}

void World::AccountForAll(bool owes_look) {
  const std::string wrong = AccountForPool(Endpoints(), master_.newest_view(), *memory_,
                                           /*may_be_unfinished=*/lossy_, owes_look);
  if (!wrong.empty()) Fail(wrong);
}

Report World::TakeReport() {
  Report report;
  report.failure = failure_;
  report.engine = EngineName(plan_);
  report.trace_hash = trace_.hash();
  report.commands = commands_;
  report.unanswered = unanswered_;
  report.fabric_ops = network_->applied_ops();
  report.faults = faults_;
  report.reused = memory_->reused();
  report.flushes = master_.flushes();
  report.swaps = master_.swaps();
  report.shrunk = master_.shrunk();
  report.expelled = master_.expelled();
  report.steps = executor_.steps();
  report.held_up_max_ns = executor_.held_up_max_ns();
  for (const auto& agent : agents_) {
    if (!agent->started()) continue;
    const StoreMetrics& metrics = agent->kv().metrics();
    report.splits += metrics.index->splits.Value();
    report.thawed += metrics.registers_thawed.Value();
    report.combined += metrics.rmw_combined.Value();
    report.dropped += metrics.registers_dropped.Value();
    report.interrupted += metrics.interrupted_writes.Value();
    report.hot += metrics.hot_writes.Value();
    report.opened += metrics.allocator->blocks_opened.Value();
    report.acquired += metrics.allocator->blocks_acquired.Value();
    report.found += metrics.allocator->objects_found.Value();
    report.unsigned_ends += metrics.ends_unsigned.Value();
    report.moved += metrics.objects_moved.Value();
  }
  report.meetings = meetings_.table();
  if (wait_freedom_ != nullptr) report.wait_freedom = wait_freedom_->report();
  report.timeline = trace_.Timeline();
  return report;
}

}  // namespace onetrip
