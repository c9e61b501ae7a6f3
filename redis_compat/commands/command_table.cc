#include "redis_compat/dispatch/command_table.h"

#include <array>
#include <cstring>

#include "client_core/base/check.h"
#include "redis_compat/commands/cluster/cluster_rows.h"
#include "redis_compat/commands/connection/connection_rows.h"
#include "redis_compat/commands/geo/geo_rows.h"
#include "redis_compat/commands/hashes/hash_rows.h"
#include "redis_compat/commands/hyperloglog/hyperloglog_rows.h"
#include "redis_compat/commands/keys/key_rows.h"
#include "redis_compat/commands/keys/keyspace_rows.h"
#include "redis_compat/commands/lists/list_rows.h"
#include "redis_compat/commands/server/observation_rows.h"
#include "redis_compat/commands/server/server_rows.h"
#include "redis_compat/commands/server/service_rows.h"
#include "redis_compat/commands/sets/set_rows.h"
#include "redis_compat/commands/sort/sort_rows.h"
#include "redis_compat/commands/sorted_sets/sorted_set_rows.h"
#include "redis_compat/commands/streams/stream_rows.h"
#include "redis_compat/commands/strings/string_rows.h"
#include "redis_compat/commands/transactions/transaction_rows.h"
#include "redis_compat/dispatch/command_stats.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

constexpr size_t kRowCount = kConnectionRows.size() + kServerRows.size() + kServiceRows.size() +
                             kObservationRows.size() + kClusterRows.size() +
                             kTransactionRows.size() + kKeyspaceRows.size() + kKeyRows.size() +
                             kStringRows.size() + kHyperLogLogRows.size() + kHashRows.size() +
                             kListRows.size() + kSetRows.size() + kSortRows.size() +
                             kSortedSetRows.size() + kGeoRows.size() + kStreamRows.size();
static_assert(kRowCount <= CommandStats::kCommandsMax, "every row has a place for its statistics");

constexpr std::array<CommandRow, kRowCount> JoinRows() {
  std::array<CommandRow, kRowCount> all;
  size_t at = 0;
  const auto add = [&](std::span<const CommandRow> rows) {
    for (const CommandRow& row : rows) {
      all[at] = row;
      if (row.complexity.starts_with("O(1)")) all[at].flags |= kConstantTime;
      const CommandKeys& more = row.more_keys;
      const bool is_found = more.find != nullptr || more.is_option || !row.unnamed_keys.empty();
      if (row.keys.is_counted || row.keys.is_streams || more.is_counted || is_found) {
        all[at].flags |= kMovableKeys;
      }
      ++at;
    }
  };
  add(kConnectionRows);
  add(kServerRows);
  add(kServiceRows);
  add(kObservationRows);
  add(kClusterRows);
  add(kTransactionRows);
  add(kKeyspaceRows);
  add(kKeyRows);
  add(kStringRows);
  add(kHyperLogLogRows);
  add(kHashRows);
  add(kListRows);
  add(kSetRows);
  add(kSortRows);
  add(kSortedSetRows);
  add(kGeoRows);
  add(kStreamRows);
  return all;
}

constexpr std::array<CommandRow, kRowCount> kRows = JoinRows();

[[maybe_unused]] constexpr bool RowsAreSound() {
  for (const CommandRow& row : kRows) {
    const bool runs_once = (row.immediate != nullptr) != (row.awaited != nullptr);
    const bool bare_container = row.is_container() && !row.immediate && !row.awaited;
    if (!runs_once && !bare_container) return false;
    if (row.fast != nullptr && row.awaited == nullptr) return false;
    if (row.arity == 0 || row.summary.empty() || row.since.empty()) return false;
    // A bare container may only be answered with its arity error.
    if (bare_container && row.arity != -2) return false;
  }
  return true;
}
// Under UBSan gcc keeps null checks of functions' addresses and calls them no constants. The builds
// without it check the same table.
#ifndef __SANITIZE_ADDRESS__
static_assert(RowsAreSound());
#endif

// A name folded into two words, so that finding it takes two comparisons: its first and last eight
// bytes (they overlap in a short name), letters in lower case. Together with the size they are the
// whole name up to 16 bytes.
struct FoldedName {
  uint64_t head = 0;
  uint64_t tail = 0;
  size_t size = 0;

  friend constexpr bool operator==(const FoldedName&, const FoldedName&) = default;

