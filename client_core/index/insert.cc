// Inserting, by one rule for every creating command: PROTOCOLS, "Searching and inserting".
//
//   (1) search both combined buckets; a committed entry: use it            (the caller's Find)
//   (2) an empty slot becomes TENTATIVE(object)
//   (3) only then search both again: a committed entry, or a foreign tentative one that cannot be
//       killed, sends us back to (1)
//   (4) TENTATIVE becomes COMMITTED; failure: killed, back off at random, back to (1)
//
// Two inserters of one key each see the other's tentative entry in (3), whatever buckets they
// chose, because each searches after its own entry is visible.
#include "client_core/base/planted_bug.h"
#include "client_core/index/index.h"

namespace onetrip {

Task<Result<InsertOutcome>> Index::Insert(Operation& operation, const IndexKey& key,
                                          const SearchResult& search, SlotWord committed,
                                          Entry* entry) {
  CHECK(!search.found && !search.busy);
  if (!search.has_empty) co_return InsertOutcome::kFull;
  const SlotWord tentative = committed.WithKind(SlotKind::kTentative);
  const GlobalAddr slot = search.empty.slot;

  // (2) Losing an empty slot says nothing about our key: search again.
  const Result<SlotOutcome> placed = co_await engine_.Write(
      operation, {slot, search.empty.word.bits(), tentative.bits(), GlobalAddr()});
  if (!placed.ok()) co_return placed.status();
  if (!placed.value().won) co_return InsertOutcome::kSearchAgain;

  // (3)
  Result<InsertOutcome> resolved = InsertOutcome::kInserted;
  if (!Planted(Bug::kNoSecondSearch)) {
    resolved = co_await ResolveDuplicates(operation, key, search.table, {slot, tentative});
  }
  // From here on a slot names the object: whatever failed, its memory may not be used again.
  if (!resolved.ok()) co_return AfterSend(resolved.status());
  if (resolved.value() != InsertOutcome::kInserted) co_return resolved;

  // (4)
  const Result<SlotOutcome> commit = co_await engine_.Write(
      operation, {slot, tentative.bits(), committed.bits(), committed.addr()});
  if (!commit.ok()) co_return AfterSend(commit.status());
  if (commit.value().won || Planted(Bug::kKilledInsertCommits)) {
    *entry = {slot, committed};
    CacheLocation(key.hash, *entry);
    co_return InsertOutcome::kInserted;
  }
  // Killed by an inserter of the same key: let one of us be first next time.
  const uint64_t most_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  co_await context_.executor.SleepFor(context_.executor.rng().Below(most_ns));
  co_return InsertOutcome::kRenew;
}

// Step (3). kInserted: nothing stands in the way of the commit. Else our entry is withdrawn.
Task<Result<InsertOutcome>> Index::ResolveDuplicates(Operation& operation, const IndexKey& key,
                                                     const Subtable& table, Entry own) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  Buckets buckets{};
  AddBucketReads(*round_trip, table, key.hash, &buckets);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;

  uint32_t depth = 0;
  bool withdraw = StandingOf(buckets, table, key.hash, &depth) != Standing::kHere;
  const Candidates others = Matching(buckets, table, key.hash, [](SlotKind kind) {
    return kind == SlotKind::kTentative || kind == SlotKind::kObject || kind == SlotKind::kFrozen;
  });
  for (size_t i = 0; i < others.count && !withdraw; ++i) {
    const Entry other = others.entries[i];
    if (other.slot == own.slot) continue;
    Candidates one;
    one.entries[one.count++] = other;
    SearchResult same_key;
    const Status matched = co_await MatchKey(operation, key, ReadExtent::kKey, one, &same_key);
    if (!matched.ok()) co_return matched;
    if (!same_key.found) continue;
    if (other.word.kind() != SlotKind::kTentative) {
      withdraw = true;
      continue;
    }
    const Result<SlotOutcome> kill = co_await engine_.Write(
        operation, {other.slot, other.word.bits(), NewEmptyWord().bits(), GlobalAddr()});
    if (!kill.ok()) co_return kill.status();
    // It may have committed, and even have been moved to another subtable, which leaves its slot
    // empty: a kill that is not ours proves nothing.
    withdraw = !kill.value().won && !Planted(Bug::kFailedKillIsSuccess);
  }
  if (!withdraw) co_return InsertOutcome::kInserted;
  const Status withdrawn = co_await Withdraw(operation, own);
  if (!withdrawn.ok()) co_return withdrawn;
  co_return InsertOutcome::kRenew;
}

// Takes our tentative entry out again; a worker that killed it meanwhile has done it for us.
Task<Status> Index::Withdraw(Operation& operation, Entry own) {
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, {own.slot, own.word.bits(), NewEmptyWord().bits(), GlobalAddr()});
  co_return outcome.ok() ? Status::Ok() : outcome.status();
}

}  // namespace onetrip
