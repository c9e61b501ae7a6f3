// A simulated world of workers that read and write registers, by Safe-Guess, by ABD, or some by one
// and some by the other, and nothing else: no index, no allocator. Small enough for hundreds of
// thousands of schedules.
//
// Everything about a run follows from its seed: replicas, sizes, programs, latencies, clocks that
// are wrong or jump, a minority of nodes that crash, nodes and workers that pause, workers that
// crash, channels that break; in some, buffers are recycled by epochs as soon as that is allowed.
// Then the history must be linearizable, every operation of a live worker must have ended, and
// every read within the paper's bound of iterations.
#ifndef ONETRIP_TESTS_SIM_REGISTER_WORLD_H_
#define ONETRIP_TESTS_SIM_REGISTER_WORLD_H_

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "client_core/base/planted_bug.h"

namespace onetrip {

enum class RegisterProtocol : uint8_t { kSafeGuess, kAbd, kMixed };

struct RegisterRunOptions {
  RegisterProtocol protocol = RegisterProtocol::kSafeGuess;
  bool faults = true;
  // Writers stop for good at a random step; readers go on.
  bool freeze_writers = false;
};

struct RegisterReport {
  std::string failure;  // empty: none
  uint64_t trace = 0;   // equal for equal runs
  uint32_t operations = 0;
  uint32_t finished = 0;
  uint64_t slow_writes = 0;
  uint64_t rewrites = 0;
  uint32_t iterations_max = 0;  // the most iterations of a read
  uint32_t reused = 0;          // buffers that served a second write
  uint32_t fast_reads = 0;      // reads of one round trip
  uint32_t fast_writes = 0;     // writes of one round trip
  [[nodiscard]] bool ok() const { return failure.empty(); }
};

RegisterReport RunRegisters(uint64_t seed, const RegisterRunOptions& options = {});

// The bugs that the runs have to find.
struct RegisterBug {
  Bug bug;
  std::string_view name;
  RegisterProtocol protocol = RegisterProtocol::kSafeGuess;  // the protocol of the workers
  uint64_t first_seed = 1;  // close before one that finds it, where few do
};
// By its name, in the name of a test.
inline void PrintTo(const RegisterBug& bug, std::ostream* out) { *out << bug.name; }
std::span<const RegisterBug> RegisterBugs();

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_REGISTER_WORLD_H_
