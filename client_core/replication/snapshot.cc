#include "client_core/replication/snapshot.h"

#include "client_core/base/planted_bug.h"
#include "client_core/layout/record.h"
#include "client_core/replication/snapshot_rules.h"

namespace onetrip {

// FUSEE Algorithm 1, WRITE from line 7 on: the caller has read v_old. REQUIRES: v_new is unique
// among all writers.
Task<Result<SlotOutcome>> Snapshot::Write(Operation& operation, SlotWrite write) {
  CHECK(write.v_old != write.v_new);
  Votes votes;
  Status status = co_await CasBackups(operation, write, &votes);
  if (!status.ok()) co_return status;
  switch (EvaluateRules(votes.words(), write.v_new)) {
    case Verdict::kWinAll:
      break;
    case Verdict::kAskMinimum: {
      const Result<uint64_t> v_check = co_await ReadPrimary(operation, write.slot);
      if (!v_check.ok()) co_return AfterSend(v_check.status());
      if (v_check.value() != write.v_old) co_return SlotOutcome{false, v_check.value()};
      if (!WinsByMinimum(votes.words(), write.v_new)) {
        co_return co_await AwaitChange(operation, write);
      }
      [[fallthrough]];
    }
    case Verdict::kWinMajority:
      status = co_await FixBackups(operation, write, votes);
      if (!status.ok()) co_return AfterSend(status);
      break;
    case Verdict::kLose:
      co_return co_await AwaitChange(operation, write);
  }
  status = co_await CommitLog(operation, write);
  if (!status.ok()) co_return AfterSend(status);
  co_return co_await CasPrimary(operation, write);
}

// Line 7-9: every v_old that was found counts as v_new, for there the CAS succeeded. All backups
// must answer: the rules are about all of them, not about a quorum.
Task<Status> Snapshot::CasBackups(Operation& operation, const SlotWrite& write, Votes* votes) {
  const RoundTripPtr round_trip = FirstRoundTrip(context_, write);
  const size_t first_cas = round_trip->size();
  const View& view = context_.view();
  for (int backup = 1; backup < replicas_; ++backup) {
    round_trip->Cas(view.Locate(write.slot, backup), write.v_old, write.v_new);
  }
  if (round_trip->empty()) co_return Status::Ok();
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (size_t i = first_cas; i < round_trip->size(); ++i) {
    if (i > first_cas && Planted(Bug::kRulesOfOneBackup)) break;
    const uint64_t found = round_trip->op(i).result;
    votes->word[votes->count++] = found == write.v_old ? write.v_new : found;
  }
  co_return Status::Ok();
}

// Line 14: the winner turns the backups that others took. Nobody else changes a backup any more in
// this round, so every CAS finds the word that was voted.
Task<Status> Snapshot::FixBackups(Operation& operation, const SlotWrite& write,
                                  const Votes& votes) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const View& view = context_.view();
  for (size_t i = 0; i < votes.count; ++i) {
    if (votes.word[i] == write.v_new || Planted(Bug::kWinnerLeavesBackups)) continue;
    round_trip->Cas(view.Locate(write.slot, static_cast<int>(i) + 1), votes.word[i], write.v_new);
  }
  if (round_trip->empty()) co_return Status::Ok();
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < round_trip->size(); ++i) {
    // Whoever proposes the same word may have been faster, and the slot gone on.
    if (round_trip->op(i).result != round_trip->op(i).expected && !write.shared) {
      co_return Status(StatusCode::kCorrupt, "a backup slot changed under the round's winner");
    }
  }
  co_return Status::Ok();
}

// FUSEE 4.5: the last writer records the old value before the primary changes, on every replica of
// its record, so that a recovery can tell a decided write from an undecided one.
Task<Status> Snapshot::CommitLog(Operation& operation, const SlotWrite& write) {
  if (write.log.is_null()) co_return Status::Ok();
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const View& view = context_.view();
  for (int replica = 0; replica < replicas_; ++replica) {
    round_trip->WriteWord(view.Locate(write.log, replica), write.v_old | kLogCommitted);
  }
  co_return co_await Post(context_, operation, round_trip);
}

// Lines 12 and 15. There is one winner a round, so the primary still holds v_old. Without backups
// nobody votes, all writers come here, and this CAS is the decision.
Task<Result<SlotOutcome>> Snapshot::CasPrimary(Operation& operation, const SlotWrite& write) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  round_trip->Cas(context_.view().Locate(write.slot, 0), write.v_old, write.v_new);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  const uint64_t found = round_trip->op(0).result;
  if (found != write.v_old) {
    if (replicas_ == 1 || write.shared) co_return SlotOutcome{false, found};
    co_return Status(StatusCode::kCorrupt, "a primary slot changed under the round's winner");
  }
  co_return SlotOutcome{true, write.v_new};
}

Task<Result<uint64_t>> Snapshot::ReadPrimary(Operation& operation, GlobalAddr slot) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const uint64_t* word = round_trip->ReadWord(context_.view().Locate(slot, 0));
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  co_return *word;
}

// Lines 17-21, with a bound: the winner may have died.
Task<Result<SlotOutcome>> Snapshot::AwaitChange(Operation& operation, const SlotWrite& write) {
  Backoff backoff(context_, operation);
  while (true) {
    const Result<uint64_t> v_check = co_await ReadPrimary(operation, write.slot);
    if (!v_check.ok()) co_return AfterSend(v_check.status());
    if (v_check.value() != write.v_old || Planted(Bug::kLoserDoesNotWait)) {
      co_return SlotOutcome{false, v_check.value()};
    }
    if (!co_await backoff.Wait()) {
      co_return Status(StatusCode::kUnknownOutcome, "the winner of a conflicting write is silent");
    }
  }
}

}  // namespace onetrip
