// ClientAutomaton: the production code of one client as an automaton that is learned while it is
// explored.
//
// A coroutine cannot be copied, and to run it again from the start for every schedule is slow. But
// it sees nothing except what its round trips return: where it stands is a function of the answers
// so far. So every (state, answer) is run once, on live production objects that are brought there
// by replay, and what the code did is kept: the round trips it posted, or its result. From then on
// that step of the client costs a look-up, and a state of the whole system is a small value.
//
// Two histories lead to one state
//  - between two operations, if the scope says that clients remember nothing; and
//  - when a poll was answered as the one before and the same poll follows (Scope::polls_are_idle).
//    Whatever is learned from such a state is run with two more idle polls as well, and must come
//    out the same; and
//  - of a client that asks quorums, when they differ only in answers that are not looked at later
//    (Scope::IsLookedAtLater); or when its program is over and the same round trips are
//    outstanding, whose coroutines know no more than what they have posted. Of what is learned
//    from such states a part is run after another of their histories as well.
#ifndef ONETRIP_TESTS_EXPLORE_CLIENT_AUTOMATON_H_
#define ONETRIP_TESTS_EXPLORE_CLIENT_AUTOMATON_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/explore/posted_round.h"
#include "tests/explore/scope.h"

namespace onetrip {

// An event that happens to a client.
struct ClientInput {
  enum class Kind : uint8_t {
    kStart,     // its next operation begins
    kComplete,  // the round trip at `round` of those outstanding is answered
    kWake,      // its earliest timer fires
  };
  Kind kind = Kind::kStart;
  uint8_t round = 0;
  bool late = false;      // kComplete: so late that the operation has timed out
  uint32_t answered = 0;  // kComplete: nodes, one bit each; on the others it failed
  std::vector<uint64_t> results;

  friend bool operator==(const ClientInput&, const ClientInput&) = default;
};

class ClientAutomaton {
 public:
  using StateId = uint32_t;

  struct State {
    StateId parent = 0;
    ClientInput input;  // that led here from `parent`
    uint32_t op = 0;    // running, or next
    bool is_root = false;
    bool running = false;
    bool has_timer = false;  // kWake is possible, beside round trips that are outstanding
    bool polls = false;      // an idle poll leads back here
    uint32_t answers = 0;    // that the operation running has had
    std::vector<std::shared_ptr<const PostedRound>> outstanding;
    // By round trip outstanding: the operation that it is of, and whether that has gone on without
    // its answer and will not look at it any more.
    std::vector<uint32_t> posted_by;
    std::vector<bool> moot;
    // asks_quorums(): what it may remember of its answers, hashed: those that are looked at later,
    // with what it did; and the others since it last went on.
    uint64_t remembered = 0;
    uint64_t counted = 0;
    // Another history that leads here.
    bool has_twin = false;
    StateId twin_parent = 0;
    ClientInput twin_input;
  };
  struct Transition {
    StateId next = 0;
    bool returned = false;
    bool silent = false;  // an answer after which the client did nothing
    OpResult result;
    std::vector<Note> notes;
  };

  ClientAutomaton(const Scope& scope, size_t client, CellTable& cells);
  ~ClientAutomaton();

  static constexpr StateId kInitial = 0;
  [[nodiscard]] const State& state(StateId id) const { return states_[id]; }
  // The reference holds until the next call.
  const Transition& Take(StateId from, const ClientInput& input);

  // Tells what is wrong with the client itself: it behaved differently in a replay, or an idle poll
  // was not idle. Empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] size_t size() const { return states_.size(); }
  // Inputs that live objects were fed.
  [[nodiscard]] uint64_t executed() const { return executed_; }

 private:
  class World;
  // The effects that live objects had upon one input.
  struct Reaction;

  struct Key {
    StateId from;
    uint64_t hash;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.hash + key.from * 0x9e3779b97f4a7c15ULL; }
  };
  struct Known {
    ClientInput input;
    Transition transition;
  };

  Known Learn(StateId from, const ClientInput& input);
  // Feeds the live objects, which stand behind `from`.
  Reaction Feed(StateId from, const ClientInput& input);
  // Brings them there and feeds them; they stand behind `from` and `extra_polls` idle polls.
  Reaction React(StateId from, int extra_polls, const ClientInput& input);
  void BringTo(StateId id);
  [[nodiscard]] bool IsSilent(StateId from, const ClientInput& input,
                              const Reaction& reaction) const;
  [[nodiscard]] bool RepeatsItsRound(StateId id) const;
  [[nodiscard]] bool IsIdlePoll(StateId from, const ClientInput& input,
                                const Reaction& reaction) const;
  void TestPoll(StateId from, const ClientInput& input, const Reaction& expected);
  void TakeNote(StateId from, const ClientInput& input, State* next) const;
  static uint64_t HashOf(const PostedRound& round);
  static uint64_t HashOf(const State& state);
  static bool AreAlike(const State& a, const State& b);
  void TestTwin(StateId from, const ClientInput& input, const Reaction& expected);
  StateId RootOf(uint32_t op);
  void Fail(const std::string& what);

  const Scope& scope_;
  const size_t client_;
  CellTable& cells_;
  std::deque<State> states_;
  std::unordered_map<Key, Known, KeyHash> known_;
  std::unordered_map<uint32_t, StateId> roots_;
  std::unordered_map<uint64_t, std::vector<StateId>> alike_;  // by HashOf
  std::unique_ptr<World> world_;
  StateId world_at_ = 0;
  uint64_t executed_ = 0;
  std::string error_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_CLIENT_AUTOMATON_H_
