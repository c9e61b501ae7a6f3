// System: clients, channels and memory nodes as a transition relation over SystemState.
//
// Every (client, node) pair is a FIFO channel. A step applies the next access of one channel; the
// rest follows at once where that is exact:
//  - An operation starts together with its first access and returns as soon as it is answered. Any
//    other start is earlier and any other return later, and so leaves the history fewer "this one
//    ended before that one began": what is linearizable here is so there. Nothing posted in between
//    has an effect. Steps of different operations are never swapped across a return and a start.
//  - A reply is delivered at once when that is all that can happen to its client: it enables only
//    the client's next post, which may be applied as late as one likes. It is a choice of its own
//    while the client has something else outstanding, or a crash may still take the reply away.
//  - Accesses that no other client can notice go with the step next to them (see CellTable), as
//    long as no crash of their node can be noticed by them.
//  - Requests on a lost node fail at once; its memory is never seen again, so it is forgotten.
#ifndef ONETRIP_TESTS_EXPLORE_SYSTEM_H_
#define ONETRIP_TESTS_EXPLORE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/explore/fingerprint.h"
#include "tests/explore/system_state.h"

namespace onetrip {

class System {
 public:
  System(const Scope& scope, CellTable& cells);

  // Says if steps keep count of preemptions: switches away from a client in the middle of an
  // operation, except where it has just polled in vain.
  void CountPreemptions(bool count) { count_preemptions_ = count; }
  // See ExploreOptions.
  void Reduce(bool reduce) { reduces_ = reduce; }
  void KeepResults(bool keep) { keeps_results_ = keep; }
  // Steps are told to `trace` from now on, one line each; null: no longer.
  void TraceTo(std::vector<std::string>* trace) { trace_ = trace; }

  [[nodiscard]] SystemState Initial() const;
  // The choices that there are in `state`.
  void Choices(const SystemState& state, std::vector<Choice>* choices);
  // Lets it happen. False: something is wrong, see violation(), or stale() of the cell table.
  bool Apply(SystemState* state, const Choice& choice);
  // The checks of a state in which nothing more happens, or only polls do.
  bool CheckEnd(const SystemState& state);
  [[nodiscard]] const std::string& violation() const { return violation_; }

  [[nodiscard]] uint64_t FingerprintOf(const SystemState& state) const;
  // The same, whatever the cell table knows, for two states with the same words in memory and the
  // same results.
  [[nodiscard]] uint64_t EndingOf(const SystemState& state) const;
  // Some operation has had more answers than are followed: Scope::answers_max.
  [[nodiscard]] bool IsCut(const SystemState& state) const;
  // All operations of all clients that are alive have returned.
  [[nodiscard]] bool AllDone(const SystemState& state) const;

  [[nodiscard]] uint64_t executed() const;
  [[nodiscard]] size_t client_states() const;

 private:
  // The words of the nodes in `state`.
  class Memory final : public MemoryView {
   public:
    Memory(const System& system, const SystemState& state) : system_(system), state_(state) {}
    [[nodiscard]] uint64_t Word(RemoteAddr at) const override {
      const Cell* cell = system_.cells_.Find(at);
      return cell != nullptr && cell->slot >= 0 ? state_.words[cell->slot]
                                                : system_.scope_.InitialWord(at);
    }
    [[nodiscard]] uint32_t crashed_nodes() const override { return state_.crashed_nodes; }

   private:
    const System& system_;
    const SystemState& state_;
  };

