#include "client_core/index/decided_claims.h"

#include <algorithm>
#include <array>

#include "client_core/base/planted_bug.h"

namespace onetrip {

Task<Result<ClaimSeen>> DecidedClaims::AskBackups(Operation& operation, Entry claim,
                                                  SlotWord* committed) {
  const View& view = context_.view();
  const int live = engine_.Replicas(view, claim.slot);
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::array<const uint64_t*, kMaxReplicas> at{};
  for (int backup = 1; backup < live; ++backup) {
    at[backup] = round_trip->ReadWord(view.Locate(claim.slot, backup));
  }
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  std::array<uint64_t, kMaxReplicas> words{};
  for (int backup = 1; backup < live; ++backup) {
    words[backup] = *at[Planted(Bug::kOneBackupDecides) ? 1 : backup];
  }
  *committed = SlotWord(words[1]);
  const std::span<const uint64_t> backups(words.data() + 1, static_cast<size_t>(live - 1));
  co_return SeenOfClaim(claim.word, backups, claim.word.bits());
}

Task<Result<ClaimSeen>> DecidedClaims::LookAgain(Operation& operation,
                                                 std::span<const Entry> claims) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::array<const uint64_t*, 2 * kCombinedWords> now{};
  CHECK(claims.size() <= now.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    now[i] = round_trip->ReadWord(context_.view().Locate(claims[i].slot, 0));
  }
  AddWitnesses(claims.front().slot, *round_trip);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < claims.size(); ++i) {
    const ClaimSeen seen = SeenOfClaim(claims[i].word, {}, *now[i]);
    if (seen == ClaimSeen::kChanged) co_return seen;
  }
  co_return ClaimSeen::kUndecided;
}

Task<Result<ClaimSeen>> DecidedClaims::Turn(Operation& operation, Entry claim, SlotWord committed) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const size_t cas =
      round_trip->Cas(context_.view().Locate(claim.slot, 0), claim.word.bits(), committed.bits());
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  const uint64_t found = round_trip->op(cas).result;
  const bool is_there = found == claim.word.bits() || found == committed.bits();
  co_return is_there ? ClaimSeen::kDecided : ClaimSeen::kChanged;
}

Task<Status> DecidedClaims::Settle(Operation& operation, Subtable table, uint32_t group,
                                   GroupWords* words) {
  if (!MayBe(table) || Planted(Bug::kScanPassesClaims)) co_return Status::Ok();
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    const Entry claim{table.Word(group, i), SlotWord((*words)[i])};
    if (i == kGroupHeaderWord || claim.word.kind() != SlotKind::kTentative) continue;
    SlotWord committed;
    const Result<ClaimSeen> seen = co_await AskBackups(operation, claim, &committed);
    if (!seen.ok()) co_return seen.status();
    if (*seen == ClaimSeen::kDecided) {
      const Result<ClaimSeen> turned = co_await Turn(operation, claim, committed);
      if (!turned.ok()) co_return turned.status();
      (*words)[i] = committed.bits();
      continue;
    }
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const uint64_t* now = round_trip->ReadWord(context_.view().Locate(claim.slot, 0));
    AddWitnesses(claim.slot, *round_trip);
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    // Another claim is of a key that was not there when the walk came by.
    (*words)[i] = *now;
  }
  co_return Status::Ok();
}

// The
// batch fails unless a majority of the slot's nodes still lets this worker in. Where the fabric
// completes inline a fenced worker has ended; without nodes in the view none is ever put out.
void DecidedClaims::AddWitnesses(GlobalAddr slot, RoundTrip& round_trip) const {
  const View& view = context_.view();
  if (context_.fabric.completes_inline() || view.nodes.empty() || Planted(Bug::kNoWitnesses))
    return;
  const int live = engine_.Replicas(view, slot);
  int needed = std::min(view.replicas / 2 + 1, live) - 1;
  for (int replica = 1; replica < live && needed > 0; ++replica) {
    const RemoteAddr at = view.Locate(slot, replica);
    const bool any_will_do = live - replica > needed;
    if (any_will_do && !context_.fabric.Reaches(at.node)) continue;
    (void)round_trip.ReadWord(at);
    --needed;
  }
}

}  // namespace onetrip
