#include "tests/sim/world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client_core/layout/index_layout.h"
#include "tests/sim/pool_account.h"
#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

// A run that has not come to its end by then never will.
constexpr uint64_t kStepsMax = 20'000'000;

std::vector<MemoryEndpoint*> Endpoints(const std::vector<std::unique_ptr<MemoryNode>>& nodes) {
  std::vector<MemoryEndpoint*> endpoints;
  endpoints.reserve(nodes.size());
  for (const auto& node : nodes) endpoints.push_back(node.get());
  return endpoints;
}

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

std::string Join(const Command& command) {
  std::string text;
  for (const std::string& word : command) {
    text += (text.empty() ? "" : " ") + Quote(word, 24);
  }
  return text;
}

}  // namespace

World::World(const Plan& plan, const RunOptions& options)
    : plan_(plan), executor_(plan.seed), trace_(executor_.clock(), options.timeline) {
  Result<MembershipState> state = MembershipState::Create(plan_.shape);
  CHECK(state.ok());
  const View view = state->view();
  for (uint16_t i = 0; i < plan_.shape.nodes; ++i) {
    Result<std::unique_ptr<MemoryNode>> node = MemoryNode::Create(NodeId{i}, view);
    CHECK(node.ok());
    nodes_.push_back(std::move(node.value()));
  }
  network_ = std::make_unique<SimNetwork>(executor_, Endpoints(nodes_), plan_.fabric);
  network_->set_observer(&trace_);
  master_ = std::make_unique<SimMaster>(std::move(state.value()), executor_);
  memory_ = std::make_unique<MemoryWatch>(Endpoints(nodes_), view);
  trace_.set_memory(memory_.get());
  current_.resize(plan_.agents);
  for (uint32_t agent = 0; agent < plan_.agents; ++agent) {
    Agent& added = AddAgent(agent);
    CHECK(BlockOn(added.process(), added.Start(OptionsOf(agent), memory_.get())).ok());
  }
}

World::~World() {
  // Clients run on agents and refer to the world: they go first.
  for (auto& agent : agents_) agent->process().DropBackground();
  agents_.clear();
}

Agent& World::AddAgent(uint32_t number) {
  agents_.push_back(
      std::make_unique<Agent>(executor_, *network_, *master_, plan_.seed * 64 + agents_.size()));
  Agent& agent = *agents_.back();
  trace_.NameFabric(agent.fabric().index(), "agent " + std::to_string(number));
  current_[number] = &agent;
  return agent;
}

DataPathOptions World::OptionsOf(uint32_t number) const {
  DataPathOptions options = plan_.data_path;
  for (uint32_t i = 0; i < number; ++i) options.epoch_tick_us *= plan_.tick_spread;
  return options;
}

void World::Fail(std::string text) {
  if (failure_.empty()) failure_ = std::move(text);
}

Task<void> World::RunClient(Agent* agent, Client* client) {
  while (client->next < client->commands->size()) {
    co_await agent->process().SleepFor(executor_.rng().Below(plan_.think_ns_max + 1));
    const Command& command = (*client->commands)[client->next++];
    const size_t index = history_.Start(client->id, command, executor_.NowNs());
    ++commands_;
    if (trace_.keeps_lines()) {
      trace_.Note("client " + std::to_string(client->id) + " sends " + Join(command));
    }
    std::string reply;
    co_await agent->Execute(&command, &reply);
    history_.Finish(index, reply, executor_.NowNs());
    trace_.Note(trace_.keeps_lines()
                    ? "client " + std::to_string(client->id) + " gets " + Quote(reply, 60)
                    : reply);
    const Ending ending = history_.ops()[index].ending;
    if (ending == Ending::kUnknown) {
      ++unanswered_;
      lossy_ = true;
    }
    if (ending == Ending::kFault) {
      Fail("a reply that nothing excuses: " + DescribeOp(history_.ops()[index]));
    }
  }
}

// The program again, when its agent starts anew: what was on its way stays unanswered.
void World::StartClients(uint32_t number) {
  Agent* agent = current_[number];
  for (auto& client : clients_) {
    if (client->id % plan_.agents != number) continue;
    agent->process().Spawn(agent->gate(), RunClient(agent, client.get()));
  }
}

