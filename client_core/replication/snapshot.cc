#include "client_core/replication/snapshot.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/record.h"
#include "client_core/replication/snapshot_rules.h"

namespace onetrip {
namespace {

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
  const Places places = PlacesOf(write.slot);
  RoundTripPtr round_trip = FirstRoundTrip(context_, write);
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
  round_trip->Cas(places.at[0], write.v_old, write.v_new);
  if (!PostInline(context_, operation, round_trip).ok()) {
    progress->again = progress->touched = true;
    return std::nullopt;
  }
  return OutcomeOf(round_trip->op(0).result, write, places);
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
    const Result<SlotOutcome> outcome = co_await Attempt(operation, write, &progress);
    const StatusCode code = outcome.status().code();
    const bool cut_short = code == StatusCode::kUnknownOutcome || code == StatusCode::kUnavailable;
    if (outcome.ok()) {
      // A WRITE of the log that has failed may still arrive, behind one of another round.
      SlotOutcome decided = *outcome;
      decided.spent = !decided.won && progress.again;
      co_return decided;
    }
    if (!cut_short) co_return progress.touched ? AfterSend(outcome.status()) : outcome.status();
    bool goes_on = !progress.overtaken && retries < context_.options.node_loss_retries_max &&
                   !OutOfTime(context_, operation);
    if (goes_on) {
      operation.in_flight.LeaveSlots();
      co_await context_.executor.SleepFor(wait_ns);
      wait_ns =
          std::min<uint64_t>(2 * wait_ns, uint64_t{context_.options.wait_timer_max_us} * 1000);
      goes_on = co_await operation.in_flight.EnterSlots(operation.deadline_ns);
    }
    if (!goes_on && progress.touched) {
      const bool is_bounded = retries == context_.options.node_loss_retries_max;
      if (!progress.overtaken && !is_bounded && !Planted(Bug::kRoundLeft)) {
        context_.executor.Spawn(gate_, FinishRound(write, first, progress, operation.pin.Share(),
                                                   Planted(Bug::kLeftRoundUnseen)
                                                       ? Quiesce::InFlightGuard()
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
    const StatusCode code = outcome.status().code();
    const bool cut_short = code == StatusCode::kUnknownOutcome || code == StatusCode::kUnavailable;
    if (!cut_short || progress.overtaken) co_return;
  }
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
  const Places places = PlacesOf(write.slot);
  Votes votes;
  Status status;
  if (progress->again) {
    const Result<uint64_t> now = co_await ReadPrimary(operation, places);
    if (!now.ok()) co_return now.status();
    if (*now == write.v_new) co_return SlotOutcome{true, write.v_new};
    if (*now != write.v_old && progress->touched) {
      // Others have gone on: from v_old, or from v_new.
      const Result<Fate> fate = co_await AskLogs(operation, write, *now);
      if (!fate.ok()) co_return fate.status();
      if (*fate == Fate::kWon) co_return SlotOutcome{true, write.v_new};
      progress->overtaken = *fate == Fate::kUnknown;
      if (progress->overtaken) {
        co_return Status(StatusCode::kUnknownOutcome, "a node was lost amid a write");
      }
    }
    if (*now != write.v_old) co_return SlotOutcome{false, *now};
  }
  if (progress->votes.has_value() && !progress->again) {
    votes = *progress->votes;
  } else {
    status = co_await CasBackups(operation, write, places, progress, &votes);
    if (!status.ok()) co_return status;
  }
  const Verdict verdict = EvaluateRules(votes.words(), write.v_new);
  RoundNext next = NextOfRound(verdict, write.shared);
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
    status = co_await FixBackups(operation, write, places, votes);
    if (!status.ok()) co_return status;
  }
  progress->touched = true;
  co_return co_await CasPrimary(operation, write, places);
}

Snapshot::Places Snapshot::PlacesOf(GlobalAddr slot) const {
  const View& view = context_.view();
  Places places;
  places.count = view.LiveReplicas(slot);
  for (int i = 0; i < places.count; ++i) places.at[i] = view.Locate(slot, i);
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
                                               const Places& places) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  round_trip->Cas(places.at[0], write.v_old, write.v_new);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  co_return OutcomeOf(round_trip->op(0).result, write, places);
}

Result<SlotOutcome> Snapshot::OutcomeOf(uint64_t found, const SlotWrite& write,
                                        const Places& places) {
  switch (JudgePrimary(found, write.v_old, places.count > 1, write.shared)) {
    case PrimaryVerdict::kWon:
      return SlotOutcome{true, write.v_new};
    case PrimaryVerdict::kLost:
      return SlotOutcome{false, found};
    case PrimaryVerdict::kCorrupt:
      break;
  }
  return Status(StatusCode::kCorrupt, "a primary slot changed under the round's winner");
}

Task<Result<uint64_t>> Snapshot::ReadPrimary(Operation& operation, const Places& places) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const uint64_t* word = round_trip->ReadWord(places.at[0]);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  co_return *word;
}

// The operation's pin keeps what was unlinked since it began, and so each record from the primary's
// back to v_old: none has been written anew.
Task<Result<Fate>> Snapshot::AskLogs(Operation& operation, const SlotWrite& write, uint64_t now) {
  constexpr int kRecordsMax = 8;
  // A register that has left the slot may be forgotten already: its writer must not keep it.
  const bool is_of_records =
      !SlotWord(write.v_old).is_register() && !SlotWord(write.v_new).is_register();
  const bool can_ask = !write.log.is_null() && is_of_records && operation.pin.is_held();
  if (!can_ask) co_return Fate::kUnknown;
  if (Planted(Bug::kOvertakenIsLost)) co_return Fate::kLost;
  SlotWord word(now);
  for (int asked = 0; asked < kRecordsMax; ++asked) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const uint64_t* log = nullptr;
    if (NamesRecord(word)) log = round_trip->ReadWord(context_.view().Locate(word.addr(), 0));
    if (log != nullptr) {
      const Status status = co_await Post(context_, operation, round_trip);
      if (!status.ok()) co_return status;
    }
    const FateByLog judged = JudgeLog(word, log == nullptr ? 0 : *log, write.v_old, write.v_new);
    if (judged.fate.has_value()) co_return *judged.fate;
    word = judged.before;
  }
  co_return Fate::kUnknown;
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
