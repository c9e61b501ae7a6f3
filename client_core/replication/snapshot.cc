#include "client_core/replication/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/record.h"
#include "client_core/replication/snapshot_rules.h"

namespace onetrip {
namespace {

constexpr uint64_t kStayNs = 500'000'000;

// The caller's WRITEs in `first` have to be repeated wherever they failed, before the CAS that goes
// with them; a node that is out needs them no more.
RoundTripPtr WritesToRepeat(WorkerContext& context, RoundTrip& first, size_t count) {
  RoundTripPtr repeated = context.fabric.NewRoundTrip();
  for (size_t i = 0; i < count; ++i) {
    const FabricOp& op = first.op(i);
    if (op.ok || op.kind != FabricOpKind::kWrite || context.view().IsOut(op.node)) continue;
    repeated->Write({op.node, op.offset}, op.local, op.bytes);
  }
  return repeated;
}

// Who owes the write an end goes on, too, when its lease had run out, for it may be renewed.
bool IsCutShort(const Status& status, bool owes_end) {
  return MayHaveLostNode(status) || (owes_end && status.code() == StatusCode::kFenced);
}

// The part that is left of a write whose operation waits no longer: a claim is not made any more.
SlotWrite EndOf(SlotWrite write) {
  write.behind = nullptr;
  if (write.step != SlotStep::kClaim) return write;
  write.first = nullptr;
  std::swap(write.v_old, write.v_new);
  write.step = SlotStep::kWithdraw;
  return write;
}

}  // namespace

MaybeTask<Result<SlotOutcome>> Snapshot::Write(Operation& operation, SlotWrite write) {
  CHECK(write.v_old != write.v_new);
  Progress progress;
  if (write.first != nullptr) progress.first_writes = write.first->size();
  if (context_.fabric.completes_inline()) {
    std::optional<Result<SlotOutcome>> outcome = WriteFast(operation, write, &progress);
    if (outcome.has_value()) return *outcome;
  }
  return WriteSlow(operation, write, progress);
}

std::optional<Result<SlotOutcome>> Snapshot::WriteFast(Operation& operation, const SlotWrite& write,
                                                       Progress* progress) {
  CHECK(!context_.quiesce.slots_are_still());
  const Places places = PlacesOf(write);
  RoundTripPtr round_trip = FirstRoundTrip(context_, write);
  if (!IsOfPrimaryAlone(write.step)) {
    AddVotes(*round_trip, write, places);
    Votes votes;
    if (!round_trip->empty()) {
      const Status posted = PostInline(context_, operation, round_trip);
      progress->again = !TakeVotes(*round_trip, posted, write, places, progress, &votes).ok();
      if (progress->again) return std::nullopt;
    }
    progress->votes = votes;
    const Verdict verdict = EvaluateRules(votes.words(), write.v_new);
    const bool has_won = NextOfRound(verdict, write.shared) == RoundNext::kCommit;
    if (!has_won && !Planted(Bug::kInlineVotesNotCounted)) return std::nullopt;
    round_trip = context_.fabric.NewRoundTrip();
  }
  const size_t cas = AddCasOfPrimary(*round_trip, write, places);
  if (!PostInline(context_, operation, round_trip).ok()) {
    progress->again = progress->touched = true;
    return std::nullopt;
  }
  return TakeCasOfPrimary(round_trip, cas, write, places);
}

// Algorithm 4: a write that loses a node waits until it is back or out, its slots left to the
// worker that makes them alike meanwhile, and looks what the primary says.
Task<Result<SlotOutcome>> Snapshot::WriteSlow(Operation& operation, SlotWrite write,
                                              Progress progress) {
  const RoundTripPtr first(write.first);
  RoundTripPtr repeated;
  uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  for (uint32_t retries = 0;; ++retries) {
    if (progress.again) Repeat(first, progress, &repeated, &write);
    Status turned;
    if (ending_.contains(write.v_old)) [[unlikely]]
      turned = co_await TurnClaim(operation, write);
    Result<SlotOutcome> outcome = SlotOutcome();
    if (turned.ok()) outcome = co_await Attempt(operation, write, &progress);
    if (!turned.ok()) outcome = turned;
    if (outcome.ok()) {
      // A WRITE of the log that has failed may still arrive, behind one of another round.
      SlotOutcome decided = *outcome;
      decided.spent = !decided.won && progress.again;
      co_return decided;
    }
    const bool owes_end = OwesEnd(write, progress);
    if (!IsCutShort(outcome.status(), owes_end)) {
      co_return progress.touched ? AfterSend(outcome.status()) : outcome.status();
    }
    StayUntilSettled(write, operation.in_flight);
    bool goes_on = !progress.overtaken && retries < context_.options.node_loss_retries_max &&
                   outcome.status().code() != StatusCode::kFenced &&
                   !OutOfTime(context_, operation);
    if (goes_on) {
      operation.in_flight.LeaveSlots();
      co_await context_.executor.SleepFor(wait_ns);
      wait_ns =
          std::min<uint64_t>(2 * wait_ns, uint64_t{context_.options.wait_timer_max_us} * 1000);
      goes_on = co_await operation.in_flight.EnterSlots(operation.deadline_ns);
    }
    if (!goes_on && owes_end) {
      const bool is_bounded = retries == context_.options.node_loss_retries_max;
      if (!progress.overtaken && !is_bounded && !Planted(Bug::kRoundLeft)) {
        context_.executor.Spawn(
            gate_,
            FinishRound(EndOf(write), write.step == SlotStep::kClaim ? RoundTripPtr() : first,
                        progress, operation.pin.Share(),
                        Planted(Bug::kLeftRoundUnseen) ? Quiesce::InFlightGuard()
                                                       : Quiesce::InFlightGuard(context_.quiesce)));
      }
      co_return AfterSend(outcome.status());
    }
    if (!goes_on) co_return Status(StatusCode::kUnavailable, "the slot's round was not decided");
    progress.again = true;
  }
}

void Snapshot::Repeat(const RoundTripPtr& first, const Progress& progress, RoundTripPtr* repeated,
                      SlotWrite* write) {
  if (!first) return;
  *repeated = WritesToRepeat(context_, *first, progress.first_writes);
  write->first = repeated->get();
}

// Algorithm 4 beyond the time that its client waits. The pin, if the writer had one, keeps v_old,
// and what v_new names, from coming back as something else. A quiesce of all slots waits for the
// in-flight guard: behind a swap of databases the round would be another key's, and a region that
// is copied meanwhile would miss it.
Task<void> Snapshot::FinishRound(SlotWrite write, RoundTripPtr first, Progress progress,
                                 EpochPin /*pin*/, Quiesce::InFlightGuard in_flight) {
  const uint64_t wait_ns = uint64_t{context_.options.wait_timer_max_us} * 1000;
  RoundTripPtr repeated;
  progress.again = true;
  progress.is_left = true;
  while (!stopping_) {
    co_await context_.executor.SleepFor(wait_ns);
    const uint64_t deadline_ns =
        context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000;
    Operation operation;
    operation.in_flight = in_flight;
    const bool entered = co_await operation.in_flight.EnterSlots(deadline_ns);
    if (!entered) continue;
    Repeat(first, progress, &repeated, &write);
    const Result<SlotOutcome> outcome = co_await Attempt(operation, write, &progress);
    if (outcome.ok() || !IsCutShort(outcome.status(), /*owes_end=*/true) || progress.overtaken) {
      co_return;
    }
    StayUntilSettled(write, operation.in_flight);
  }
}

// A commit's CAS that failed and may still take effect must do so before a view makes a primary of
// the backup that it is on its way to: a quiesce of slots waits for it, but not for as long as
// others would wait for this worker. The node may have ended, and be back where only a view tells.
void Snapshot::StayUntilSettled(const SlotWrite& write, const Quiesce::InFlightGuard& in_slots) {
  if (write.step != SlotStep::kCommit || context_.fabric.settled()) return;
  if (Planted(Bug::kSlotsLeftUnsettled)) return;
  stay_until_ns_ = context_.executor.NowNs() + kStayNs;
  if (std::exchange(stays_, true)) return;
  context_.executor.Spawn(gate_, AwaitSettled(in_slots));
}

Task<void> Snapshot::AwaitSettled(Quiesce::InFlightGuard /*in_slots*/) {
  while (!stopping_ && !context_.fabric.settled() && context_.executor.NowNs() < stay_until_ns_) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_max_us} * 1000);
  }
  stays_ = false;
}

