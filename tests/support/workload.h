// Workloads: which commands each client sends, made from a seed before the run.
//
// A program is plain data: a shrinker deletes commands from it, a replay reads it from a text. No
// value is written twice: it names its client and its place in the client's program, and long ones
// repeat that name to their end, so that a mixture of two of them shows.
#ifndef ONETRIP_TESTS_SUPPORT_WORKLOAD_H_
#define ONETRIP_TESTS_SUPPORT_WORKLOAD_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/history.h"

namespace onetrip {

// The commands of each client, in order.
using Program = std::vector<std::vector<Command>>;

enum class CommandKind : uint8_t {
  kGet,
  kSet,
  kDel,
  kExists,
  kStrLen,
  kGetRange,
  kAppend,
  kSetRange,
  kIncr,
  kDecr,
  kIncrBy,
  kDecrBy,
  kSetNx,         // SETNX
  kSetIfMissing,  // SET NX
  kSetIfPresent,  // SET XX
  kSetGet,        // SET GET
  kSetNxGet,      // SET NX GET
  kGetSet,
  kGetDel,
  kSetPx,       // SET PX
  kSetPxAt,     // SET PXAT
  kSetKeepTtl,  // SET KEEPTTL
  kTtl,
  kPttl,
  kExpire,  // PEXPIRE, with NX, XX, GT, LT or nothing
  kPersist,
  kGetEx,  // GETEX PX
  kMGet,
  kMSet,
  kDelSeveral,
  kExistsSeveral,
  kSetNew,  // SET of a key that no client has used before
  kFlush,   // FLUSHALL or FLUSHDB
};

struct KindWeight {
  CommandKind kind;
  uint32_t weight;
};

struct WorkloadOptions {
  uint32_t clients = 4;
  uint32_t operations = 8;  // for each client
  uint32_t hot_keys = 1;
  uint32_t cold_keys = 4;
  uint32_t hot_percent = 80;     // how often a hot key is taken
  uint32_t number_percent = 20;  // how often a value that is written is an integer
  // Bytes of the values that are not: one of these each time, and the name at least.
  std::vector<uint32_t> value_bytes = {8, 40, 300, 1200, 5000};
  uint32_t expiry_ms_max = 20;    // EX and PX give 1 to this number
  int64_t unix_start_ms = 0;      // when the run begins, for PXAT
  uint32_t keys_per_command = 3;  // for MGET, MSET and their like, at most
  std::vector<KindWeight> kinds;  // empty: GET and SET
};

// The same seed and options give the same program.
Program MakeProgram(uint64_t seed, const WorkloadOptions& options);

// A mix with a name: reads_and_writes, counters, conditions, append, churn, expiry, mixed, multi,
// registers, endings, growth; and expire_commands, which needs EXPIRE and its like.
struct Mix {
  std::string_view name;
  std::vector<KindWeight> kinds;
  uint32_t hot_keys;
  uint32_t cold_keys;
  uint32_t number_percent;
};
std::span<const Mix> Mixes();
// Null if there is none of that name.
const Mix* FindMix(std::string_view name);
// Puts the mix's kinds, keys and share of numbers into `options`.
void ApplyMix(const Mix& mix, WorkloadOptions* options);

// The small programs that find nearly every planted bug: a word per client, a letter per command on
// one key. W is SET of a fresh integer, R GET, I INCR, D DEL.
std::span<const std::string_view> SmallShapes();
// REQUIRES: `shape` is words of those letters.
Program MakeSmallProgram(std::string_view shape, std::string_view key = "k");

// One command a line, "CLIENT: WORD WORD ...". Words are quoted where they must be; \{N*UNIT} in
// quotes is UNIT repeated to N bytes.
std::string ProgramToText(const Program& program);
// The inverse; blank lines and lines that start with # are skipped. False, with the line at fault
// in `error`, for anything else.
bool ProgramFromText(std::string_view text, Program* program, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_WORKLOAD_H_
