// Safe-Guess: linearizable, wait-free READ and WRITE of a replicated register, one round trip each
// when clocks roughly agree and no other operation interferes (SWARM 3; PROTOCOLS, "Registers").
//
// A writer guesses a timestamp and finds out in the same round trip whether the guess was fresh. If
// it cannot tell, it locks readers out of the guess and writes again with a time that surely is. A
// reader returns what is verified, or a guess that it finds everywhere, or one that it has read
// twice and locked the writer out of, or the first of two tuples of one writer. Single-threaded,
// like all of a worker.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_SAFE_GUESS_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_SAFE_GUESS_H_

#include <cstdint>
#include <span>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "client_core/replication/guess_clock.h"
#include "client_core/replication/max_register.h"
#include "client_core/replication/timestamp_lock.h"

namespace onetrip {

// An out-of-place buffer of ref.shape.buffer_bytes on the nodes of the register that it is for; its
// lock words were zeroed on every live replica before its first use as a buffer.
struct OutBuffer {
  GlobalAddr addr;
  Ticks used;  // the latest time that it, or its lock, was ever used with; 0: fresh
};

// A write has all that it needs before its first operation is posted: PROTOCOLS, "Registers".
struct WriteBuffers {
  OutBuffer guess;
  OutBuffer rewrite;
};

// How an operation on a register ended, if it did not fail.
enum class RegisterEnd : uint8_t {
  kDone,
  kEmpty,        // READ: nothing was ever written
  kInterrupted,  // a seal was met: the caller finishes what it says
  kExhausted,    // WRITE: no timestamps are left; nothing was posted; register the key anew
};

struct ReadOutcome {
  RegisterEnd end = RegisterEnd::kDone;
  uint64_t seal = 0;  // kInterrupted
  Tuple tuple;        // kDone: the write that was read; its value lives as long as the holder
  // What wait-freedom promises with n writers (SWARM C.2), for observers: M.reads, at most 2 n + 1;
  // guesses that could not be locked twice in a row, none, since by then their writer has announced
  // what overtook them.
  uint32_t iterations = 1;
  uint32_t stalls = 0;
};

// The buffers of posted words are in use until a larger word is at a majority or the register has
// gone; one whose word is empty was not used.

struct WriteOutcome {
  RegisterEnd end = RegisterEnd::kDone;
  uint64_t seal = 0;                            // kInterrupted
  GuessSpread spread = GuessSpread::kHindered;  // kInterrupted
  MetaWord guess;                               // posted
  MetaWord rewrite;  // posted in the second buffer, after the guess was locked
  // Bytes were posted to the second buffer, but no word (ABD): it is in use even so.
  bool wordless = false;
  RoundTripPtr begun;  // posted by a fast path that gave up
};

inline constexpr Status kLeaseRanOut{StatusCode::kFenced, "the lease ran out during the operation"};

class SafeGuess {
 public:
  // `context` outlives it.
  SafeGuess(WorkerContext& context, GuessClock& clock, const RegisterOptions& options = {})
      : context_(context),
        clock_(clock),
        max_register_(context, options),
        lock_(max_register_, options) {}

  // READ and WRITE where the fabric completes inline, no other operation interferes and nothing is
  // missing: the same steps in one round trip, without a coroutine. False: nothing is known; take
  // the slow path. A WRITE then goes on with the guess that it has begun with, in *outcome. A READ
  // leaves in `*image` all of a replica, which lives as long as *m.
  bool ReadFast(RegisterHandle& handle, Tuple* m, const std::byte** image);
  bool WriteFast(RegisterHandle& handle, const OutBuffer& buffer, std::span<const std::byte> value,
                 WriteOutcome* outcome);

  // READ. kUnavailable: too few replicas. kNotFound: the address is another register's by now.
  // kFenced: the lease ran out meanwhile. `begun`: as of MaxRegister::Read.
  Task<Result<ReadOutcome>> Read(RegisterOperation& operation, RegisterHandle& handle,
                                 QuorumCall* begun = nullptr);

  // WRITE of `value`, which is borrowed until the task ends. REQUIRES: at most value_bytes_max of
  // the shape; no other write of this worker to this register is running. `*outcome` is new, or as
  // the fast path of the same value and buffers left it. kUnknownOutcome: the value may be there,
  // now or later, or never; so may `*outcome` tell which words were posted. kInterrupted is no
  // success: PROTOCOLS, "One key, two forms", tells what became of the words.
  Task<Status> Write(RegisterOperation& operation, RegisterHandle& handle, WriteBuffers buffers,
                     std::span<const std::byte> value, WriteOutcome* outcome);

  // READ from `first` on, which M.read() has returned and which is a guess that is not everywhere.
  Task<Result<ReadOutcome>> ReadGuess(RegisterOperation& operation, RegisterHandle& handle,
                                      Tuple first);

  // Returns true if what is known by now came too late to be believed.
  [[nodiscard]] bool LeaseRanOut() const {
    const uint64_t deadline_ns = context_.fabric.lease().deadline_ns;
    return deadline_ns != LeaseGuard::kForever && context_.executor.NowNs() >= deadline_ns;
  }

  // Waits for stragglers and background steps; nothing may be started afterwards.
  Task<void> Stop() { co_await max_register_.gate().Close(); }

  // How often writes left the fast path, and rewrote their guess.
  [[nodiscard]] uint64_t slow_writes() const { return slow_writes_; }
  [[nodiscard]] uint64_t rewrites() const { return rewrites_; }
  MaxRegister& max_register() { return max_register_; }
  TimestampLock& timestamp_lock() { return lock_; }

 private:
  // WRITE from the point on where `m` overtook the guess.
  Task<RegisterStep> WriteOvertaken(RegisterOperation& operation, RegisterHandle& handle,
                                    OutBuffer buffer, const WrittenValue& value, QuorumCall& first,
                                    Tuple m, WriteOutcome* outcome);
  // Tells what the answers to the guess's M.write say; PROTOCOLS, "A guess that is everywhere".
  [[nodiscard]] GuessSpread SpreadOfGuess(const QuorumCall& first, const WriteOutcome& outcome);
  // Makes the in-place copy of what was read if it is missing twice in a row; if there is to be
  // none, remembers the write for the next read.
  void Repair(RegisterOperation& operation, RegisterHandle& handle, const Tuple& m);

  WorkerContext& context_;
  GuessClock& clock_;
  MaxRegister max_register_;
  TimestampLock lock_;
  uint64_t slow_writes_ = 0;
  uint64_t rewrites_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_SAFE_GUESS_H_