Task<Status> Snapshot::Stop(uint64_t until_ns) {
  while (gate_.inside() > 0 && context_.executor.NowNs() < until_ns) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
  }
  const bool done = gate_.inside() == 0;
  stopping_ = true;
  co_await gate_.Close();
  co_return done ? Status::Ok()
                 : Status(StatusCode::kUnavailable, "the round of a slot has no end yet");
}

// FUSEE Algorithm 1, WRITE from line 7 on: the caller has read v_old. REQUIRES: v_new is unique
// among all writers.
Task<Result<SlotOutcome>> Snapshot::Attempt(Operation& operation, const SlotWrite& write,
                                            Progress* progress) {
  // The master counts on it: a write now would vote with replicas that others count no more.
  CHECK(!context_.quiesce.slots_are_still());
  const Places places = PlacesOf(write);
  if (progress->again) {
    // A claim that is there may lack part of what it names.
    RoundTripPtr look;
    if (write.step == SlotStep::kClaim) look = FirstRoundTrip(context_, write);
    const Result<uint64_t> now = co_await ReadPrimary(operation, places, std::move(look));
    if (!now.ok()) co_return now.status();
    const CutShortNext next =
        NextOfCutShort(write.step, *now, write.v_old, write.v_new, progress->touched);
    if (next == CutShortNext::kWon && write.step == SlotStep::kCommit) {
      // A backup may have become the primary that had its word, and the others not.
      Votes ignored;
      const Status status = co_await CasBackups(operation, write, places, progress, &ignored);
      if (!status.ok()) co_return status;
    }
    if (next == CutShortNext::kWon) co_return SlotOutcome{true, write.v_new};
    if (next != CutShortNext::kGoOn) {
      co_return co_await EndOvertaken(operation, write, places, next, *now, progress);
    }
  }
  if (IsOfPrimaryAlone(write.step)) {
    progress->touched = true;
    RoundTripPtr round_trip =
        progress->again ? context_.fabric.NewRoundTrip() : FirstRoundTrip(context_, write);
    co_return co_await CasPrimary(operation, write, places, std::move(round_trip));
  }
  Votes votes;
  if (progress->votes.has_value() && !progress->again) {
    votes = *progress->votes;
  } else {
    const Status status = co_await CasBackups(operation, write, places, progress, &votes);
    if (!status.ok()) co_return status;
  }
  co_return co_await EndRound(operation, write, places, votes, progress);
}