  // Spreads the bits that differ between command names over the upper ones.
  [[nodiscard]] constexpr size_t Hash() const {
    return static_cast<size_t>(((head ^ (tail * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL) >>
                               32);
  }
};

constexpr size_t kFoldedMax = 16;
// Makes letters lower case. It also moves a few other bytes, which is why a match is confirmed
// byte by byte if the name has anything but letters.
constexpr uint64_t kLowerCaseBits = 0x2020202020202020ULL;

// REQUIRES: 1 <= name.size() <= kFoldedMax.
constexpr uint64_t LoadBytes(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return word;
}
constexpr FoldedName FoldAtBuildTime(std::string_view name) {
  FoldedName folded;
  folded.size = name.size();
  if (name.size() >= 8) {
    folded.head = LoadBytes(name.substr(0, 8));
    folded.tail = LoadBytes(name.substr(name.size() - 8));
  } else if (name.size() >= 4) {
    folded.head = LoadBytes(name.substr(0, 4));
    folded.tail = LoadBytes(name.substr(name.size() - 4));
  } else {
    folded.head = LoadBytes(name);
    folded.tail = 0;
  }
  folded.head |= kLowerCaseBits;
  folded.tail |= kLowerCaseBits;
  return folded;
}

// The same by unaligned loads.
FoldedName Fold(std::string_view name) {
  FoldedName folded;
  folded.size = name.size();
  const char* const data = name.data();
  const size_t size = name.size();
  if (size >= 8) {
    std::memcpy(&folded.head, data, 8);
    std::memcpy(&folded.tail, data + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&folded.head, data, 4);
    std::memcpy(&folded.tail, data + size - 4, 4);
  } else {
    folded.head = LoadBytes(name);
  }
  folded.head |= kLowerCaseBits;
  folded.tail |= kLowerCaseBits;
  return folded;
}

// Open addressing over the top-level names, at most a quarter full.
constexpr size_t kSlots = 1024;
constexpr uint16_t kEmpty = 0xffff;

struct Slot {
  FoldedName name;
  uint16_t row = kEmpty;
  bool confirm = false;
};

struct NameTable {
  std::array<Slot, kSlots> slots;
  size_t top_level = 0;
};

constexpr NameTable BuildNameTable() {
  NameTable table;
  for (size_t row = 0; row < kRowCount; ++row) {
    const std::string_view name = kRows[row].name;
    if (kRows[row].is_subcommand()) {
      continue;
    }
    ++table.top_level;
    Slot slot{FoldAtBuildTime(name), static_cast<uint16_t>(row), name.size() > kFoldedMax};
    for (const char c : name) {
      slot.confirm |= c < 'a' || c > 'z';
    }
    size_t at = slot.name.Hash() % kSlots;
    while (table.slots[at].row != kEmpty) at = (at + 1) % kSlots;
    table.slots[at] = slot;
  }
  return table;
}

constexpr NameTable kNames = BuildNameTable();
static_assert(kNames.top_level * 4 <= kSlots, "a search must meet an empty slot soon");

}  // namespace

std::span<const CommandRow> AllCommands() { return kRows; }

size_t CommandId(const CommandRow& row) { return static_cast<size_t>(&row - kRows.data()); }

int64_t LastKey(const CommandKeys& keys, std::span<const std::string_view> argv) {
  const auto count = static_cast<int64_t>(argv.size());
  if (!keys.is_counted) return keys.last >= 0 ? keys.last : count + keys.last;
  if (keys.first > count) return 0;
  const auto keys_named = ParseInt64(argv[static_cast<size_t>(keys.first) - 1]);
  if (!keys_named || *keys_named < 1 || *keys_named > count - keys.first) return 0;
  return keys.first + *keys_named - 1;
}

StreamKeySpan FindStreamKeys(std::span<const std::string_view> argv) {
  size_t at = 1;
  while (at < argv.size() && !EqualsIgnoreCase(argv[at], "STREAMS")) {
    const bool has_value =
        EqualsIgnoreCase(argv[at], "BLOCK") || EqualsIgnoreCase(argv[at], "COUNT");
    const bool is_group = EqualsIgnoreCase(argv[at], "GROUP");
    if (!has_value && !is_group && !EqualsIgnoreCase(argv[at], "NOACK")) return {};
    at += is_group ? 3 : has_value ? 2 : 1;
  }
  if (at >= argv.size()) return {};
  const size_t first = at + 1;
  const size_t behind = argv.size() - first;
  if (behind == 0 || behind % 2 != 0) return {};
  return {first, first + behind / 2};
}

bool IsStoreOption(std::string_view word) {
  return EqualsIgnoreCase(word, "STORE") || EqualsIgnoreCase(word, "STOREDIST");
}

size_t TopLevelCommandCount() { return kNames.top_level; }

const CommandRow* FindCommand(std::string_view name) {
  if (name.empty()) {
    return nullptr;
  }
  const FoldedName folded = Fold(name);
  for (size_t at = folded.Hash() % kSlots; kNames.slots[at].row != kEmpty; at = (at + 1) % kSlots) {
    const Slot& slot = kNames.slots[at];
    if (slot.name == folded) {
      const CommandRow& row = kRows[slot.row];
      if (!slot.confirm || EqualsIgnoreCase(name, row.name)) {
        return &row;
      }
    }
  }
  return nullptr;
}

std::span<const CommandRow> SubcommandsOf(const CommandRow& container) {
  const size_t first = CommandId(container) + 1;
  CHECK(first <= kRowCount);
  size_t end = first;
  while (container.is_container() && end < kRowCount && kRows[end].is_subcommand()) {
    ++end;
  }
  return std::span<const CommandRow>(kRows).subspan(first, end - first);
}

const CommandRow* FindSubcommand(const CommandRow& container, std::string_view name) {
  const size_t prefix = container.name.size() + 1;
  for (const CommandRow& row : SubcommandsOf(container)) {
    if (EqualsIgnoreCase(name, row.name.substr(prefix))) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace onetrip
