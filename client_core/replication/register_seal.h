// RegisterSeal: how a register ends: sealed at a majority, then whatever its slot decides, then
// the record of that in its final word (PROTOCOLS, "One key, two forms").
//
// A seal is CAS'd once per replica and life. Steps of readers and writers count only on replicas
// that were open after them; so once a majority is sealed, nothing counts any more, and F, the
// largest lane of such a majority, is at least as large as all that ever counted.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_REGISTER_SEAL_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_REGISTER_SEAL_H_

#include <cstdint>
#include <optional>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/replication/max_register.h"

namespace onetrip {

// The answers of a majority or more of the replicas, all of them sealed.
struct SealOutcome {
  bool all_mine = false;            // all r hold the seal that was asked for
  std::optional<WorkerId> deleter;  // one of those that have DELETED it, if any
  bool one_deleter = false;         // all that answered are DELETED by that one
  Tuple f;                          // the largest lane; its value if it was asked for
};

class RegisterSeal {
 public:
  // Outlives this, and runs its stragglers.
  explicit RegisterSeal(MaxRegister& max_register) : max_register_(max_register) {}

  // Seals all replicas, those that are still open with `seal`, and reads the lanes behind it.
  // Waits for all of them as long as round trips take, then for a majority.
  // kUnavailable: too few replicas answered; some may be sealed. kNotFound, only `with_value`: F's
  // value is on no replica that answers, so F was at no majority: ask again.
  Task<Result<SealOutcome>> Seal(RegisterOperation& operation, const RegisterHandle& handle,
                                 SealWord seal, bool with_value);

  // Returns the final word that is recorded at a majority. REQUIRES: the operation has been pinned
  // since before the register left its slot.
  Task<Result<FinalWord>> ReadFinal(RegisterOperation& operation, const RegisterHandle& handle);

  // Adds the WRITEs of the final word of the register at `addr` to all replicas.
  static void AddFinal(WorkerContext& context, RoundTrip& round_trip, GlobalAddr addr,
                       uint64_t final_bits);

 private:
  MaxRegister& max_register_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_REGISTER_SEAL_H_
