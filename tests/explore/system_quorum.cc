// Clients that ask nodes one by one and go on when a quorum has answered.
//
// What such a client does depends on which answers it has counted when it goes on, not on when each
// came. An answer after which it does nothing only waits to be counted, so answers are delivered as
// sets: some of those, then the one that lets it go on. Which sets there are is found by asking the
// automaton. This is exact where
//  - answers that do nothing commute with each other and with what other answers do, as the shares
//    of a QuorumCall do, each of which reports on a replica of its own;
//  - delivering a set as soon as its last answer is there loses nothing: what follows is a post,
//    whose accesses may be as late as one likes, or a return, and any later return leaves the
//    history fewer "this one ended before that one began". So a set is delivered when it becomes
//    complete or when something else has happened to its client, or held until then.
// An answer after which the client does nothing is dropped at once if its operation has ended, or
// has gone on and will not look at it (Scope::IsLookedAtLater). Once its program is over, a
// client's stragglers only repeat CASes that have found another word; what they READ is taken for
// what was there at first.
#include "tests/explore/system.h"

namespace onetrip {

void System::MarkFresh(SystemState* state, size_t c) const {
  ClientNow& client = state->clients[c];
  client.fresh = 0;
  for (size_t i = 0; i < client.flight_count; ++i) {
    if (IsComplete(*state, c, i)) client.fresh |= static_cast<uint16_t>(1U << i);
  }
}

bool System::LetsItGoOn(const SystemState& state, size_t c, uint32_t set, uint32_t lost) {
  ClientAutomaton::StateId at = state.clients[c].state;
  const auto& outstanding = StateOf(state, c).outstanding;
  uint8_t delivered = 0;
  size_t found_at = 0;
  for (size_t i = 0; i < state.clients[c].flight_count; ++i) {
    const size_t words = outstanding[i]->results;
    if ((set >> i & 1) != 0) {
      Answer(state, c, i, found_at, lost & state.clients[c].flights[i].unsure, false, &tried_);
      tried_.round = static_cast<uint8_t>(i - delivered++);
      const ClientAutomaton::Transition& transition = automata_[c]->Take(at, tried_);
      if (cells_.stale()) return false;
      const bool is_last = set >> i == 1;
      if (is_last || !transition.silent) return is_last && !transition.silent;
      at = transition.next;
    }
    found_at += words;
  }
  return false;
}

void System::DeliverableSets(const SystemState& state, size_t c, std::vector<Choice>* choices) {
  choices->clear();
  const ClientNow& client = state.clients[c];
  uint32_t complete = 0;
  for (size_t i = 0; i < client.flight_count; ++i) {
    if (IsComplete(state, c, i)) complete |= 1U << i;
  }
  for (uint32_t set = complete; set != 0; set = (set - 1) & complete) {
    if ((set & client.fresh) == 0) continue;
    uint32_t unsure = 0;
    for (size_t i = 0; i < client.flight_count; ++i) {
      if ((set >> i & 1) != 0) unsure |= client.flights[i].unsure;
    }
    for (uint32_t lost = unsure;; lost = (lost - 1) & unsure) {
      if (LetsItGoOn(state, c, set, lost)) {
        choices->push_back({Choice::Kind::kDeliverSet, static_cast<uint8_t>(c), Choice::kNoNode,
                            static_cast<uint16_t>(set), static_cast<uint8_t>(lost)});
      }
      if (lost == 0 || cells_.stale()) break;
    }
    if (cells_.stale()) return;
  }
}

// Nothing else would ever happen to it.
bool System::MayHold(const SystemState& state, size_t c) const {
  const ClientAutomaton::State& now = StateOf(state, c);
  if (now.has_timer || (!now.running && !IsOver(state, c))) return true;
  for (size_t i = 0; i < state.clients[c].flight_count; ++i) {
    if (!IsComplete(state, c, i)) return true;
  }
  return false;
}

bool System::AddDeliveries(const SystemState& state, size_t c, std::vector<Choice>* choices) {
  const ClientNow& client = state.clients[c];
  if (client.fresh == 0) return false;
  DeliverableSets(state, c, choices);
  const auto who = static_cast<uint8_t>(c);
  if (MayHold(state, c)) choices->push_back({Choice::Kind::kHold, who});
  if (MayCrash(state, c)) {
    choices->push_back({Choice::Kind::kCrashWorker, who});
  }
  uint32_t nodes = 0;
  for (size_t i = 0; i < client.flight_count; ++i) {
    if (IsComplete(state, c, i)) nodes |= StateOf(state, c).outstanding[i]->nodes;
  }
  for (uint8_t node = 0; node < scope_.nodes() && state.node_crashes_left > 0; ++node) {
    if ((nodes & ~uint32_t{state.crashed_nodes}) >> node & 1) {
      choices->push_back({Choice::Kind::kCrashNode, 0, node});
    }
  }
  return true;
}

bool System::DeliverSet(SystemState* state, size_t c, const Choice& choice) {
  size_t delivered = 0;
  for (size_t i = 0; choice.round >> i != 0; ++i) {
    if ((choice.round >> i & 1) == 0) continue;
    const size_t flight = i - delivered++;
    const uint32_t lost = choice.lost & state->clients[c].flights[flight].unsure;
    if (!Deliver(state, c, flight, lost, /*late=*/false)) return false;
  }
  return true;
}

bool System::SettleQuorums(SystemState* state, size_t c) {
  ClientNow& client = state->clients[c];
  if (client.dead) return true;
  while (client.fresh != 0) {
    // Drops answers that no operation waits for any more.
    bool dropped = false;
    const ClientAutomaton::State& now = StateOf(*state, c);
    for (size_t i = 0; !dropped && i < client.flight_count; ++i) {
      const bool is_stale = !now.running || now.posted_by[i] != now.op || now.moot[i];
      if (!is_stale || !IsComplete(*state, c, i)) continue;
      const bool is_silent = !LetsItGoOn(*state, c, 1U << i, 0);
      if (cells_.stale()) return false;
      if (!is_silent && !IsOver(*state, c)) continue;
      const ClientAutomaton::StateId before = client.state;
      if (!Deliver(state, c, i, 0, /*late=*/false) || !Advance(state, c)) return false;
      // Work in the background asks a node that has crashed, again and again.
      if (client.state == before && IsOver(*state, c)) {
        client.fresh = 0;
        return true;
      }
      dropped = true;
    }
    if (dropped) continue;
    // Answers that were held in the hope of other answers are held in vain.
    if (!MayHold(*state, c)) MarkFresh(state, c);
    DeliverableSets(*state, c, &sets_);
    if (cells_.stale()) return false;
    if (sets_.empty()) {
      client.fresh = 0;
      return true;
    }
    if (sets_.size() > 1 || MayHold(*state, c) || CrashesLeft(*state)) return true;
    const Choice only = sets_.front();
    if (!DeliverSet(state, c, only) || !Advance(state, c)) return false;
  }
  return true;
}

}  // namespace onetrip
