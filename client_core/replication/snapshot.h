// SNAPSHOT: replicated slots without a primary server (FUSEE 4.3, Algorithms 1 and 2).
//
// A round of a slot begins with all replicas equal. Writers CAS the backups from v_old, all learn
// the same votes, one of them wins, repairs the backups and changes the primary;
// the others wait for that. Readers take the primary's word, and ask a majority for it
// (PROTOCOLS, "A read of slots has witnesses"). The winner knows that the slot went
// exactly from v_old to v_new, so a SNAPSHOT write is a compare-and-swap.
//
// The slot's replicas are those that were live when an attempt at the write began: the master lets
// all attempts end before it changes them, and what was cut short begins another under the new
// view.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_

#include <absl/container/flat_hash_set.h>

#include <array>
#include <optional>

#include "client_core/coro/sync.h"
#include "client_core/layout/types.h"
#include "client_core/replication/engine.h"
#include "client_core/replication/snapshot_rules.h"

namespace onetrip {

class Snapshot : public Engine {
 public:
  explicit Snapshot(WorkerContext& context) : context_(context), gate_(context.executor) {}

  [[nodiscard]] int Replicas(const View& view, GlobalAddr addr) const override {
    return view.LiveReplicas(addr);
  }
  [[nodiscard]] std::string_view name() const override { return "snapshot"; }
  [[nodiscard]] RegisterKind registers() const override { return RegisterKind::kMet; }
  MaybeTask<Result<SlotOutcome>> Write(Operation& operation, SlotWrite write) override;
  Task<Status> Stop(uint64_t until_ns) override;

 private:
  // Where the replicas of a write's slot lie, from the beginning of an attempt to its end.
  struct Places {
    std::array<RemoteAddr, kMaxReplicas> at;
    int count = 0;
  };
  struct Votes {
    std::array<uint64_t, kMaxReplicas> word{};
    size_t count = 0;
    [[nodiscard]] std::span<const uint64_t> words() const { return {word.data(), count}; }
  };
  // How far a write has come, over all its attempts.
  struct Progress {
    size_t first_writes = 0;     // the caller's WRITEs in `first`
    bool again = false;          // it was cut short
    bool touched = false;        // v_new may be in a backup
    bool overtaken = false;      // later rounds have hidden what became of it
    bool is_left = false;        // its operation has ended: if it loses, that is all
    std::optional<Votes> votes;  // the votes of the attempt that is to go on
  };

