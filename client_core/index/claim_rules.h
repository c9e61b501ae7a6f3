// The rules of claims, as pure functions: PROTOCOLS, "Inserting by a claim".
#ifndef ONETRIP_CLIENT_CORE_INDEX_CLAIM_RULES_H_
#define ONETRIP_CLIENT_CORE_INDEX_CLAIM_RULES_H_

#include <cstdint>
#include <span>

#include "client_core/layout/slot.h"
#include "client_core/replication/slot_step.h"

namespace onetrip {

// The next step of a claim's owner that has seen the entries and claims of its key behind it. Of
// several that are called for, the last one of these is taken.
enum class ClaimNext : uint8_t {
  kCommit,
  kWait,      // and look again, with the claim in its place
  kGiveWay,   // withdraw, wait until the other claim is gone, and come back
  kWithdraw,  // and use the entry
};

// `other` names another object of the key. Two owners that see each other's claims must not both
// give way for ever, nor both commit: the one that comes first by its word waits for the other,
// which either sees it and gives way, or has looked before it was there, and commits.
constexpr ClaimNext NextOfClaim(SlotWord own, SlotWord other) {
  if (other.kind() != SlotKind::kTentative) return ClaimNext::kWithdraw;
  return own.bits() < other.bits() ? ClaimNext::kWait : ClaimNext::kGiveWay;
}

// A search that meets a claim of its key.
enum class ClaimSeen : uint8_t {
  kDecided,    // the key is there
  kUndecided,  // it is not, if no other entry or claim of it says so
  kChanged,    // the key's buckets have changed since they were read: read them again
};

// `backups`: the words of the slot's live backups, read behind the claim; `again`: the primary's,
// read behind them. Without the second look the claim may have been committed and overwritten
// between the two: the backups then hold another word, and the key was there all the time.
constexpr ClaimSeen SeenOfClaim(SlotWord claim, std::span<const uint64_t> backups, uint64_t again) {
  if (IsDecided(claim, backups)) return ClaimSeen::kDecided;
  return again == claim.bits() ? ClaimSeen::kUndecided : ClaimSeen::kChanged;
}

// A resolution finds `claim` in a primary and these words in the live backups. The word that all
// replicas get: the commit if it may be decided, and if no client can have seen it the EMPTY word
// that was claimed. `fresh`: an EMPTY word that no slot has held.
constexpr SlotWord ResolvedClaim(SlotWord claim, std::span<const uint64_t> backups,
                                 SlotWord fresh) {
  bool all_committed = !backups.empty();
  for (const uint64_t bits : backups) {
    const SlotWord word(bits);
    // Its owner, if it lives, then knows that it has lost.
    if (word.is_empty() && !word.is_dropped()) return word;
    all_committed =
        all_committed && word.kind() == SlotKind::kObject && ClaimOf(bits) == claim.bits();
  }
  return all_committed ? SlotWord(backups.front()) : fresh;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_CLAIM_RULES_H_
