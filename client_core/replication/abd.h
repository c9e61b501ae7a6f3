// ABD: linearizable, wait-free READ and WRITE of a replicated register in two round trips each: the
// baseline DM-ABD of SWARM 7 (the algorithm: SWARM 2.3), on the registers of Safe-Guess.
//
// A writer does not guess: it reads a fresh timestamp while its value travels to its buffer, and
// then raises the max register to a word that is VERIFIED from the start. A reader reads the max
// register, and then the buffer that its word names: there is no in-place copy, but for a
// register's first value. No operation locks.
//
// Both protocols may work on one register. An ABD word is what a Safe-Guess writer that left the
// fast path writes: VERIFIED, and above all that was at a majority when the write began. A guess
// that an ABD reader meets it reads as Safe-Guess does. Single-threaded, like all of a worker.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_ABD_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_ABD_H_

#include <cstddef>
#include <span>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/replication/safe_guess.h"

namespace onetrip {

class Abd {
 public:
  // `safe_guess`, whose max register this uses and whose Stop() ends this, too, outlives it.
  // REQUIRES: it was made with RegisterOptions::in_place false.
  explicit Abd(SafeGuess& safe_guess)
      : safe_guess_(safe_guess), max_register_(safe_guess.max_register()) {}

  // READ; as SafeGuess::Read.
  Task<Result<ReadOutcome>> Read(RegisterOperation& operation, RegisterHandle& handle,
                                 QuorumCall* begun = nullptr);

  // WRITE; as SafeGuess::Write, but the word and the buffer are those of a rewrite: what becomes of
  // an interrupted one can be told without a lock. The other buffer is not used. kUnavailable,
  // kFenced: no word was posted, and none will be.
  Task<Status> Write(RegisterOperation& operation, RegisterHandle& handle, WriteBuffers buffers,
                     std::span<const std::byte> value, WriteOutcome* outcome);

 private:
  // The value to its buffer on all replicas; M.read() without its write-back.
  Task<RegisterStep> ReadTimestamp(RegisterOperation& operation, const RegisterRef& ref,
                                   GlobalAddr buffer, WrittenValue value, QuorumCall* call);
  // M.write(w), where `first` has the answers to ReadTimestamp.
  Task<RegisterStep> WriteWord(RegisterOperation& operation, RegisterHandle& handle, MetaWord w,
                               WrittenValue value, const QuorumCall& first);

  SafeGuess& safe_guess_;
  MaxRegister& max_register_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_ABD_H_
