// The command table: one row per command and subcommand.
//
// Everything said about a command is in its row: how to call it, where its keys are, what it may
// do, what runs it. COMMAND in all its forms and the documentation are generated from here.
// Constant data; any thread.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_TABLE_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// Command flags, in the order in which COMMAND INFO lists them.
enum CommandFlag : uint32_t {
  kWrite = 1u << 0,
  kReadOnly = 1u << 1,
  kDenyOom = 1u << 2,
  kAdmin = 1u << 3,
  kNoScript = 1u << 4,
  kBlocking = 1u << 5,  // May wait for other clients; so far it does not, and says so.
  kLoading = 1u << 6,
  kStale = 1u << 7,
  kSkipSlowlog = 1u << 8,
  kFast = 1u << 9,
  kNoAuth = 1u << 10,  // May run before the client has given the password.
  kNoAsyncLoading = 1u << 11,
  kNoMulti = 1u << 12,      // Refused inside a transaction.
  kMovableKeys = 1u << 13,  // Where keys are is to be seen from the arguments.
  kAllowBusy = 1u << 14,
  // Ours, not listed.
  kContainer = 1u << 16,        // Has subcommands, in the rows behind it.
  kNotQueued = 1u << 17,        // Runs at once inside a transaction.
  kConstantTime = 1u << 18,     // Made from the complexity.
  kRunsQueue = 1u << 19,        // Does what the commands do that the transaction has queued.
  kMayWrite = 1u << 20,         // Changes keys although it is not listed as a write.
  kOtherDatabase = 1u << 21,    // Its second key may be in another database.
  kSelectsDatabase = 1u << 22,  // The commands behind it are about the database it names.
  // With one key it may run beside the commands before it of one connection, on other keys. It
  // answers with no large value, or awaits its turn first.
  kOverlaps = 1u << 23,
  // Its first step is the one read-modify-write of its key, or it awaits its turn before that: it
  // may run beside others like it on the same key.
  kMutatesFirst = 1u << 24,
};

// ACL categories, in the order in which COMMAND INFO lists them.
enum CommandCategory : uint32_t {
  kCatKeyspace = 1u << 0,
  kCatRead = 1u << 1,
  kCatWrite = 1u << 2,
  kCatSet = 1u << 3,
  kCatSortedSet = 1u << 4,
  kCatList = 1u << 5,
  kCatHash = 1u << 6,
  kCatString = 1u << 7,
  kCatBitmap = 1u << 8,
  kCatHyperLogLog = 1u << 9,
  kCatGeo = 1u << 10,
  kCatStream = 1u << 11,
  kCatAdmin = 1u << 12,
  kCatFast = 1u << 13,
  kCatSlow = 1u << 14,
  kCatBlocking = 1u << 15,
  kCatDangerous = 1u << 16,
  kCatConnection = 1u << 17,
  kCatTransaction = 1u << 18,
  kCatScripting = 1u << 19,
};

// Ways in which a command uses its keys, in the order in which COMMAND INFO lists them.
enum KeyFlag : uint32_t {
  kKeyRw = 1u << 0,
  kKeyRo = 1u << 1,
  kKeyOw = 1u << 2,
  kKeyRm = 1u << 3,
  kKeyAccess = 1u << 4,
  kKeyUpdate = 1u << 5,
  kKeyInsert = 1u << 6,
  kKeyDelete = 1u << 7,
  kKeyVariable = 1u << 8,
};

// Hints for clients in front of many servers, in the order in which COMMAND INFO lists them.
enum CommandTip : uint32_t {
  kTipNondeterministicOutput = 1u << 0,
  kTipNondeterministicOrder = 1u << 1,
  kTipAllShards = 1u << 2,
  kTipAllNodes = 1u << 3,
  kTipMultiShard = 1u << 4,
  kTipAllSucceeded = 1u << 5,
  kTipOneSucceeded = 1u << 6,
  kTipAggSum = 1u << 7,
  kTipSpecial = 1u << 8,  // as response_policy
  kTipAggMin = 1u << 9,
  kTipSpecialRequest = 1u << 10,
  // The first two again, for commands that list them last.
  kTipLastNondeterministicOutput = 1u << 11,
  kTipLastNondeterministicOrder = 1u << 12,
};

enum class CommandGroup : uint8_t {
  kConnection,
  kServer,
  kGeneric,
  kString,
  kBitmap,
  kHyperLogLog,
  kList,
  kSet,
  kSortedSet,
  kHash,
  kGeo,
  kStream,
  kTransactions,
  kScripting,
  kCluster,
};

// Where the keys are in argv: from first, every step-th, to last (negative: counted from the end;
// -1 is the last argument). first == 0: none. Or there are as many, from first on, as the argument
// before says: is_counted, and last and step are 1. Or it is one key, at a place that only the
// command's own grammar tells: find. Or they stand behind STORE and STOREDIST, which may come from
// first on: is_option. Or they are the first half of what stands behind STREAMS: is_streams.
struct CommandKeys {
  int16_t first = 0;
  int16_t last = 0;
  int16_t step = 0;
  uint32_t flags = 0;           // KeyFlag bits.
  std::string_view notes = {};  // Shown with the key specification.
  bool is_counted = false;
  bool is_option = false;
  bool is_streams = false;
  // The key's position in a call; 0: it names none. `first` is where it may be at the earliest.
  size_t (*find)(std::span<const std::string_view> argv) = nullptr;
};

