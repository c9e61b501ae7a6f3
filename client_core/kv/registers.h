// Registers: what a worker needs to hold keys as Safe-Guess registers. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_REGISTERS_H_
#define ONETRIP_CLIENT_CORE_KV_REGISTERS_H_

#include "client_core/kv/register_cache.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/guess_clock.h"
#include "client_core/replication/register_seal.h"
#include "client_core/replication/safe_guess.h"

namespace onetrip {

// Longer ones are held as records: lanes are read together with the key, and a buffer's two copies
// of a large value cost more than they save.
inline constexpr uint64_t kRegisterKeyBytesMax = 256;
inline constexpr uint64_t kRegisterValueBytesMax = 8192;

struct Registers {
  Registers(WorkerContext& context, Allocator& allocator)
      : clock(context.executor.clock(), context.master.clock_offset_us()),
        safe_guess(context, clock),
        seal(safe_guess.max_register()),
        cache(context, allocator, clock, context.options.register_cache_entries) {}

  GuessClock clock;
  SafeGuess safe_guess;
  RegisterSeal seal;
  RegisterCache cache;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_REGISTERS_H_
