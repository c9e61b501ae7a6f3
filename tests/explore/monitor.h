// Monitor: linearizability, decided while the history grows.
//
// Its state is everything the past still says about the future: the operations that are open, and
// each (value of the object, which open operations have already taken effect and with what result)
// that some linearization of the past leads to. An operation that returns keeps those in which it
// has taken effect with the result it returned; when none is left, the history is not linearizable.
// Two histories with the same state have the same future, so the explorer need not tell them apart:
// states are interned and steps remembered.
//
// An operation whose outcome is unknown, or whose worker died, stays open for good: it may take
// effect at any time after its start, or never.
#ifndef ONETRIP_TESTS_EXPLORE_MONITOR_H_
#define ONETRIP_TESTS_EXPLORE_MONITOR_H_

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tests/explore/scope.h"

namespace onetrip {

class Monitor {
 public:
  using StateId = uint32_t;

  explicit Monitor(const Scope& scope);

  static constexpr StateId kInitial = 0;
  // The history is not linearizable.
  static constexpr StateId kViolated = ~StateId{0};

  StateId Start(StateId from, size_t client, size_t op) {
    return Take({from, Event::kStart, client, op, 0});
  }
  StateId Return(StateId from, size_t client, size_t op, uint64_t result) {
    return Take({from, Event::kReturn, client, op, result});
  }
  // Returned without saying whether it happened.
  StateId ReturnUnknown(StateId from, size_t client, size_t op) {
    const bool forget = scope_.programs()[client][op].reads_only;
    return forget ? Take({from, Event::kForget, client, op, 0}) : from;
  }
  // Returns true if the object may have `value`, all that is closed having happened.
  [[nodiscard]] bool MayBe(StateId state, uint64_t value) const;

  [[nodiscard]] size_t size() const { return states_.size(); }

 private:
  enum class Event : uint8_t { kStart, kReturn, kForget };
  using Step = std::tuple<StateId, Event, size_t, size_t, uint64_t>;

  struct OpenOp {
    size_t client;
    size_t op;
    friend auto operator<=>(const OpenOp&, const OpenOp&) = default;
  };
  // One way the past may have been. `results` only of operations in effect.
  struct World {
    uint64_t value = 0;
    std::map<OpenOp, uint64_t> results;
    friend auto operator<=>(const World&, const World&) = default;
  };
  struct State {
    std::set<OpenOp> open;
    std::set<World> worlds;  // with every world that follows by an open operation taking effect
    friend auto operator<=>(const State&, const State&) = default;
  };

  StateId Take(const Step& step);
  StateId Intern(const State& state);
  // Adds the worlds in which open operations take effect now.
  void Close(State* state) const;

  const Scope& scope_;
  std::map<State, StateId> ids_;
  std::vector<const State*> states_;
  std::map<Step, StateId> steps_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_MONITOR_H_