  // Rule 1 where the fabric completes inline: the same steps without a coroutine. Nothing:
  // `progress` says from where the slow path goes on.
  std::optional<Result<SlotOutcome>> WriteFast(Operation& operation, const SlotWrite& write,
                                               Progress* progress);
  Task<Result<SlotOutcome>> WriteSlow(Operation& operation, SlotWrite write, Progress progress);
  Task<Result<SlotOutcome>> Attempt(Operation& operation, const SlotWrite& write,
                                    Progress* progress);
  Task<Result<SlotOutcome>> EndRound(Operation& operation, const SlotWrite& write,
                                     const Places& places, const Votes& votes, Progress* progress);
  // Whoever waits for the slot waits for this write: another one can't, or must not, end it.
  static bool OwesEnd(const SlotWrite& write, const Progress& progress) {
    return progress.touched || write.step == SlotStep::kCommit || write.step == SlotStep::kWithdraw;
  }
  Task<Result<SlotOutcome>> EndOvertaken(Operation& operation, const SlotWrite& write,
                                         const Places& places, CutShortNext next, uint64_t now,
                                         Progress* progress);
  Task<Status> TakeBack(Operation& operation, const SlotWrite& write, const Places& places);
  // Goes on with a round that an operation has left, in which v_new may be in a backup: the next
  // writer of the slot waits for its end. `first` may be null.
  Task<void> FinishRound(SlotWrite write, RoundTripPtr first, Progress progress, EpochPin pin,
                         Quiesce::InFlightGuard in_flight);
  // True if the client of the write has its answer once the backups hold v_new.
  [[nodiscard]] bool AnswersAhead(const SlotWrite& write, const Places& places,
                                  const Progress& progress) const;
  // The primary's part of a commit that is decided.
  Task<void> EndCommit(SlotWrite write, Places places, Progress progress, EpochPin pin,
                       Quiesce::InFlightGuard in_slots);
  // A write of a slot whose commit is under way behind its answer begins at the commit's word.
  Task<Status> TurnClaim(Operation& operation, const SlotWrite& write);
  // At the slots, until no failed batch may still take effect; `in_slots` has entered them.
  void StayUntilSettled(const SlotWrite& write, const Quiesce::InFlightGuard& in_slots);
  Task<void> AwaitSettled(Quiesce::InFlightGuard in_slots);
  // `write` with what `first` holds of its caller, where it has failed, in `*repeated`.
  void Repeat(const RoundTripPtr& first, const Progress& progress, RoundTripPtr* repeated,
              SlotWrite* write);
  [[nodiscard]] Places PlacesOf(const SlotWrite& write) const;
  // The steps' batches, and what their answers mean.
  // Returns the place of the CAS.
  static size_t AddCasOfPrimary(RoundTrip& round_trip, const SlotWrite& write,
                                const Places& places);
  static Result<SlotOutcome> TakeCasOfPrimary(const RoundTripPtr& round_trip, size_t cas,
                                              const SlotWrite& write, const Places& places);
  void AddVotes(RoundTrip& round_trip, const SlotWrite& write, const Places& places) const;
  static Status TakeVotes(const RoundTrip& round_trip, Status status, const SlotWrite& write,
                          const Places& places, Progress* progress, Votes* votes);
  static Result<SlotOutcome> OutcomeOf(uint64_t found, const SlotWrite& write,
                                       const Places& places);
  Task<Status> CasBackups(Operation& operation, const SlotWrite& write, const Places& places,
                          Progress* progress, Votes* votes);
  Task<Status> FixBackups(Operation& operation, const SlotWrite& write, const Places& places,
                          const Votes& votes);
  // `round_trip` may hold what goes ahead of the CAS.
  Task<Result<SlotOutcome>> CasPrimary(Operation& operation, const SlotWrite& write,
                                       const Places& places, RoundTripPtr round_trip);
  // With what `round_trip` holds, if it is not null.
  Task<Result<uint64_t>> ReadPrimary(Operation& operation, const Places& places,
                                     RoundTripPtr round_trip = RoundTripPtr());
  // The fate of a write that was cut short: `now` is in the primary, and the logs of the records
  // since tell what each of them replaced.
  Task<Result<Fate>> AskLogs(Operation& operation, const SlotWrite& write, uint64_t now);
  Task<Result<SlotOutcome>> AwaitChange(Operation& operation, const SlotWrite& write,
                                        const Places& places, const Progress& progress);

  WorkerContext& context_;
  Gate gate_;
  bool stopping_ = false;
  absl::flat_hash_set<uint64_t> ending_;  // committed words: EndCommit is under way
  bool stays_ = false;                    // AwaitSettled is under way
  uint64_t stay_until_ns_ = 0;
};

// The same slots; keys are held as Safe-Guess registers where that can be (SWARM 5).
class Swarm final : public Snapshot {
 public:
  using Snapshot::Snapshot;
  [[nodiscard]] std::string_view name() const override { return "swarm"; }
  [[nodiscard]] RegisterKind registers() const override { return RegisterKind::kSafeGuess; }
};

// And with ABD: DM-ABD of SWARM 7.
class DmAbd final : public Snapshot {
 public:
  using Snapshot::Snapshot;
  [[nodiscard]] std::string_view name() const override { return "abd"; }
  [[nodiscard]] RegisterKind registers() const override { return RegisterKind::kAbd; }
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_
