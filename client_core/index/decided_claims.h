// DecidedClaims: inserts that have their answers while the primary still holds the claim.
// PROTOCOLS, "Inserting by a claim". Private to index/ and to walks over keys; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_INDEX_DECIDED_CLAIMS_H_
#define ONETRIP_CLIENT_CORE_INDEX_DECIDED_CLAIMS_H_

#include <span>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/index/claim_rules.h"
#include "client_core/index/directory.h"
#include "client_core/layout/index_layout.h"
#include "client_core/memory/operation.h"
#include "client_core/replication/engine.h"

namespace onetrip {

// A slot and the word that was read from its primary.
struct Entry {
  GlobalAddr slot;
  SlotWord word;
};

using GroupWords = std::array<uint64_t, kGroupWords>;

class DecidedClaims {
 public:
  // Both outlive it.
  DecidedClaims(WorkerContext& context, const Engine& engine)
      : context_(context), engine_(engine) {}

  // False if no claim of the subtable is decided before it is in the primary: there is no backup.
  [[nodiscard]] bool MayBe(const Subtable& table) const {
    return engine_.Replicas(context_.view(), table.start) > 1;
  }
  // Reads the words of the live backups of the claim's slot: kDecided, and `committed` is theirs,
  // or kUndecided.
  Task<Result<ClaimSeen>> AskBackups(Operation& operation, Entry claim, SlotWord* committed);
  // kChanged if one of the claims, which were undecided, is not in its primary any more.
  Task<Result<ClaimSeen>> LookAgain(Operation& operation, std::span<const Entry> claims);
  // The primary of a decided claim gets its commit, at which writers begin. kChanged: others have
  // gone on from there.
  Task<Result<ClaimSeen>> Turn(Operation& operation, Entry claim, SlotWord committed);
  // Replaces the claims among the words of a group, which were read from there, by what a walk over
  // keys is to take them for: those that are decided by their commits.
  Task<Status> Settle(Operation& operation, Subtable table, uint32_t group, GroupWords* words);

  // PROTOCOLS, "A read of slots has witnesses". Goes with every READ of slots from their primary.
  void AddWitnesses(GlobalAddr slot, RoundTrip& round_trip) const;

 private:
  WorkerContext& context_;
  const Engine& engine_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_DECIDED_CLAIMS_H_
