// Inserting, by one rule for every creating command: PROTOCOLS, "Inserting by a claim".
//
//   (1) search both combined buckets; a committed entry: use it            (the caller's Find)
//   (2) an empty slot becomes TENTATIVE(object) at the primary: a claim; behind it, in the same
//       batch, search both buckets again
//   (3) a committed entry, or a claim of the key that comes before ours: take ours out, to (1);
//       a claim that comes behind ours: wait until it is gone
//   (4) the backups become COMMITTED, which answers, then the primary
//
// Two inserters of one key each see the other's claim in (3), whatever buckets they chose, unless
// it is over by then, because each searches after its own claim is visible.
#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/index/claim_rules.h"
#include "client_core/index/index.h"

namespace onetrip {
namespace {

constexpr Status kRivalRemains(StatusCode::kUnavailable,
                               "another insert of the key has come to no end");

// Returns false, at once or in the end, when the operation may not wait for that any longer.
Task<Result<bool>> AwaitEndOfClaim(WorkerContext& context, Operation& operation, Entry claim) {
  Backoff backoff(context, operation);
  while (co_await backoff.Wait()) {
    RoundTripPtr round_trip = context.fabric.NewRoundTrip();
    const uint64_t* word = round_trip->ReadWord(context.view().Locate(claim.slot, 0));
    const Status status = co_await Post(context, operation, round_trip);
    if (!status.ok()) co_return status;
    if (*word != claim.word.bits()) co_return true;
  }
  co_return false;
}

}  // namespace

Task<Result<InsertOutcome>> Index::Insert(Operation& operation, const IndexKey& key,
                                          const SearchResult& search, SlotWord committed,
                                          RoundTripPtr writes, Entry* entry) {
  CHECK(!search.found && !search.busy);
  if (!search.has_empty) co_return InsertOutcome::kFull;
  const Entry empty = search.empty;
  const Entry own{empty.slot, SlotWord(ClaimOf(committed.bits()))};
  SearchBehind again(*this, search.table, key.hash);

  // Whoever meets a claim reads the key of its object, on the node of the slot: it is written there
  // before. Of a root a walk reads more.
  const NodeId node = context_.view().Locate(own.slot, 0).node;
  const bool is_beside = RecordReplica(context_.view(), committed.addr(), node).node == node &&
                         !committed.size_class().is_root();
  if (writes && !is_beside) {
    const Status status = co_await Post(context_, operation, writes);
    if (!status.ok()) co_return status;
    writes = RoundTripPtr();
  }
  // (2) Losing an empty slot says nothing about our key: search again.
  const Result<SlotOutcome> claimed = co_await engine_.Write(operation, {.slot = own.slot,
                                                                         .v_old = empty.word.bits(),
                                                                         .v_new = own.word.bits(),
                                                                         .log = GlobalAddr(),
                                                                         .first = writes.get(),
                                                                         .behind = &again,
                                                                         .step = SlotStep::kClaim});
  if (!claimed.ok()) co_return claimed.status();
  if (!claimed.value().won) {
    co_return claimed.value().spent ? InsertOutcome::kRenew : InsertOutcome::kSearchAgain;
  }

  // (3) From here on a slot has named the object: whatever fails, its memory may not be used again.
  const Result<ClaimVerdict> verdict = co_await VerifyClaim(operation, key, search, &again, own);
  if (!verdict.ok() || verdict->next != ClaimNext::kCommit) {
    const Result<SlotOutcome> withdrawn =
        co_await engine_.Write(operation, {.slot = own.slot,
                                           .v_old = own.word.bits(),
                                           .v_new = empty.word.bits(),
                                           .log = GlobalAddr(),
                                           .step = SlotStep::kWithdraw});
    if (!withdrawn.ok()) co_return AfterSend(withdrawn.status());
    const bool is_cut_short =
        MayHaveLostNode(verdict.status()) || verdict.status().code() == StatusCode::kFenced;
    if (!verdict.ok() && !is_cut_short) co_return verdict.status();
    if (verdict.ok() && verdict->next == ClaimNext::kGiveWay) {
      // Another claim now would give way again.
      const Result<bool> is_over = co_await AwaitEndOfClaim(context_, operation, verdict->other);
      if (is_over.ok() && !*is_over) co_return kRivalRemains;
    }
    co_return InsertOutcome::kRenew;
  }

  // (4)
  const Result<SlotOutcome> commit = co_await engine_.Write(operation, {.slot = own.slot,
                                                                        .v_old = empty.word.bits(),
                                                                        .v_new = committed.bits(),
                                                                        .log = committed.addr(),
                                                                        .step = SlotStep::kCommit});
  if (!commit.ok()) co_return AfterSend(commit.status());
  // A resolution of slots has taken our claim back, amid a loss of ours.
  if (!commit.value().won) co_return InsertOutcome::kRenew;
  *entry = {own.slot, committed};
  CacheLocation(key.hash, *entry);
  co_return InsertOutcome::kInserted;
}

// Step (3): kCommit, kGiveWay or kWithdraw.
Task<Result<Index::ClaimVerdict>> Index::VerifyClaim(Operation& operation, const IndexKey& key,
                                                     const SearchResult& before,
                                                     SearchBehind* search, Entry own) {
  if (Planted(Bug::kNoSecondSearch)) co_return ClaimVerdict{ClaimNext::kCommit, {}};
  while (true) {
    if (!search->done) {
      RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
      search->AddTo(*round_trip);
      const Status status = co_await Post(context_, operation, round_trip);
      if (!status.ok()) co_return status;
      search->done = std::move(round_trip);
    }
    const Result<ClaimVerdict> verdict = co_await JudgeClaim(operation, key, before, *search, own);
    if (!verdict.ok() || verdict->next != ClaimNext::kWait) co_return verdict;
    if (Planted(Bug::kFirstClaimCommits)) co_return ClaimVerdict{ClaimNext::kCommit, {}};
    const Result<bool> is_over = co_await AwaitEndOfClaim(context_, operation, verdict->other);
    if (!is_over.ok()) co_return is_over.status();
    if (!*is_over) co_return ClaimVerdict{ClaimNext::kGiveWay, verdict->other};
    search->done = RoundTripPtr();
  }
}

// By what was read behind it.
Task<Result<Index::ClaimVerdict>> Index::JudgeClaim(Operation& operation, const IndexKey& key,
                                                    const SearchResult& before,
                                                    const SearchBehind& search, Entry own) {
  uint32_t depth = 0;
  const Standing standing = StandingOf(search.buckets, search.table, key.hash, &depth);
  if (standing != Standing::kHere) co_return ClaimVerdict{ClaimNext::kWithdraw, {}};
  const Candidates others = Matching(search.buckets, search.table, key.hash, [](SlotKind kind) {
    return (kind == SlotKind::kTentative && !Planted(Bug::kClaimsIgnored)) ||
           kind == SlotKind::kObject || kind == SlotKind::kFrozen;
  });
  ClaimVerdict verdict;
  for (size_t i = 0; i < others.count; ++i) {
    const Entry other = others.entries[i];
    if (other.slot == own.slot || before.IsOther(other)) continue;
    Candidates one;
    one.entries[one.count++] = other;
    SearchResult same_key;
    const Status matched = co_await MatchKey(operation, key, ReadExtent::kKey, one, &same_key);
    if (!matched.ok()) co_return matched;
    if (!same_key.found) continue;
    const ClaimNext next = NextOfClaim(own.word, other.word);
    if (next > verdict.next) verdict = {next, other};
  }
  co_return verdict;
}

}  // namespace onetrip
