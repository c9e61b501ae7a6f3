#include "tests/explore/client_automaton.h"

#include <utility>

#include "tests/explore/fingerprint.h"
#include "tests/explore/scratch_memory.h"

namespace onetrip {

struct ClientAutomaton::Reaction {
  bool returned = false;
  OpResult result;
  std::vector<Note> notes;
  bool has_timer = false;
  bool sleeps = false;  // a coroutine sleeps, until nothing is outstanding
  std::vector<std::shared_ptr<const PostedRound>> outstanding;

  [[nodiscard]] bool SameAs(const Reaction& other) const {
    if (returned != other.returned || result.kind != other.result.kind ||
        result.value != other.result.value || notes != other.notes ||
        has_timer != other.has_timer || outstanding.size() != other.outstanding.size()) {
      return false;
    }
    for (size_t i = 0; i < outstanding.size(); ++i) {
      if (!outstanding[i]->SameAs(*other.outstanding[i])) return false;
    }
    return true;
  }
};

// The live production objects of the client.
class ClientAutomaton::World {
 public:
  World(const Scope& scope, size_t client, CellTable& cells)
      : scope_(scope), client_index_(client), cells_(cells), fabric_(executor_, scope.traits()) {
    if (scope.works_in_background()) executor_.StandStill();
    client_ = scope.MakeClient({client, executor_, fabric_, notes_});
    Task<bool> open = client_->Open();
    ScratchMemory scratch([&scope](RemoteAddr at) { return scope.InitialWord(at); });
    CHECK(scratch.Finish(open, executor_, fabric_));
  }
  // Background steps go before what they refer to, as when a process dies.
  ~World() {
    task_ = Task<OpResult>();
    executor_.DropBackground();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Reaction Feed(uint32_t op, const ClientInput& input) {
    switch (input.kind) {
      case ClientInput::Kind::kStart:
        task_ = client_->Run(op);
        task_.Start();
        break;
      case ClientInput::Kind::kComplete:
        if (input.late) executor_.Advance((kOpTimeoutMs + 1) * 1'000'000);
        PostedRound::FillIn(*fabric_.outstanding()[input.round], input.results, input.answered);
        rounds_.erase(rounds_.begin() + input.round);
        fabric_.Complete(input.round);
        break;
      case ClientInput::Kind::kWake:
        CHECK(executor_.FireEarliest());
        break;
    }
    executor_.RunReady();
    // Nothing but the timer can happen to it, and what it does next is only to post: that early is
    // as good as late.
    while ((runs() || scope_.works_in_background()) && fabric_.outstanding().empty() &&
           executor_.MayFire()) {
      executor_.FireEarliest();
      executor_.RunReady();
    }
    return Look();
  }

 private:
  [[nodiscard]] bool runs() const { return task_.valid() && !task_.done(); }

  Reaction Look() {
    Reaction reaction;
    for (size_t i = rounds_.size(); i < fabric_.outstanding().size(); ++i) {
      rounds_.push_back(std::make_shared<const PostedRound>(
          PostedRound::From(*fabric_.outstanding()[i], client_index_, cells_)));
    }
    reaction.outstanding = rounds_;
    reaction.notes = std::exchange(notes_, {});
    reaction.sleeps = executor_.MayFire() && scope_.works_in_background();
    reaction.has_timer = executor_.MayFire() && !reaction.sleeps;
    if (task_.valid() && task_.done()) {
      reaction.returned = true;
      reaction.result = task_.TakeResult();
      task_ = Task<OpResult>();
    } else {
      CHECK(!runs() || !rounds_.empty());  // else an operation waits for nothing
    }
    return reaction;
  }

  // In the order in which they must not be destroyed: frames go first, the fabric's pool of round
  // trips last but for the executor's timers.
  const Scope& scope_;
  const size_t client_index_;
  CellTable& cells_;
  ExploreExecutor executor_;
  ExploreFabric fabric_;
  std::vector<Note> notes_;
  std::vector<std::shared_ptr<const PostedRound>> rounds_;
  std::unique_ptr<ExploredClient> client_;
  Task<OpResult> task_;
};

ClientAutomaton::ClientAutomaton(const Scope& scope, size_t client, CellTable& cells)
    : scope_(scope), client_(client), cells_(cells) {
  RootOf(0);
}

ClientAutomaton::~ClientAutomaton() = default;

ClientAutomaton::StateId ClientAutomaton::RootOf(uint32_t op) {
  const auto [found, is_new] = roots_.try_emplace(op, static_cast<StateId>(states_.size()));
  if (is_new) {
    State& root = states_.emplace_back();
    root.is_root = true;
    root.op = op;
  }
  return found->second;
}

void ClientAutomaton::Fail(const std::string& what) {
  if (error_.empty()) error_ = "client " + std::to_string(client_) + ": " + what;
}

const ClientAutomaton::Transition& ClientAutomaton::Take(StateId from, const ClientInput& input) {
  Fingerprint fingerprint;
  fingerprint.Add(static_cast<uint64_t>(input.kind) | uint64_t{input.round} << 8 |
                  uint64_t{input.late} << 16 | uint64_t{input.answered} << 24);
  for (const uint64_t word : input.results) fingerprint.Add(word);
  const Key key{from, fingerprint.value()};
  const auto found = known_.find(key);
  if (found != known_.end()) {
    CHECK(found->second.input == input);
    return found->second.transition;
  }
  return known_.emplace(key, Learn(from, input)).first->second.transition;
}

// The live objects may be anywhere along a history that leads to `id`; if they are not there, new
// ones are.
void ClientAutomaton::BringTo(StateId id) {
  if (world_ != nullptr && world_at_ == id) return;
  std::vector<StateId> path;
  for (StateId at = id; !states_[at].is_root; at = states_[at].parent) path.push_back(at);
  world_.reset();
  world_ = std::make_unique<World>(scope_, client_, cells_);
  for (size_t i = path.size(); i-- > 0;) {
    const State& state = states_[path[i]];
    const Reaction reaction = Feed(state.parent, state.input);
    bool same = reaction.outstanding.size() == state.outstanding.size();
    for (size_t k = 0; same && k < reaction.outstanding.size(); ++k) {
      same = reaction.outstanding[k]->SameAs(*state.outstanding[k]);
    }
    if (!same) Fail("did something else when its history was replayed");
  }
  world_at_ = id;
}

ClientAutomaton::Reaction ClientAutomaton::Feed(StateId from, const ClientInput& input) {
  const State& state = states_[from];
  // No operation runs out of time in its first wait.
  if (input.late && state.polls) world_->Feed(state.op, state.input);
  ++executed_;
  return world_->Feed(state.op, input);
}

ClientAutomaton::Reaction ClientAutomaton::React(StateId from, int extra_polls,
                                                 const ClientInput& input) {
  BringTo(from);
  for (int i = 0; i < extra_polls; ++i) Feed(from, states_[from].input);
  Reaction reaction = Feed(from, input);
  world_at_ = ~StateId{0};  // the caller knows better
  return reaction;
}

// An answer makes an operation go on if it posts anything but another round trip to the same node,
// as a CAS that has to be tried again does. Then what was asked before, and is not looked at later,
// is moot.
void ClientAutomaton::TakeNote(StateId from, const ClientInput& input, State* next) const {
  const State& state = states_[from];
  next->posted_by = state.posted_by;
  next->moot = state.moot;
  Fingerprint remembered;
  remembered.Add(state.remembered);
  Fingerprint counted;
  counted.Add(state.counted);
  bool is_moot = false;
  bool is_retry = false;
  if (input.kind == ClientInput::Kind::kComplete) {
    const PostedRound& round = *state.outstanding[input.round];
    const uint32_t of = state.posted_by[input.round];
    is_moot = state.moot[input.round];
    is_retry = next->outstanding.size() == state.outstanding.size() &&
               next->outstanding.back()->nodes == round.nodes;
    Fingerprint& to = scope_.IsLookedAtLater(round, cells_) ? remembered : counted;
    to.Add(HashOf(round));
    to.Add(input.answered);
    for (const uint64_t word : input.results) to.Add(word);
    next->posted_by.erase(next->posted_by.begin() + input.round);
    next->moot.erase(next->moot.begin() + input.round);
    if (is_retry) {
      next->posted_by.push_back(of);
      next->moot.push_back(is_moot);
    }
  }
  const size_t kept = next->posted_by.size();
  const bool goes_on = next->outstanding.size() > kept || next->op != state.op ||
                       input.kind != ClientInput::Kind::kComplete;
  next->posted_by.resize(next->outstanding.size(), state.op);
  next->moot.resize(next->outstanding.size(), false);
  next->remembered = state.remembered;
  next->counted = state.counted;
  // No operation was told of it.
  if (is_moot) return;
  if (goes_on) {
    remembered.Add(static_cast<uint64_t>(input.kind) << 32 | next->op);
    for (size_t i = kept; i < next->outstanding.size(); ++i) {
      remembered.Add(HashOf(*next->outstanding[i]));
    }
    for (size_t i = 0; i < kept; ++i) {
      if (!scope_.IsLookedAtLater(*next->outstanding[i], cells_)) next->moot[i] = true;
    }
  }
  next->remembered = remembered.value();
  next->counted = goes_on ? 0 : counted.value();
}

uint64_t ClientAutomaton::HashOf(const PostedRound& round) {
  Fingerprint fingerprint;
  for (const auto& accesses : round.by_node) {
    fingerprint.Add(accesses.size());
    for (const Access& access : accesses) {
      fingerprint.Add(uint64_t{access.cell} << 8 | static_cast<uint64_t>(access.kind));
      fingerprint.Add(access.expected);
      fingerprint.Add(access.operand);
    }
  }
  return fingerprint.value();
}

uint64_t ClientAutomaton::HashOf(const State& state) {
  Fingerprint fingerprint;
  fingerprint.Add(state.remembered);
  fingerprint.Add(state.counted);
  for (const auto& round : state.outstanding) fingerprint.Add(HashOf(*round));
  return fingerprint.value();
}

bool ClientAutomaton::AreAlike(const State& a, const State& b) {
  if (a.remembered != b.remembered || a.counted != b.counted || a.op != b.op ||
      a.running != b.running || a.has_timer != b.has_timer || a.posted_by != b.posted_by ||
      a.moot != b.moot || a.outstanding.size() != b.outstanding.size()) {
    return false;
  }
  for (size_t i = 0; i < a.outstanding.size(); ++i) {
    if (!a.outstanding[i]->SameAs(*b.outstanding[i])) return false;
  }
  return true;
}

void ClientAutomaton::TestTwin(StateId from, const ClientInput& input, const Reaction& expected) {
  BringTo(states_[from].twin_parent);
  Feed(states_[from].twin_parent, states_[from].twin_input);
  if (!Feed(from, input).SameAs(expected)) {
    Fail("did something else after another history with the same round trips outstanding");
  }
  world_.reset();
}

bool ClientAutomaton::IsSilent(StateId from, const ClientInput& input,
                               const Reaction& reaction) const {
  const State& state = states_[from];
  return input.kind == ClientInput::Kind::kComplete && !reaction.returned &&
         reaction.notes.empty() && reaction.has_timer == state.has_timer &&
         reaction.outstanding.size() + 1 == state.outstanding.size();
}

// The state was reached by an answer after which the same round trip was posted again.
bool ClientAutomaton::RepeatsItsRound(StateId id) const {
  const State& state = states_[id];
  if (state.is_root || state.input.kind != ClientInput::Kind::kComplete || state.has_timer) {
    return false;
  }
  const State& before = states_[state.parent];
  return before.outstanding.size() == 1 && state.outstanding.size() == 1 &&
         before.outstanding[0]->SameAs(*state.outstanding[0]);
}

bool ClientAutomaton::IsIdlePoll(StateId from, const ClientInput& input,
                                 const Reaction& reaction) const {
  return input == states_[from].input && !reaction.returned && reaction.notes.empty() &&
         !reaction.has_timer && reaction.outstanding.size() == 1 &&
         states_[from].outstanding[0]->SameAs(*reaction.outstanding[0]);
}

void ClientAutomaton::TestPoll(StateId from, const ClientInput& input, const Reaction& expected) {
  constexpr int kExtraPolls = 2;
  world_.reset();
  if (!React(from, kExtraPolls, input).SameAs(expected)) {
    Fail("a poll that was answered as before has changed what it does next");
  }
  world_.reset();
}

ClientAutomaton::Known ClientAutomaton::Learn(StateId from, const ClientInput& input) {
  Reaction reaction = React(from, 0, input);
  Known known;
  known.input = input;
  Transition& transition = known.transition;
  if (states_[from].polls && IsIdlePoll(from, input, reaction)) {
    transition.next = from;
    world_.reset();
    return known;
  }
  if (states_[from].polls) TestPoll(from, input, reaction);
  // It tests a part of those: a test takes two replays.
  constexpr size_t kOneOf = 8;
  if (states_[from].has_twin && known_.size() % kOneOf == 0) TestTwin(from, input, reaction);
  transition.returned = reaction.returned;
  transition.result = reaction.result;
  transition.silent = IsSilent(from, input, reaction);
  transition.notes = std::move(reaction.notes);
  const uint32_t op = states_[from].op;
  const bool starts = input.kind == ClientInput::Kind::kStart;
  const bool running = (starts || states_[from].running) && !reaction.returned;
  const uint32_t next_op = reaction.returned ? op + 1 : op;
  const bool is_over = next_op == scope_.programs()[client_].size();
  if (!running && reaction.outstanding.empty() && (!scope_.clients_remember() || is_over)) {
    transition.next = RootOf(next_op);
    world_.reset();
    return known;
  }
  State next;
  next.parent = from;
  next.input = input;
  next.op = next_op;
  next.running = running;
  next.has_timer = reaction.has_timer;
  next.answers = starts || reaction.returned ? 0 : states_[from].answers + 1;
  next.outstanding = std::move(reaction.outstanding);
  TakeNote(from, input, &next);
  if (scope_.asks_quorums()) {
    bool is_told = !running && is_over && !reaction.sleeps;
    for (const auto& round : next.outstanding) is_told &= !round->of_background;
    if (is_told) next.remembered = next.counted = 0;
    std::vector<StateId>& alike = alike_[HashOf(next)];
    for (const StateId id : alike) {
      State& known_state = states_[id];
      if (!AreAlike(known_state, next)) continue;
      if (!known_state.has_twin && known_state.parent != from) {
        known_state.has_twin = true;
        known_state.twin_parent = from;
        known_state.twin_input = input;
      }
      transition.next = id;
      world_.reset();
      return known;
    }
    alike.push_back(static_cast<StateId>(states_.size()));
  }
  transition.next = static_cast<StateId>(states_.size());
  states_.push_back(std::move(next));
  if (world_ != nullptr) world_at_ = transition.next;
  // Known at once, so that what a state allows never depends on which other states were visited.
  const StateId id = transition.next;
  if (scope_.polls_are_idle() && (running || scope_.works_in_background()) && RepeatsItsRound(id)) {
    states_[id].polls = IsIdlePoll(id, input, React(id, 0, input));
  }
  return known;
}

}  // namespace onetrip
