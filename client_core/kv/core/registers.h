// Registers: what a worker needs to hold keys as registers, by Safe-Guess or by ABD. Private to
// kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_REGISTERS_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_REGISTERS_H_

#include <cstddef>
#include <span>

#include "client_core/kv/core/register_cache.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/abd.h"
#include "client_core/replication/engine.h"
#include "client_core/replication/guess_clock.h"
#include "client_core/replication/register_seal.h"
#include "client_core/replication/safe_guess.h"

namespace onetrip {

// Longer ones are held as records: lanes are read together with the key, and a buffer's two copies
// of a large value cost more than they save.
inline constexpr uint64_t kRegisterKeyBytesMax = 256;
inline constexpr uint64_t kRegisterValueBytesMax = 8192;

// Differs for every write of a key: the incarnation is of one register, the word of one write.
inline uint64_t VersionOf(const RegisterRef& ref, MetaWord word) {
  uint64_t mixed = ref.incarnation * 0x9e3779b97f4a7c15ULL + word.AsGuess().bits();
  mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ULL;
  return mixed ^ (mixed >> 29);
}

struct Registers {
  Registers(WorkerContext& context, Allocator& allocator, RegisterKind kind)
      : by_abd(kind == RegisterKind::kAbd),
        clock(context.executor.clock(), context.master.clock_offset_us(), GuessClock::kJumpMax,
              context.options.register_time_end),
        safe_guess(context, clock, {.in_place = !by_abd}),
        abd(safe_guess),
        seal(safe_guess.max_register()),
        cache(context, allocator, clock, context.options.register_cache_entries,
              context.options.resting_registers_max) {}

  Task<Result<ReadOutcome>> Read(RegisterOperation& operation, RegisterHandle& handle,
                                 QuorumCall* begun = nullptr) {
    return by_abd ? abd.Read(operation, handle, begun) : safe_guess.Read(operation, handle, begun);
  }
  Task<Status> Write(RegisterOperation& operation, RegisterHandle& handle,
                     const WriteBuffers& buffers, std::span<const std::byte> value,
                     WriteOutcome* outcome) {
    return by_abd ? abd.Write(operation, handle, buffers, value, outcome)
                  : safe_guess.Write(operation, handle, buffers, value, outcome);
  }
  // DM-ABD has one.
  [[nodiscard]] uint32_t Lanes(const DataPathOptions& options) const {
    return by_abd ? 1 : options.register_lanes;
  }

  const bool by_abd;
  GuessClock clock;
  SafeGuess safe_guess;
  Abd abd;
  RegisterSeal seal;
  RegisterCache cache;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_REGISTERS_H_