// Algorithm 1, from line 10 on.
Task<Result<SlotOutcome>> Snapshot::EndRound(Operation& operation, const SlotWrite& write,
                                             const Places& places, const Votes& votes,
                                             Progress* progress) {
  const Verdict verdict = EvaluateRules(votes.words(), write.v_new);
  RoundNext next = NextOfRound(verdict, write.shared);
  if (write.step == SlotStep::kCommit && next != RoundNext::kCommit) {
    // Left by a claim before this one, whose owner takes it back, or else a resolution.
    co_return Status(StatusCode::kUnavailable, "a backup of a claimed slot is not free");
  }
  if (next == RoundNext::kAskPrimary) {
    const Result<uint64_t> v_check = co_await ReadPrimary(operation, places);
    if (!v_check.ok()) co_return v_check.status();
    if (v_check.value() != write.v_old) co_return SlotOutcome{false, v_check.value()};
    next = NextOfUnchanged(verdict, votes.words(), write.v_new);
  }
  if (next == RoundNext::kAwaitChange) {
    co_return co_await AwaitChange(operation, write, places, *progress);
  }
  if (next == RoundNext::kFixBackups) {
    const Status status = co_await FixBackups(operation, write, places, votes);
    if (!status.ok()) co_return status;
  }
  progress->touched = true;
  if (AnswersAhead(write, places, *progress)) {
    ending_.insert(write.v_new);
    if (context_.executor.Spawn(gate_, EndCommit(write, places, *progress, operation.pin.Share(),
                                                 operation.in_flight))) {
      co_return SlotOutcome{true, write.v_new};
    }
    ending_.erase(write.v_new);
  }
  co_return co_await CasPrimary(operation, write, places, context_.fabric.NewRoundTrip());
}