Task<void> World::ReadKeys(Agent* agent, const std::vector<std::string>* keys) {
  for (const std::string& key : *keys) {
    const Command command{"GET", key};
    const size_t index = history_.Start(kReader, command, executor_.NowNs());
    std::string reply;
    co_await agent->Execute(&command, &reply);
    history_.Finish(index, reply, executor_.NowNs());
    trace_.Note(trace_.keeps_lines() ? "the last read gets " + Quote(reply, 60) : reply);
    if (history_.ops()[index].ending == Ending::kFault) {
      Fail("a reply that nothing excuses: " + DescribeOp(history_.ops()[index]));
    }
  }
}

Agent* World::LiveAgent(uint32_t first) {
  for (uint32_t i = 0; i < plan_.agents; ++i) {
    Agent* agent = current_[(first + i) % plan_.agents];
    if (!agent->process().dead() && agent->started()) return agent;
  }
  return nullptr;
}

bool World::RunUntilDone(std::string_view what) {
  const auto busy = [this] {
    if (starting_ > 0) return true;
    return std::any_of(agents_.begin(), agents_.end(), [](const auto& agent) {
      return !agent->process().dead() && agent->gate().inside() > 0;
    });
  };
  for (uint64_t steps = 0; busy() && failure_.empty(); ++steps) {
    if (!executor_.RunOnce()) {
      Fail(std::string(what) + ": nothing moves any more, and clients still wait");
    } else if (steps == kStepsMax) {
      Fail(std::string(what) + ": no end after " + std::to_string(kStepsMax) + " steps");
    }
  }
  if (!memory_->failure().empty()) Fail(memory_->failure());
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
    planned_.push_back(std::make_unique<PlannedFault>(PlannedFault{this, fault}));
    executor_.At(started_ns_ + fault.at_ns, Strike, planned_.back().get());
  }
  for (uint32_t number = 0; number < plan_.agents; ++number) {
    if (current_[number]->started() && !current_[number]->process().dead()) StartClients(number);
  }
  if (!RunUntilDone("the program")) return Explain();

  // By two agents, for one of them may have its own memories of where things are.
  const std::vector<std::string> keys = KeysOf(program);
  for (uint32_t first = 0; first < 2; ++first) {
    Agent* agent = LiveAgent(first);
    if (agent == nullptr) break;
    agent->process().Spawn(agent->gate(), ReadKeys(agent, &keys));
    if (!RunUntilDone("the last reads")) return Explain();
  }
  const CheckResult result = CheckHistory(history_.ops(), CheckOptionsOf());
  if (!result.ok()) Fail(result.message);
  return failure_.empty() || Explain();
}

CheckOptions World::CheckOptionsOf() const {
  CheckOptions options;
  options.model.clock_error_ns = plan_.clock_error_ns;
  options.model.unix_offset_ns = static_cast<int64_t>(executor_.clock().UnixUs()) * 1000 -
                                 static_cast<int64_t>(executor_.NowNs() / 1000 * 1000);
  return options;
}

// What every client saw, after what is wrong with it. Returns false.
bool World::Explain() {
  failure_ += "\n" + DescribeHistory(history_.ops());
  return false;
}

bool World::Finish() {
  if (!failure_.empty()) return false;
  // What the dead hold is nobody's yet: whoever leaves would wait for it in vain.
  if (lossy_) return true;
  // The agents' last ticks would push out what the clients did.
  trace_.EndLines();
  for (const auto& agent : agents_) agent->process().Spawn(agent->gate(), agent->Stop());
  if (!RunUntilDone("the end")) return false;
  const std::string wrong =
      AccountForPool(Endpoints(nodes_), *agents_.front()->context().master.view(), *memory_);
  if (!wrong.empty()) Fail(wrong);
  return failure_.empty();
}

Report World::TakeReport() {
  Report report;
  report.failure = failure_;
  report.trace_hash = trace_.hash();
  report.commands = commands_;
  report.unanswered = unanswered_;
  report.fabric_ops = network_->applied_ops();
  report.faults = faults_;
  report.reused = memory_->reused();
  report.steps = executor_.steps();
  for (const auto& agent : agents_) {
    if (agent->started()) report.splits += agent->kv().metrics().index->splits.Value();
  }
  report.timeline = trace_.Timeline();
  return report;
}

}  // namespace onetrip
