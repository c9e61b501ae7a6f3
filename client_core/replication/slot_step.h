// SlotStep: how a write changes a slot. An insert does not vote: it claims an empty slot at the
// primary, and then is the only one that may change it (PROTOCOLS, "Inserting by a claim").
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_SLOT_STEP_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_SLOT_STEP_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "client_core/layout/slot.h"

namespace onetrip {

enum class SlotStep : uint8_t {
  kRound,  // a round of SNAPSHOT: all replicas from v_old to v_new
  kClaim,  // the primary alone: from the EMPTY word v_old to the claim v_new
  // The backups from v_old, then the primary from the claim, to v_new. Where
  // AnswersAheadOfPrimary() the write returns between the two: the CAS of the primary is on its
  // way, and will be finished.
  kCommit,
  kWithdraw,  // the primary alone: from the claim v_old back to v_new, the word it was claimed from
};

// A claim is the TENTATIVE word of the object that its commit will name.
constexpr uint64_t ClaimOf(uint64_t committed) {
  return SlotWord(committed).WithKind(SlotKind::kTentative).bits();
}

// An insert is answered while the primary still holds the claim if two live backups or more hold
// its commit, all of them: one is left when a node is lost.
constexpr bool AnswersAheadOfPrimary(int live_replicas) { return live_replicas > 2; }

// Returns true if the live backups of the slot that `claim` is in hold these words, and its commit
// is decided: the word of each of them. It may have been answered when there were more backups.
constexpr bool IsDecided(SlotWord claim, std::span<const uint64_t> backups) {
  return !backups.empty() && std::all_of(backups.begin(), backups.end(), [&](uint64_t bits) {
    return SlotWord(bits).kind() == SlotKind::kObject && ClaimOf(bits) == claim.bits();
  });
}

constexpr bool IsOfPrimaryAlone(SlotStep step) {
  return step == SlotStep::kClaim || step == SlotStep::kWithdraw;
}

// The word that the last CAS of the write expects in the primary.
constexpr uint64_t ExpectedOfPrimary(SlotStep step, uint64_t v_old, uint64_t v_new) {
  return step == SlotStep::kCommit ? ClaimOf(v_new) : v_old;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_SLOT_STEP_H_