bool Snapshot::AnswersAhead(const SlotWrite& write, const Places& places,
                            const Progress& progress) const {
  const bool may_be = AnswersAheadOfPrimary(places.count) ||
                      (places.count > 1 && Planted(Bug::kAnswersByOneBackup));
  return write.step == SlotStep::kCommit && may_be && !progress.is_left &&
         !context_.fabric.completes_inline();
}

// The CAS is on its way before the client has its answer, and what this worker sends next to the
// primary comes behind it.
Task<void> Snapshot::EndCommit(SlotWrite write, Places places, Progress progress, EpochPin pin,
                               Quiesce::InFlightGuard in_slots) {
  write.first = nullptr;
  write.behind = nullptr;
  Operation operation;
  operation.in_flight = std::move(in_slots);
  const Result<SlotOutcome> outcome =
      co_await CasPrimary(operation, write, places, context_.fabric.NewRoundTrip());
  if (IsCutShort(outcome.status(), /*owes_end=*/true)) {
    StayUntilSettled(write, operation.in_flight);
    operation.in_flight.LeaveSlots();
    co_await FinishRound(write, RoundTripPtr(), progress, std::move(pin),
                         std::move(operation.in_flight));
  }
  ending_.erase(write.v_new);
}

// The CAS of the commit may have been lost with a node that is back.
Task<Status> Snapshot::TurnClaim(Operation& operation, const SlotWrite& write) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  round_trip->Cas(context_.view().Locate(write.slot, 0), ClaimOf(write.v_old), write.v_old);
  co_return co_await Post(context_, operation, round_trip);
}

Snapshot::Places Snapshot::PlacesOf(const SlotWrite& write) const {
  const View& view = context_.view();
  Places places;
  places.count = IsOfPrimaryAlone(write.step) ? 1 : view.LiveReplicas(write.slot);
  for (int i = 0; i < places.count; ++i) places.at[i] = view.Locate(write.slot, i);
  return places;
}

// Line 7-9: every v_old that was found counts as v_new, for there the CAS succeeded. All backups
// must answer: the rules are about all of them, not about a quorum.
Task<Status> Snapshot::CasBackups(Operation& operation, const SlotWrite& write,
                                  const Places& places, Progress* progress, Votes* votes) {
  const RoundTripPtr round_trip = FirstRoundTrip(context_, write);
  AddVotes(*round_trip, write, places);
  if (round_trip->empty()) co_return Status::Ok();
  const Status status = co_await Post(context_, operation, round_trip);
  co_return TakeVotes(*round_trip, status, write, places, progress, votes);
}

// FUSEE 4.5 commits the old value once the round is decided, in a round trip of its own. Here it
// goes ahead of the vote: it says what the record replaces if the slot names it, and is on all
// replicas of the record before the primary changes.
void Snapshot::AddVotes(RoundTrip& round_trip, const SlotWrite& write, const Places& places) const {
  if (!write.log.is_null()) {
    const View& view = context_.view();
    const int live = view.LiveReplicas(write.log);
    const uint64_t word = write.v_old | kLogCommitted;
    std::byte* const from = round_trip.Reserve(sizeof(word));
    std::memcpy(from, &word, sizeof(word));
    for (int replica = 0; replica < live; ++replica) {
      round_trip.Write(view.Locate(write.log, replica), from, sizeof(word));
    }
  }
  for (int backup = 1; backup < places.count; ++backup) {
    round_trip.Cas(places.at[backup], write.v_old, write.v_new);
  }
}

Status Snapshot::TakeVotes(const RoundTrip& round_trip, Status status, const SlotWrite& write,
                           const Places& places, Progress* progress, Votes* votes) {
  const size_t first_cas = round_trip.size() - static_cast<size_t>(places.count - 1);
  for (size_t i = first_cas; i < round_trip.size(); ++i) {
    const FabricOp& op = round_trip.op(i);
    progress->touched |= !op.ok || op.result == write.v_old;
  }
  if (!status.ok()) return status;
  for (size_t i = first_cas; i < round_trip.size(); ++i) {
    if (i > first_cas && Planted(Bug::kRulesOfOneBackup)) break;
    const uint64_t found = round_trip.op(i).result;
    votes->word[votes->count++] = found == write.v_old ? write.v_new : found;
  }
  return status;
}

