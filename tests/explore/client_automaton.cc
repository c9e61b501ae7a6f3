#include "tests/explore/client_automaton.h"

#include <utility>

#include "tests/explore/fingerprint.h"

namespace onetrip {

struct ClientAutomaton::Reaction {
  bool returned = false;
  OpResult result;
  std::vector<Note> notes;
  bool has_timer = false;
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
      : scope_(scope), client_index_(client), cells_(cells), fabric_(executor_) {
    client_ = scope.MakeClient({client, executor_, fabric_, notes_});
    Task<bool> open = client_->Open();
    open.Start();
    while (!open.done()) {
      CHECK(!fabric_.outstanding().empty());
      AnswerFromInitialMemory();
      executor_.RunReady();
    }
    CHECK(open.TakeResult());
  }

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
    while (runs() && fabric_.outstanding().empty() && executor_.FireEarliest()) {
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
    reaction.has_timer = !executor_.timers().empty();
    if (task_.valid() && task_.done()) {
      reaction.returned = true;
      reaction.result = task_.TakeResult();
      task_ = Task<OpResult>();
    } else {
      CHECK(!runs() || !rounds_.empty());  // else an operation waits for nothing
    }
    return reaction;
  }

  void AnswerFromInitialMemory() {
    RoundTrip& round_trip = *fabric_.outstanding().front();
    uint32_t nodes = 0;
    std::vector<uint64_t> results;
    for (const FabricOp& op : round_trip.ops()) {
      CHECK(op.kind == FabricOpKind::kRead);
      nodes |= 1U << op.node.value;
      for (uint64_t at = 0; at < op.bytes; at += 8) {
        results.push_back(scope_.InitialWord({op.node, op.offset + at}));
      }
    }
    PostedRound::FillIn(round_trip, results, nodes);
    fabric_.Complete(0);
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
  // Nobody runs out of time in his first wait.
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
  transition.returned = reaction.returned;
  transition.result = reaction.result;
  transition.notes = std::move(reaction.notes);
  const uint32_t op = states_[from].op;
  if (reaction.returned && !scope_.clients_remember() && reaction.outstanding.empty()) {
    transition.next = RootOf(op + 1);
    world_.reset();
    return known;
  }
  transition.next = static_cast<StateId>(states_.size());
  State& next = states_.emplace_back();
  next.parent = from;
  next.input = input;
  next.op = reaction.returned ? op + 1 : op;
  next.running = !reaction.returned;
  next.has_timer = reaction.has_timer;
  next.outstanding = std::move(reaction.outstanding);
  if (world_ != nullptr) world_at_ = transition.next;
  // Known at once, so that what a state allows never depends on which other states were visited.
  const StateId id = transition.next;
  if (scope_.polls_are_idle() && next.running && RepeatsItsRound(id)) {
    next.polls = IsIdlePoll(id, input, React(id, 0, input));
  }
  return known;
}

}  // namespace onetrip