  [[nodiscard]] const ClientAutomaton::State& StateOf(const SystemState& state, size_t c) const {
    return automata_[c]->state(state.clients[c].state);
  }
  [[nodiscard]] bool AnyCrash(const SystemState& state) const;
  [[nodiscard]] bool CrashesLeft(const SystemState& state) const {
    return state.worker_crashes_left + state.node_crashes_left > 0;
  }
  [[nodiscard]] bool IsStep(const SystemState& state, size_t c, const Access& access,
                            size_t index) const {
    const bool writes = access.kind != FabricOpKind::kRead;
    return !reduces_ || (!access.is_unnoticed && cells_.cell(access.cell).IsStep(c, writes)) ||
           (index == 0 && state.node_crashes_left > 0);
  }
  // Its worker, in the middle of something.
  [[nodiscard]] bool MayCrash(const SystemState& state, size_t c) const {
    const bool is_at_work = StateOf(state, c).running ||
                            (scope_.works_in_background() && state.clients[c].flight_count > 0);
    return is_at_work && state.worker_crashes_left > 0;
  }
  // All its operations have returned.
  [[nodiscard]] bool IsOver(const SystemState& state, size_t c) const {
    const ClientAutomaton::State& now = StateOf(state, c);
    return !now.running && now.op == scope_.programs()[c].size();
  }
  // True if what its stragglers read makes no difference to what they do: see system_quorum.cc.
  [[nodiscard]] bool ReadsAreMoot(const SystemState& state, size_t c,
                                  const PostedRound& round) const {
    return scope_.asks_quorums() && !round.of_background && IsOver(state, c);
  }
  // Where in `found` the words of flight `flight` of `c` begin.
  [[nodiscard]] size_t FoundAt(const SystemState& state, size_t c, size_t flight) const {
    size_t at = 0;
    for (size_t i = 0; i < flight; ++i) at += StateOf(state, c).outstanding[i]->results;
    return at;
  }
  // The flight of `c` whose next access on `node` waits for a step, or -1.
  [[nodiscard]] int Waiting(const SystemState& state, size_t c, size_t node) const;
  [[nodiscard]] bool IsComplete(const SystemState& state, size_t c, size_t flight) const;
  [[nodiscard]] bool DeliversAtOnce(const SystemState& state, size_t c) const;
  [[nodiscard]] bool MayTimeOut(const SystemState& state, size_t c, size_t node) const;

  void AddStarts(const SystemState& state, size_t c, std::vector<Choice>* choices);
  bool Start(SystemState* state, size_t c);
  bool AccessNext(SystemState* state, size_t c, size_t node);
  bool ApplyAccess(SystemState* state, size_t c, size_t flight, size_t node);
  bool Deliver(SystemState* state, size_t c, size_t flight, uint32_t lost, bool late);
  // The input that answers `flight`, whose words begin at `found_at`.
  void Answer(const SystemState& state, size_t c, size_t flight, size_t found_at, uint32_t lost,
              bool late, ClientInput* input) const;

  // For clients that ask quorums: see system_quorum.cc.
  void MarkFresh(SystemState* state, size_t c) const;
  // The ways in which answers, some fresh one among them, let the operation of `c` go on.
  void DeliverableSets(const SystemState& state, size_t c, std::vector<Choice>* choices);
  [[nodiscard]] bool LetsItGoOn(const SystemState& state, size_t c, uint32_t set, uint32_t lost);
  [[nodiscard]] bool MayHold(const SystemState& state, size_t c) const;
  // False: no answer of `c` is fresh, so other steps may follow.
  bool AddDeliveries(const SystemState& state, size_t c, std::vector<Choice>* choices);
  bool DeliverSet(SystemState* state, size_t c, const Choice& choice);
  bool SettleQuorums(SystemState* state, size_t c);
  bool Take(SystemState* state, size_t c, const ClientInput& input);
  bool Returned(SystemState* state, size_t c, size_t op, const OpResult& result);
  void AddRest(const SystemState& state, size_t c, Fingerprint* fingerprint) const;
  // The words found by CAS, FAA and MAX.
  void AddFound(const SystemState& state, size_t c, size_t flight, size_t found_at,
                Fingerprint* fingerprint) const;
  void CrashWorker(SystemState* state, size_t c);
  void CrashNode(SystemState* state, size_t node);
  // Everything that follows at once.
  bool Settle(SystemState* state);
  // One client's accesses that are no steps. False: something is wrong.
  bool Advance(SystemState* state, size_t c);
  bool Fail(const std::string& what);
  void Say(const std::string& line) {
    if (trace_ != nullptr) trace_->push_back(line);
  }

  const Scope& scope_;
  CellTable& cells_;
  Monitor monitor_;
  std::vector<std::unique_ptr<ClientAutomaton>> automata_;
  ClientInput input_;  // reused
  ClientInput tried_;  // likewise
  std::vector<Choice> sets_;
  std::string violation_;
  std::vector<std::string>* trace_ = nullptr;
  bool reduces_ = true;
  bool keeps_results_ = false;
  bool count_preemptions_ = false;
  bool polled_in_vain_ = false;  // by the step being taken
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_SYSTEM_H_
