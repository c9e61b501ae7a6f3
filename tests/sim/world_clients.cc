// The clients of a world: one command after the other, or several changes of one key at once, as a
// connection sends them that does not wait for replies.
#include <algorithm>
#include <deque>
#include <set>
#include <string_view>
#include <vector>

#include "client_core/coro/sync.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/dispatch.h"
#include "tests/sim/world.h"

namespace onetrip {
namespace {

// About how long it takes until a full pool has room again.
constexpr uint64_t kPoolStaysFullNs = 1'000'000;

std::string Join(const Command& command) {
  std::string text;
  for (const std::string& word : command) {
    text += (text.empty() ? "" : " ") + Quote(word, 24);
  }
  return text;
}

// True if commands like this one may be under way together on one key.
bool MutatesFirst(const Command& command) {
  const std::vector<std::string_view> argv(command.begin(), command.end());
  const CommandRow* const row = LookUpCommand(argv);
  return row != nullptr && (row->flags & kMutatesFirst) != 0;
}

}  // namespace

// Commands of one client that are under way together.
struct World::Ahead {
  explicit Ahead(Executor& executor) : has_ended(executor) {}
  std::deque<InOrder> orders;
  size_t under_way = 0;
  Event has_ended;
};

Task<void> World::RunClient(Agent* agent, Client* client) {
  while (client->next < client->commands->size()) {
    co_await agent->process().SleepFor(executor_.rng().Below(plan_.think_ns_max + 1));
    if (agent->leaving()) co_return;
    const size_t ahead = CommandsAhead(*client);
    if (ahead > 1) {
      co_await RunTogether(agent, client, ahead);
    } else {
      co_await RunCommand(agent, client, &(*client->commands)[client->next++], nullptr);
    }
  }
}

size_t World::CommandsAhead(const Client& client) const {
  const std::vector<Command>& commands = *client.commands;
  const size_t most = std::min<size_t>(plan_.sent_ahead, commands.size() - client.next);
  size_t ahead = 0;
  while (ahead < most && MutatesFirst(commands[client.next + ahead]) &&
         commands[client.next + ahead][1] == commands[client.next][1]) {
    ++ahead;
  }
  return ahead;
}

Task<void> World::RunTogether(Agent* agent, Client* client, size_t commands) {
  Ahead ahead(agent->process());
  for (size_t i = 0; i < commands; ++i) {
    const Command* const command = &(*client->commands)[client->next++];
    InOrder& order = ahead.orders.emplace_back(InOrder{&ahead});
    ++ahead.under_way;
    agent->process().Spawn(agent->gate(), RunOneOf(agent, client, command, &order, &ahead));
    while (ahead.under_way > 0 && !order.has_place) co_await AwaitOne(&ahead);
  }
  while (ahead.under_way > 0) co_await AwaitOne(&ahead);
}

Task<void> World::RunOneOf(Agent* agent, const Client* client, const Command* command,
                           InOrder* in_order, Ahead* ahead) {
  co_await RunCommand(agent, client, command, in_order);
  --ahead->under_way;
  ahead->has_ended.Set();
}

Task<void> World::AwaitOne(Ahead* ahead) {
  ahead->has_ended.Reset();
  co_await ahead->has_ended.Wait();
}

Task<void> World::RunCommand(Agent* agent, const Client* client, const Command* sent,
                             InOrder* in_order) {
  const Command& command = *sent;
  const uint64_t begun_ns = executor_.NowNs();
  const uint32_t database = (client->id + client->id / plan_.agents) % plan_.databases;
  const size_t index = history_.Start(client->id, command, begun_ns, database);
  ++commands_;
  if (trace_.keeps_lines()) {
    trace_.Note("client " + std::to_string(client->id) + " sends " + Join(command));
  }
  std::string reply;
  WatchBeginning(agent);
  ++agent->busy();
  const bool is_inline = agent->fabric().completes_inline();
  const CommandScope scope(is_inline ? &agent->meetings() : nullptr, command,
                           EngineOf(plan_, agent->number()));
  co_await agent->Execute(&command, &reply, database, in_order);
  --agent->busy();
  history_.Finish(index, reply, executor_.NowNs());
  WatchEnd(agent, history_.ops()[index]);
  trace_.Note(trace_.keeps_lines()
                  ? "client " + std::to_string(client->id) + " gets " + Quote(reply, 60)
                  : reply);
  if (reply.starts_with("-OOM")) meetings_.Happened(Happening::kPoolFull, kPoolStaysFullNs);
  const Ending ending = history_.ops()[index].ending;
  if (ending == Ending::kUnknown) {
    ++unanswered_;
    lossy_ = true;
    const std::string why_not = WhyNotUnknown(agent, command, begun_ns);
    if (!why_not.empty()) Fail(why_not + ": " + DescribeOp(history_.ops()[index]));
  } else if (ending == Ending::kAnswered && command.front() == "SET") {
    set_keys_.try_emplace({agent, command[1]}, executor_.NowNs());
  }
  if (ending == Ending::kFault) {
    Fail("a reply that nothing excuses: " + DescribeOp(history_.ops()[index]));
  }
}

std::string World::WhyNotUnknown(const Agent* agent, const Command& command,
                                 uint64_t begun_ns) const {
  if (OnlyMoves()) return "regions have moved, and nothing has failed";
  if (begun_ns <= last_loss_ns_ || !OnlyWritesRegisters()) return "";
  const auto known = set_keys_.find({agent, command[1]});
  const bool was_known = known != set_keys_.end() && known->second < begun_ns;
  return was_known ? "no node was lost while it ran" : "";
}

bool World::OnlyWritesRegisters() const {
  // A longer value may need another register.
  std::set<size_t> value_bytes;
  for (const std::vector<Command>& client : plan_.program) {
    for (const Command& command : client) {
      if (command.front() == "GET") continue;
      if (command.front() != "SET" || command.size() != 3) return false;
      value_bytes.insert(command[2].size());
    }
  }
  return value_bytes.size() <= 1 && plan_.engine == EngineKind::kSwarm && !plan_.mixes_engines &&
         plan_.transactions_every == 0 &&
         std::all_of(plan_.faults.begin(), plan_.faults.end(),
                     [](const Fault& fault) { return fault.kind == FaultKind::kRestartNode; });
}

// Where memory is short an outcome may be unknown without any fault: of several keys some are
// written, and what an interrupted write came to may need memory to be found out.
bool World::OnlyMoves() const {
  return !plan_.faults.empty() && plan_.free_blocks == 0 && plan_.fills_added == 0 &&
         std::all_of(plan_.faults.begin(), plan_.faults.end(), [](const Fault& fault) {
           return fault.kind == FaultKind::kDrainNode || fault.kind == FaultKind::kFillNode;
         });
}

// The program again, when its agent starts anew: what was on its way stays unanswered.
void World::StartClients(uint32_t number) {
  Agent* agent = current_[number];
  for (auto& client : clients_) {
    if (client->id % plan_.agents != number) continue;
    agent->process().Spawn(agent->gate(), RunClient(agent, client.get()));
  }
}

}  // namespace onetrip
