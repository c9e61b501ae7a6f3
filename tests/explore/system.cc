#include "tests/explore/system.h"

#include <algorithm>

#include "tests/explore/fingerprint.h"

namespace onetrip {
System::System(const Scope& scope, CellTable& cells)
    : scope_(scope), cells_(cells), monitor_(scope) {
  for (size_t c = 0; c < scope.programs().size(); ++c) {
    automata_.push_back(std::make_unique<ClientAutomaton>(scope, c, cells));
  }
}

SystemState System::Initial() const {
  SystemState state;
  state.worker_crashes_left = static_cast<uint8_t>(scope_.faults().worker_crashes);
  state.node_crashes_left = static_cast<uint8_t>(scope_.faults().node_crashes);
  for (const Cell& cell : cells_.cells()) {
    if (cell.slot >= 0) state.words[cell.slot] = cell.initial;
  }
  return state;
}

bool System::Fail(const std::string& what) {
  violation_ = what;
  Say("VIOLATION: " + what);
  return false;
}

bool System::AnyCrash(const SystemState& state) const {
  return state.worker_crashes_left != scope_.faults().worker_crashes ||
         state.node_crashes_left != scope_.faults().node_crashes;
}

bool System::AllDone(const SystemState& state) const {
  for (size_t c = 0; c < automata_.size(); ++c) {
    const ClientAutomaton::State& now = StateOf(state, c);
    if (state.clients[c].dead) continue;
    if (now.running || now.op < scope_.programs()[c].size()) return false;
  }
  return true;
}

bool System::IsCut(const SystemState& state) const {
  for (size_t c = 0; c < automata_.size(); ++c) {
    if (!state.clients[c].dead && StateOf(state, c).answers > scope_.answers_max()) return true;
  }
  return false;
}

int System::Waiting(const SystemState& state, size_t c, size_t node) const {
  const auto& outstanding = StateOf(state, c).outstanding;
  for (size_t i = 0; i < state.clients[c].flight_count; ++i) {
    if (state.clients[c].flights[i].applied[node] < outstanding[i]->by_node[node].size()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool System::IsComplete(const SystemState& state, size_t c, size_t flight) const {
  const PostedRound& round = *StateOf(state, c).outstanding[flight];
  for (size_t node = 0; node < scope_.nodes(); ++node) {
    if (state.clients[c].flights[flight].applied[node] < round.by_node[node].size()) return false;
  }
  return true;
}

bool System::DeliversAtOnce(const SystemState& state, size_t c) const {
  const ClientNow& client = state.clients[c];
  return reduces_ && !client.dead && client.flight_count == 1 && client.flights[0].unsure == 0 &&
         !CrashesLeft(state) && !StateOf(state, c).has_timer && IsComplete(state, c, 0);
}

// Only a client that has begun to wait in vain is ever late, and only a crash makes it so.
bool System::MayTimeOut(const SystemState& state, size_t c, size_t node) const {
  const ClientAutomaton::State& now = StateOf(state, c);
  if (!now.polls || !AnyCrash(state) || state.clients[c].flight_count != 1) return false;
  const PostedRound& round = *now.outstanding[0];
  return round.nodes == 1U << node &&
         state.clients[c].flights[0].applied[node] + 1U == round.by_node[node].size();
}

void System::AddStarts(const SystemState& state, size_t c, std::vector<Choice>* choices) {
  if (!reduces_) {
    choices->push_back({Choice::Kind::kStart, static_cast<uint8_t>(c)});
    return;
  }
  SystemState started = state;
  std::vector<std::string>* const trace = std::exchange(trace_, nullptr);
  bool has_access = false;
  if (Start(&started, c) && Settle(&started)) {
    for (size_t node = 0; node < scope_.nodes(); ++node) {
      if (Waiting(started, c, node) < 0) continue;
      has_access = true;
      choices->push_back(
          {Choice::Kind::kStart, static_cast<uint8_t>(c), static_cast<uint8_t>(node)});
    }
  }
  // Without an access no client notices when it starts. A violation is found again by the step.
  if (!has_access) choices->push_back({Choice::Kind::kStart, static_cast<uint8_t>(c)});
  violation_.clear();
  trace_ = trace;
}

void System::Choices(const SystemState& state, std::vector<Choice>* choices) {
  choices->clear();
  for (size_t c = 0; scope_.asks_quorums() && c < automata_.size(); ++c) {
    if (AddDeliveries(state, c, choices)) return;
  }
  bool any_left = false;
  for (size_t c = 0; c < automata_.size(); ++c) {
    const auto client = static_cast<uint8_t>(c);
    const ClientNow& now = state.clients[c];
    const ClientAutomaton::State& known = StateOf(state, c);
    for (size_t node = 0; node < scope_.nodes(); ++node) {
      if (Waiting(state, c, node) < 0) continue;
      choices->push_back({Choice::Kind::kAccess, client, static_cast<uint8_t>(node)});
      if (!now.dead && MayTimeOut(state, c, node)) {
        choices->push_back({Choice::Kind::kTimeOut, client, static_cast<uint8_t>(node)});
      }
    }
    if (now.dead) continue;
    for (uint8_t i = 0; i < now.flight_count && !scope_.asks_quorums(); ++i) {
      if (!IsComplete(state, c, i)) continue;
      const uint8_t unsure = now.flights[i].unsure;
      for (uint8_t lost = unsure;; lost = (lost - 1) & unsure) {
        choices->push_back({Choice::Kind::kDeliver, client, Choice::kNoNode, i, lost});
        if (lost == 0) break;
      }
    }
    if (known.has_timer) choices->push_back({Choice::Kind::kWake, client});
    if (MayCrash(state, c)) {
      choices->push_back({Choice::Kind::kCrashWorker, client});
    }
    const bool is_idle = !known.running && known.op < scope_.programs()[c].size();
    if (is_idle) AddStarts(state, c, choices);
    any_left |= known.running || is_idle;
  }
  if (!any_left || state.node_crashes_left == 0) return;
  for (size_t node = 0; node < scope_.nodes(); ++node) {
    if ((state.crashed_nodes >> node & 1) != 0) continue;
    choices->push_back({Choice::Kind::kCrashNode, 0, static_cast<uint8_t>(node)});
  }
}

bool System::Apply(SystemState* state, const Choice& choice) {
  violation_.clear();
  polled_in_vain_ = false;
  const size_t c = choice.client;
  bool good = true;
  switch (choice.kind) {
    case Choice::Kind::kStart:
      good = Start(state, c) && Settle(state) &&
             (choice.node == Choice::kNoNode || AccessNext(state, c, choice.node));
      break;
    case Choice::Kind::kAccess:
      good = AccessNext(state, c, choice.node);
      break;
    case Choice::Kind::kTimeOut:
      good = AccessNext(state, c, choice.node) && Deliver(state, c, 0, 0, /*late=*/true);
      break;
    case Choice::Kind::kDeliver:
      good = Deliver(state, c, choice.round, choice.lost, /*late=*/false);
      break;
    case Choice::Kind::kDeliverSet:
      good = DeliverSet(state, c, choice);
      break;
    case Choice::Kind::kHold:
      state->clients[c].fresh = 0;
      break;
    case Choice::Kind::kWake:
      Say("client " + std::to_string(c) + ": a timer fires");
      input_ = ClientInput();
      input_.kind = ClientInput::Kind::kWake;
      good = Take(state, c, input_);
      break;
    case Choice::Kind::kCrashWorker:
      CrashWorker(state, c);
      break;
    case Choice::Kind::kCrashNode:
      CrashNode(state, choice.node);
      break;
  }
  good = good && !cells_.stale() && Settle(state) && !cells_.stale();
  if (count_preemptions_ && choice.kind < Choice::Kind::kCrashWorker) {
    const auto client = static_cast<int8_t>(choice.client);
    if (state->last_client >= 0 && state->last_client != client) ++state->preemptions;
    const bool goes_on = StateOf(*state, c).running && !polled_in_vain_;
    state->last_client = goes_on ? client : int8_t{-1};
  } else if (choice.kind == Choice::Kind::kCrashWorker &&
             state->last_client == static_cast<int8_t>(choice.client)) {
    state->last_client = -1;
  }
  return good;
}

bool System::Settle(SystemState* state) {
  for (size_t c = 0; c < automata_.size(); ++c) {
    if (state->clients[c].flight_count == 0) continue;
    if (!Advance(state, c)) return false;
    if (scope_.asks_quorums() && !SettleQuorums(state, c)) return false;
    while (!scope_.asks_quorums() && DeliversAtOnce(*state, c)) {
      if (!Deliver(state, c, 0, 0, /*late=*/false) || !Advance(state, c)) return false;
    }
    ClientNow& client = state->clients[c];
    bool is_forgotten = client.dead;
    for (size_t i = 0; i < client.flight_count; ++i) is_forgotten &= IsComplete(*state, c, i);
    if (is_forgotten) {
      client.flight_count = 0;
      client.fresh = 0;
      client.state = ClientAutomaton::kInitial;
    }
  }
  return true;
}

bool System::CheckEnd(const SystemState& state) {
  violation_.clear();
  // Without a fault no client waits in vain; with one, a client that waits for the dead does.
  if (!AllDone(state) && !AnyCrash(state)) return Fail("an operation waits for ever");
  const Memory memory(*this, state);
  const std::string wrong = scope_.OnQuiet(memory, AnyCrash(state));
  if (!wrong.empty()) return Fail(wrong);
  uint64_t value = 0;
  if (!scope_.FinalValue(memory, state.crashed_nodes, &value)) return true;
  return monitor_.MayBe(state.monitor, value) ||
         Fail("no order of the operations ends with " + scope_.WordName(value));
}

// A dead client counts only by what it posted, and of that only by what changes memory.
void System::AddRest(const SystemState& state, size_t c, Fingerprint* fingerprint) const {
  const ClientNow& client = state.clients[c];
  const auto& outstanding = StateOf(state, c).outstanding;
  for (size_t node = 0; node < scope_.nodes(); ++node) {
    for (size_t i = 0; i < client.flight_count; ++i) {
      const auto& accesses = outstanding[i]->by_node[node];
      for (size_t k = client.flights[i].applied[node]; k < accesses.size(); ++k) {
        if (accesses[k].kind == FabricOpKind::kRead) continue;
        fingerprint->Add(uint64_t{accesses[k].cell} << 8 | static_cast<uint64_t>(accesses[k].kind));
        fingerprint->Add(accesses[k].expected);
        fingerprint->Add(accesses[k].operand);
      }
    }
    fingerprint->Add(~uint64_t{0} - node);
  }
}

void System::AddFound(const SystemState& state, size_t c, size_t flight, size_t found_at,
                      Fingerprint* fingerprint) const {
  for (const auto& accesses : StateOf(state, c).outstanding[flight]->by_node) {
    for (const Access& access : accesses) {
      if (access.kind == FabricOpKind::kRead || access.kind == FabricOpKind::kWrite) continue;
      fingerprint->Add(state.clients[c].found[found_at + access.result]);
    }
  }
}

uint64_t System::FingerprintOf(const SystemState& state) const {
  Fingerprint fingerprint;
  fingerprint.Add(uint64_t{state.monitor} | uint64_t{state.crashed_nodes} << 32 |
                  uint64_t{state.worker_crashes_left} << 40 |
                  uint64_t{state.node_crashes_left} << 48 |
                  static_cast<uint64_t>(static_cast<uint8_t>(state.last_client)) << 56);
  for (size_t c = 0; c < automata_.size(); ++c) {
    const ClientNow& client = state.clients[c];
    fingerprint.Add(client.results);
    if (client.dead) {
      AddRest(state, c, &fingerprint);
      continue;
    }
    fingerprint.Add(uint64_t{client.state} | uint64_t{client.flight_count} << 40 |
                    uint64_t{client.fresh} << 48);
    size_t at = 0;
    for (size_t i = 0; i < client.flight_count; ++i) {
      const bool reads_moot = ReadsAreMoot(state, c, *StateOf(state, c).outstanding[i]);
      const Flight& flight = client.flights[i];
      const uint32_t results = StateOf(state, c).outstanding[i]->results;
      uint64_t applied = 0;
      for (const uint8_t count : flight.applied) applied = applied << 8 | count;
      fingerprint.Add(applied);
      fingerprint.Add(uint64_t{flight.failed} | uint64_t{flight.unsure} << 8);
      for (uint32_t k = 0; k < results && !reads_moot; ++k) fingerprint.Add(client.found[at + k]);
      if (reads_moot) AddFound(state, c, i, at, &fingerprint);
      at += results;
    }
  }
  fingerprint.Add(state.words_hash);
  return fingerprint.value();
}

uint64_t System::EndingOf(const SystemState& state) const {
  uint64_t sum = 0;
  for (size_t c = 0; c < automata_.size(); ++c) sum += (c + 1) * state.clients[c].results;
  for (const Cell& cell : cells_.cells()) {
    if (cell.slot < 0 || state.words[cell.slot] == cell.initial) continue;
    Fingerprint fingerprint;
    fingerprint.Add(cell.at.node.value);
    fingerprint.Add(cell.at.offset);
    fingerprint.Add(state.words[cell.slot]);
    sum += fingerprint.value();
  }
  return sum;
}

uint64_t System::executed() const {
  uint64_t executed = 0;
  for (const auto& automaton : automata_) executed += automaton->executed();
  return executed;
}

size_t System::client_states() const {
  size_t states = 0;
  for (const auto& automaton : automata_) states += automaton->size();
  return states;
}

}  // namespace onetrip
