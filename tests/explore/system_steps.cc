// One step: the access at its node, the answer to its client, a crash.
#include <algorithm>

#include "tests/explore/fingerprint.h"
#include "tests/explore/system.h"

namespace onetrip {
namespace {

std::string Who(size_t client) { return "client " + std::to_string(client); }

// Forgets what `node` answered; the words found by the round trip begin at `found`.
void ForgetResults(const PostedRound& round, size_t node, uint64_t* found) {
  for (const Access& access : round.by_node[node]) {
    if (access.kind != FabricOpKind::kWrite) found[access.result] = 0;
  }
}

}  // namespace

bool System::Start(SystemState* state, size_t c) {
  const size_t op = StateOf(*state, c).op;
  Say(Who(c) + " starts operation " + std::to_string(op) + ", " + scope_.programs()[c][op].kind);
  state->monitor = monitor_.Start(state->monitor, c, op);
  input_ = ClientInput();
  return Take(state, c, input_);
}

bool System::AccessNext(SystemState* state, size_t c, size_t node) {
  const int flight = Waiting(*state, c, node);
  CHECK(flight >= 0);
  return ApplyAccess(state, c, static_cast<size_t>(flight), node);
}

bool System::ApplyAccess(SystemState* state, size_t c, size_t flight, size_t node) {
  Flight& progress = state->clients[c].flights[flight];
  const PostedRound& round = *StateOf(*state, c).outstanding[flight];
  const Access& access = round.by_node[node][progress.applied[node]++];
  const Cell& cell = cells_.cell(access.cell);
  const uint64_t before = cell.slot >= 0 ? state->words[cell.slot] : cell.initial;
  uint64_t word = before;
  switch (access.kind) {
    case FabricOpKind::kRead:
      break;
    case FabricOpKind::kWrite:
      word = access.operand;
      break;
    case FabricOpKind::kCas:
      if (before == access.expected) word = access.operand;
      break;
    case FabricOpKind::kFaa:
      word += access.operand;
      break;
    case FabricOpKind::kMax:
      if (TakesMax(before, access.operand)) word = access.operand;
      break;
  }
  if (word != before && cell.slot >= 0) state->SetWord(cell.slot, word);
  // The dead learn nothing.
  if (access.kind != FabricOpKind::kWrite && !state->clients[c].dead) {
    const bool is_moot = access.kind == FabricOpKind::kRead && ReadsAreMoot(*state, c, round);
    state->clients[c].found[FoundAt(*state, c, flight) + access.result] =
        is_moot ? cell.initial : before;
  }
  if (trace_ != nullptr) {
    static constexpr const char* kNames[] = {"READ", "WRITE", "CAS", "FAA", "MAX"};
    std::string line = Who(c) + (state->clients[c].dead ? " (dead)" : "") + " at node " +
                       std::to_string(node) + ": " + kNames[static_cast<size_t>(access.kind)] +
                       " " + scope_.CellName(cell.at);
    if (access.kind == FabricOpKind::kCas) line += " from " + scope_.WordName(access.expected);
    if (access.kind != FabricOpKind::kRead) line += " to " + scope_.WordName(access.operand);
    line += ", found " + scope_.WordName(before);
    if (cell.contended()) Say(line);
  }
  const bool is_last = progress.applied[node] == round.by_node[node].size();
  if (is_last && !state->clients[c].dead && IsComplete(*state, c, flight)) {
    state->clients[c].fresh |= static_cast<uint16_t>(1U << flight);
  }
  if (cell.named_later) {
    // A WRITE of what is there already is another copy of the same.
    const bool is_read_early =
        access.kind == FabricOpKind::kRead && before == cell.initial && !state->clients[c].dead;
    const bool is_written_twice = word != before && before != cell.initial;
    return (!is_read_early && !is_written_twice) ||
           Fail("a buffer was read before its word was written, or written twice");
  }
  if (!cell.contended()) return true;
  const std::string wrong =
      scope_.OnAccess({c, cell.at, access.kind == FabricOpKind::kCas, word != before, before, word},
                      Memory(*this, *state));
  return wrong.empty() || Fail(wrong);
}

bool System::Deliver(SystemState* state, size_t c, size_t flight, uint32_t lost, bool late) {
  ClientNow& client = state->clients[c];
  const size_t found_at = FoundAt(*state, c, flight);
  const size_t words = StateOf(*state, c).outstanding[flight]->results;
  Answer(*state, c, flight, found_at, lost, late, &input_);
  if (trace_ != nullptr && (client.flights[flight].failed | lost) != 0) {
    Say(Who(c) + " hears that a node was lost");
  }
  if (late) Say(Who(c) + " is out of time");
  // Behind the last one all is 0.
  const auto rest = client.found.begin() + static_cast<std::ptrdiff_t>(found_at);
  std::shift_left(rest, client.found.end(), static_cast<std::ptrdiff_t>(words));
  std::fill(client.found.end() - static_cast<std::ptrdiff_t>(words), client.found.end(), 0);
  for (size_t i = flight; i + 1 < client.flight_count; ++i) {
    client.flights[i] = client.flights[i + 1];
  }
  --client.flight_count;
  return Take(state, c, input_);
}

void System::Answer(const SystemState& state, size_t c, size_t flight, size_t found_at,
                    uint32_t lost, bool late, ClientInput* input) const {
  const ClientNow& client = state.clients[c];
  const PostedRound& round = *StateOf(state, c).outstanding[flight];
  input->kind = ClientInput::Kind::kComplete;
  input->round = static_cast<uint8_t>(flight);
  input->late = late;
  input->answered = round.nodes & ~(client.flights[flight].failed | lost);
  const auto found = client.found.begin() + static_cast<std::ptrdiff_t>(found_at);
  input->results.assign(found, found + static_cast<std::ptrdiff_t>(round.results));
  const bool reads_moot = ReadsAreMoot(state, c, round);
  for (size_t node = 0; node < scope_.nodes(); ++node) {
    if ((lost >> node & 1) != 0) ForgetResults(round, node, input->results.data());
    for (const Access& access : round.by_node[node]) {
      if (!reads_moot || access.kind != FabricOpKind::kRead) continue;
      input->results[access.result] = cells_.cell(access.cell).initial;
    }
  }
}

bool System::Take(SystemState* state, size_t c, const ClientInput& input) {
  ClientNow& client = state->clients[c];
  const size_t op = StateOf(*state, c).op;
  const ClientAutomaton::Transition& transition = automata_[c]->Take(client.state, input);
  if (!automata_[c]->error().empty()) return Fail(automata_[c]->error());
  // The accesses it posted have made the steps so far invalid.
  if (cells_.stale()) return false;
  polled_in_vain_ |= transition.next == client.state;
  client.state = transition.next;
  const size_t outstanding = StateOf(*state, c).outstanding.size();
  CHECK(outstanding <= ClientNow::kFlightsMax);
  CHECK(FoundAt(*state, c, outstanding) <= ClientNow::kFoundMax);
  while (client.flight_count < outstanding) client.flights[client.flight_count++] = Flight();
  MarkFresh(state, c);
  for (const Note& note : transition.notes) {
    const std::string wrong = scope_.OnNote(c, note, Memory(*this, *state));
    if (!wrong.empty()) return Fail(wrong);
  }
  return !transition.returned || Returned(state, c, op, transition.result);
}

bool System::Returned(SystemState* state, size_t c, size_t op, const OpResult& result) {
  if (keeps_results_) {
    Fingerprint fingerprint;
    fingerprint.Add(state->clients[c].results);
    fingerprint.Add(static_cast<uint64_t>(result.kind));
    fingerprint.Add(result.value);
    state->clients[c].results = fingerprint.value();
  }
  switch (result.kind) {
    case OpResult::Kind::kBroken:
      return Fail(Who(c) + ": " + result.what);
    case OpResult::Kind::kUnknown:
      Say(Who(c) + " ends operation " + std::to_string(op) + ", outcome unknown");
      state->monitor = monitor_.ReturnUnknown(state->monitor, c, op);
      return true;
    case OpResult::Kind::kDone:
      break;
  }
  Say(Who(c) + " ends operation " + std::to_string(op) + " with " + scope_.WordName(result.value));
  state->monitor = monitor_.Return(state->monitor, c, op, result.value);
  return state->monitor != Monitor::kViolated ||
         Fail("no order of the operations explains what client " + std::to_string(c) + " returned");
}

void System::CrashWorker(SystemState* state, size_t c) {
  Say(Who(c) + " CRASHES");
  --state->worker_crashes_left;
  ClientNow& client = state->clients[c];
  client.dead = true;
  client.found.fill(0);
  client.fresh = 0;
  for (size_t i = 0; i < client.flight_count; ++i) client.flights[i].unsure = 0;
}

void System::CrashNode(SystemState* state, size_t node) {
  Say("node " + std::to_string(node) + " CRASHES");
  --state->node_crashes_left;
  state->crashed_nodes |= static_cast<uint8_t>(1U << node);
  for (const Cell& cell : cells_.cells()) {
    if (cell.slot >= 0 && cell.at.node.value == node) state->SetWord(cell.slot, 0);
  }
  for (size_t c = 0; c < automata_.size(); ++c) {
    ClientNow& client = state->clients[c];
    for (size_t i = 0; i < client.flight_count; ++i) {
      const PostedRound& round = *StateOf(*state, c).outstanding[i];
      Flight& flight = client.flights[i];
      if ((round.nodes >> node & 1) == 0 || client.dead) continue;
      if (flight.applied[node] == round.by_node[node].size()) {
        flight.unsure |= static_cast<uint8_t>(1U << node);
        if (IsComplete(*state, c, i)) client.fresh |= static_cast<uint16_t>(1U << i);
      }
    }
  }
}

bool System::Advance(SystemState* state, size_t c) {
  ClientNow& client = state->clients[c];
  const auto& outstanding = StateOf(*state, c).outstanding;
  for (size_t node = 0; node < scope_.nodes(); ++node) {
    for (size_t i = 0; i < client.flight_count; ++i) {
      const auto& accesses = outstanding[i]->by_node[node];
      Flight& flight = client.flights[i];
      if (flight.applied[node] == accesses.size()) continue;
      if ((state->crashed_nodes >> node & 1) != 0) {
        flight.failed |= static_cast<uint8_t>(1U << node);
        flight.applied[node] = static_cast<uint8_t>(accesses.size());
        ForgetResults(*outstanding[i], node, &client.found[FoundAt(*state, c, i)]);
        if (!client.dead && IsComplete(*state, c, i)) {
          client.fresh |= static_cast<uint16_t>(1U << i);
        }
        continue;
      }
      while (flight.applied[node] < accesses.size()) {
        const Access& next = accesses[flight.applied[node]];
        // A READ of the dead, or of stragglers of a program that is over, finds what no client
        // sees.
        const bool is_silent = next.kind == FabricOpKind::kRead &&
                               (client.dead || ReadsAreMoot(*state, c, *outstanding[i]));
        if (!is_silent && IsStep(*state, c, next, flight.applied[node])) break;
        if (!ApplyAccess(state, c, i, node)) return false;
      }
      // Accesses that come behind it on this channel wait for it.
      if (flight.applied[node] < accesses.size()) break;
    }
  }
  return true;
}

}  // namespace onetrip