// Line 14: the winner turns the backups that others took. No other writer changes a backup any more
// in this round, so every CAS finds the word that was voted.
Task<Status> Snapshot::FixBackups(Operation& operation, const SlotWrite& write,
                                  const Places& places, const Votes& votes) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  for (size_t i = 0; i < votes.count; ++i) {
    if (votes.word[i] == write.v_new || Planted(Bug::kWinnerLeavesBackups)) continue;
    round_trip->Cas(places.at[i + 1], votes.word[i], write.v_new);
  }
  if (round_trip->empty()) co_return Status::Ok();
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < round_trip->size(); ++i) {
    // Another worker that proposes the same word may have been faster, and the slot gone on.
    if (round_trip->op(i).result != round_trip->op(i).expected && !write.shared) {
      co_return Status(StatusCode::kCorrupt, "a backup slot changed under the round's winner");
    }
  }
  co_return Status::Ok();
}

// Lines 12 and 15.
Task<Result<SlotOutcome>> Snapshot::CasPrimary(Operation& operation, const SlotWrite& write,
                                               const Places& places, RoundTripPtr round_trip) {
  const size_t cas = AddCasOfPrimary(*round_trip, write, places);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  co_return TakeCasOfPrimary(round_trip, cas, write, places);
}

size_t Snapshot::AddCasOfPrimary(RoundTrip& round_trip, const SlotWrite& write,
                                 const Places& places) {
  if (write.behind != nullptr && Planted(Bug::kReadsAheadOfCas)) write.behind->AddTo(round_trip);
  const size_t cas = round_trip.Cas(
      places.at[0], ExpectedOfPrimary(write.step, write.v_old, write.v_new), write.v_new);
  if (write.behind != nullptr && !Planted(Bug::kReadsAheadOfCas)) write.behind->AddTo(round_trip);
  return cas;
}

Result<SlotOutcome> Snapshot::TakeCasOfPrimary(const RoundTripPtr& round_trip, size_t cas,
                                               const SlotWrite& write, const Places& places) {
  const Result<SlotOutcome> outcome = OutcomeOf(round_trip->op(cas).result, write, places);
  if (write.behind != nullptr && outcome.ok() && outcome->won) write.behind->done = round_trip;
  return outcome;
}

Result<SlotOutcome> Snapshot::OutcomeOf(uint64_t found, const SlotWrite& write,
                                        const Places& places) {
  const uint64_t expected = ExpectedOfPrimary(write.step, write.v_old, write.v_new);
  // Whoever met the decided claim may have turned it, and others have gone on.
  const bool may_be_turned = write.step == SlotStep::kCommit && places.count > 1;
  if (may_be_turned && found != write.v_old) return SlotOutcome{true, write.v_new};
  switch (JudgePrimary(found, expected, places.count > 1, write.shared)) {
    case PrimaryVerdict::kWon:
      return SlotOutcome{true, write.v_new};
    case PrimaryVerdict::kLost:
      return SlotOutcome{false, found};
    case PrimaryVerdict::kCorrupt:
      break;
  }
  return Status(StatusCode::kCorrupt, "a primary slot changed under the round's winner");
}

Task<Result<uint64_t>> Snapshot::ReadPrimary(Operation& operation, const Places& places,
                                             RoundTripPtr round_trip) {
  if (!round_trip) round_trip = context_.fabric.NewRoundTrip();
  const uint64_t* word = round_trip->ReadWord(places.at[0]);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  co_return *word;
}

// Lines 17-21, with a bound: the winner may have died.
Task<Result<SlotOutcome>> Snapshot::AwaitChange(Operation& operation, const SlotWrite& write,
                                                const Places& places, const Progress& progress) {
  // The winner sees to the round, and to its end.
  if (progress.is_left) co_return SlotOutcome{false, 0};
  Backoff backoff(context_, operation);
  while (true) {
    const Result<uint64_t> v_check = co_await ReadPrimary(operation, places);
    if (!v_check.ok()) co_return v_check.status();
    if (v_check.value() != write.v_old || Planted(Bug::kLoserDoesNotWait)) {
      co_return SlotOutcome{false, v_check.value()};
    }
    if (!co_await backoff.Wait()) {
      co_return Status(StatusCode::kUnknownOutcome, "the winner of a conflicting write is silent");
    }
  }
}

}  // namespace onetrip
