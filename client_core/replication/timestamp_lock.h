// TimestampLock: try_lock(w, READ or WRITE) of Safe-Guess (SWARM 3.3, appendix B).
//
// A guess may be returned by readers that lock it in mode READ, or redone by its writer, which
// locks it in mode WRITE; for one guess both never succeed. The r lock words lie in the write's own
// out-of-place buffer, outside the bytes of every bulk WRITE, and hold absolute time, so that the
// word of an earlier write that used the buffer reads as unlocked.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_TIMESTAMP_LOCK_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_TIMESTAMP_LOCK_H_

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/replication/max_register.h"

namespace onetrip {

class TimestampLock {
 public:
  // `max_register` outlives it and runs its stragglers.
  TimestampLock(MaxRegister& max_register, const RegisterOptions& options)
      : max_register_(max_register), options_(options) {}

  // True: no operation has got or will get the other mode for this guess. False: perhaps one has,
  // or a later write uses the buffer. Wait-free: as many round trips as the lock words of earlier
  // writes change meanwhile, mostly one or two. kUnavailable: too few replicas answered; the lock
  // may have been taken.
  Task<Result<bool>> TryLock(RegisterOperation& operation, const RegisterHandle& handle,
                             MetaWord guess, LockMode mode);

 private:
  Task<void> LockReplica(QuorumCall::Share share, RegisterRef ref, GlobalAddr buffer,
                         LockWord lock);

  MaxRegister& max_register_;
  const RegisterOptions options_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_TIMESTAMP_LOCK_H_