struct CommandRow {
  // A command that never waits for storage.
  using Immediate = void (*)(CommandContext&);
  // A command that may. The context outlives the Task.
  using Awaited = Task<void> (*)(CommandContext&);
  // The same command where the storage does not make it wait. False: nothing has happened.
  using Fast = bool (*)(CommandContext&);

  std::string_view name = {};     // Lower case; a subcommand is "container|name".
  std::string_view syntax = {};   // Arguments as a user writes them: "key [EX seconds]".
  std::string_view summary = {};  // One phrase.
  std::string_view since = {};    // The Redis version that had it first.
  std::string_view complexity = {};
  CommandGroup group = CommandGroup::kGeneric;
  int arity = 0;  // Arguments with the name; negative: at least that many.
  uint32_t flags = 0;
  uint32_t categories = 0;
  CommandKeys keys = {};
  CommandKeys more_keys = {};  // Keys behind the first, if the command treats them otherwise.
  // Notes on keys that it reads besides, whose names are made of values; empty: there are none.
  std::string_view unnamed_keys = {};
  uint32_t tips = 0;
  // Exactly one of the two, but for containers whose bare name does nothing.
  Immediate immediate = nullptr;
  Awaited awaited = nullptr;
  Fast fast = nullptr;  // beside `awaited`: spares the most frequent commands its frames

  [[nodiscard]] constexpr bool is_container() const { return (flags & kContainer) != 0; }
  [[nodiscard]] constexpr bool is_subcommand() const {
    return name.find('|') != std::string_view::npos;
  }
  [[nodiscard]] constexpr bool takes_constant_time() const { return (flags & kConstantTime) != 0; }
  // argv[1] is the only key.
  [[nodiscard]] constexpr bool has_one_key() const {
    return keys.first == 1 && keys.last == 1 && more_keys.first == 0 && unnamed_keys.empty();
  }
  [[nodiscard]] constexpr bool AcceptsArgumentCount(size_t count) const {
    const auto given = static_cast<int64_t>(count);
    return arity >= 0 ? given == arity : given >= -arity;
  }
};

// All rows; a container's subcommands follow it directly.
std::span<const CommandRow> AllCommands();

// A row's position in AllCommands(): the index of its statistics.
size_t CommandId(const CommandRow& row);

// How many rows are no subcommands: COMMAND COUNT.
size_t TopLevelCommandCount();

// The row of a top-level command, whatever its case; null if there is none. A few nanoseconds, no
// allocation.
const CommandRow* FindCommand(std::string_view name);

// The row of a container's subcommand, whatever its case; null if there is none.
const CommandRow* FindSubcommand(const CommandRow& container, std::string_view name);

// The rows of a container's subcommands.
std::span<const CommandRow> SubcommandsOf(const CommandRow& container);

// The last key's position in `argv` by `keys`; 0: `argv` names none, as its count of keys is no
// number, or larger than what is there. REQUIRES: they are no options.
int64_t LastKey(const CommandKeys& keys, std::span<const std::string_view> argv);

// Keys of is_streams in `argv`.
struct StreamKeySpan {
  size_t first = 0;
  size_t end = 0;  // 0: it names none
};
StreamKeySpan FindStreamKeys(std::span<const std::string_view> argv);

// True if the argument behind `word` is a key of is_option.
bool IsStoreOption(std::string_view word);

// Key positions of a call: calls visit(index) for each. False if argv cannot be a call of `row`
// that names keys. REQUIRES: the row takes keys.
template <typename Visit>
bool ForEachKey(const CommandRow& row, std::span<const std::string_view> argv, Visit visit) {
  if (row.keys.first == 0 || !row.AcceptsArgumentCount(argv.size())) {
    return false;
  }
  const auto count = static_cast<int64_t>(argv.size());
  for (const CommandKeys* keys : {&row.keys, &row.more_keys}) {
    if (keys->first == 0) continue;
    if (keys->find != nullptr) {
      const size_t found = keys->find(argv);
      if (found != 0) visit(found);
      continue;
    }
    if (keys->is_option) {
      for (int64_t i = keys->first; i + 1 < count; ++i) {
        if (IsStoreOption(argv[static_cast<size_t>(i)])) visit(static_cast<size_t>(++i));
      }
      continue;
    }
    if (keys->is_streams) {
      const StreamKeySpan span = FindStreamKeys(argv);
      if (span.end == 0) return false;
      for (size_t i = span.first; i < span.end; ++i) visit(i);
      continue;
    }
    const int64_t last = LastKey(*keys, argv);
    if (keys->is_counted && last == 0) return false;
    for (int64_t i = keys->first; i <= last && i < count; i += keys->step) {
      visit(static_cast<size_t>(i));
    }
  }
  return true;
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_TABLE_H_
