#include "tests/support/workload.h"

#include <algorithm>
#include <array>

#include "client_core/base/check.h"
#include "client_core/base/rng.h"

namespace onetrip {
namespace {

// Numbers written by different commands differ.
constexpr int64_t kNumbersPerClient = 1'000'000;
constexpr int64_t kNumbersPerCommand = 16;
// The range that GETRANGE and SETRANGE work in, mostly inside the values.
constexpr uint64_t kOffsetMax = 64;
constexpr uint64_t kAddendMax = 100;

// Makes the program of one client.
class ClientMaker {
 public:
  ClientMaker(const WorkloadOptions& options, uint32_t client, uint64_t seed)
      : options_(options), client_(client), rng_(seed) {
    for (const KindWeight& kind : options.kinds) {
      weights_ += kind.weight;
      new_keys_ |= kind.kind == CommandKind::kSetNew;
    }
  }

  std::vector<Command> Make() {
    std::vector<Command> commands;
    for (op_ = 0; op_ < options_.operations; ++op_) {
      values_ = 0;
      commands.push_back(MakeCommand(PickKind()));
    }
    return commands;
  }

 private:
  CommandKind PickKind() {
    uint64_t left = rng_.Below(weights_);
    for (const KindWeight& kind : options_.kinds) {
      if (left < kind.weight) return kind.kind;
      left -= kind.weight;
    }
    return rng_.Below(2) == 0 ? CommandKind::kGet : CommandKind::kSet;
  }

  static std::string NewKey(uint64_t client, uint64_t op) {
    return "n" + std::to_string(client) + "." + std::to_string(op);
  }

  std::string PickKey() {
    const bool hot = rng_.Below(100) < options_.hot_percent;
    if (options_.hot_keys > 0 && (hot || (options_.cold_keys == 0 && !new_keys_))) {
      return "h" + std::to_string(rng_.Below(options_.hot_keys));
    }
    // Where keys are created, they are the cold ones: some client's, likely to be there by now.
    if (new_keys_ && (options_.cold_keys == 0 || rng_.Below(2) == 0)) {
      return NewKey(rng_.Below(options_.clients), rng_.Below(op_ + uint64_t{1}));
    }
    return "c" + std::to_string(rng_.Below(options_.cold_keys));
  }

  // Different ones, two at least where there are two.
  std::vector<std::string> PickKeys() {
    const uint64_t there = options_.hot_keys + options_.cold_keys;
    const uint64_t most = std::min<uint64_t>(options_.keys_per_command, there);
    const uint64_t count = most <= 2 ? most : 2 + rng_.Below(most - 1);
    std::vector<std::string> keys;
    while (keys.size() < count) {
      const uint64_t index = rng_.Below(there);
      std::string key = index < options_.hot_keys ? "h" + std::to_string(index)
                                                  : "c" + std::to_string(index - options_.hot_keys);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
    }
    return keys;
  }

  // A value that no other client writes.
  std::string Value() {
    const uint32_t nth = values_++;
    if (rng_.Below(100) < options_.number_percent) {
      return std::to_string((client_ + int64_t{1}) * kNumbersPerClient + op_ * kNumbersPerCommand +
                            nth);
    }
    std::string name = "c" + std::to_string(client_) + "o" + std::to_string(op_);
    if (nth > 0) name += "v" + std::to_string(nth);
    name += ";";
    size_t bytes = 0;
    if (!options_.value_bytes.empty()) {
      bytes = options_.value_bytes[rng_.Below(options_.value_bytes.size())];
    }
    std::string value = name;
    while (value.size() < bytes) value += name;
    value.resize(std::max(bytes, name.size()));
    return value;
  }

  // A short one: what APPEND and SETRANGE add stays small.
  std::string Piece() { return "c" + std::to_string(client_) + "o" + std::to_string(op_) + ";"; }

  std::string ExpiryMs() {
    return std::to_string(1 + rng_.Below(std::max(options_.expiry_ms_max, 1U)));
  }
  std::string Addend() { return std::to_string(1 + rng_.Below(kAddendMax)); }
  std::string Offset() { return std::to_string(rng_.Below(kOffsetMax)); }

  Command MakeExpire() {
    static constexpr auto kConditions = std::to_array<const char*>({"", "NX", "XX", "GT", "LT"});
    Command command = {"PEXPIRE", PickKey(), ExpiryMs()};
    const char* const condition = kConditions[rng_.Below(kConditions.size())];
    if (*condition != '\0') command.emplace_back(condition);
    return command;
  }

  Command OverKeys(const char* name, bool with_values) {
    Command command = {name};
    for (std::string& key : PickKeys()) {
      command.push_back(std::move(key));
      if (with_values) command.push_back(Value());
    }
    return command;
  }

  Command MakeCommand(CommandKind kind) {
    using Kind = CommandKind;
    switch (kind) {
      case Kind::kGet:
        return {"GET", PickKey()};
      case Kind::kSet:
        return {"SET", PickKey(), Value()};
      case Kind::kDel:
        return {"DEL", PickKey()};
      case Kind::kExists:
        return {"EXISTS", PickKey()};
      case Kind::kStrLen:
        return {"STRLEN", PickKey()};
      case Kind::kGetRange:
        return {"GETRANGE", PickKey(), Offset(), "-1"};
      case Kind::kAppend:
        return {"APPEND", PickKey(), Piece()};
      case Kind::kSetRange:
        return {"SETRANGE", PickKey(), Offset(), Piece()};
      case Kind::kIncr:
        return {"INCR", PickKey()};
      case Kind::kDecr:
        return {"DECR", PickKey()};
      case Kind::kIncrBy:
        return {"INCRBY", PickKey(), Addend()};
      case Kind::kDecrBy:
        return {"DECRBY", PickKey(), Addend()};
      case Kind::kSetNx:
        return {"SETNX", PickKey(), Value()};
      case Kind::kSetIfMissing:
        return {"SET", PickKey(), Value(), "NX"};
      case Kind::kSetIfPresent:
        return {"SET", PickKey(), Value(), "XX"};
      case Kind::kSetGet:
        return {"SET", PickKey(), Value(), "GET"};
      case Kind::kSetNxGet:
        return {"SET", PickKey(), Value(), "NX", "GET"};
      case Kind::kGetSet:
        return {"GETSET", PickKey(), Value()};
      case Kind::kGetDel:
        return {"GETDEL", PickKey()};
      case Kind::kSetPx:
        return {"SET", PickKey(), Value(), "PX", ExpiryMs()};
      case Kind::kSetPxAt:
        return {"SET", PickKey(), Value(), "PXAT",
                std::to_string(options_.unix_start_ms + std::stoll(ExpiryMs()))};
      case Kind::kSetKeepTtl:
        return {"SET", PickKey(), Value(), "KEEPTTL"};
      case Kind::kTtl:
        return {"TTL", PickKey()};
      case Kind::kPttl:
        return {"PTTL", PickKey()};
      case Kind::kExpire:
        return MakeExpire();
      case Kind::kPersist:
        return {"PERSIST", PickKey()};
      case Kind::kGetEx:
        return {"GETEX", PickKey(), "PX", ExpiryMs()};
      case Kind::kMGet:
        return OverKeys("MGET", false);
      case Kind::kMSet:
        return OverKeys("MSET", true);
      case Kind::kDelSeveral:
        return OverKeys("DEL", false);
      case Kind::kExistsSeveral:
        return OverKeys("EXISTS", false);
      case Kind::kSetNew:
        return {"SET", NewKey(client_, op_), Value()};
      case Kind::kFlush:
        return {rng_.Below(2) == 0 ? "FLUSHALL" : "FLUSHDB"};
    }
    CHECK(false);
  }

  const WorkloadOptions& options_;
  const uint32_t client_;
  Rng rng_;
  uint64_t weights_ = 0;
  bool new_keys_ = false;
  uint32_t op_ = 0;
  uint32_t values_ = 0;  // made for the command at hand
};

using Kind = CommandKind;

// Hot keys, cold keys, and the percentage of numbers follow the kinds.
const std::vector<Mix>& AllMixes() {
  static const auto* const mixes = new std::vector<Mix>{
      {"reads_and_writes", {{Kind::kGet, 50}, {Kind::kSet, 40}, {Kind::kDel, 10}}, 1, 4, 20},
      {"counters",
       {{Kind::kIncr, 50},
        {Kind::kGet, 30},
        {Kind::kDecr, 5},
        {Kind::kIncrBy, 10},
        {Kind::kDecrBy, 5}},
       1,
       2,
       100},
      {"conditions",
       {{Kind::kSetIfMissing, 15},
        {Kind::kSetIfPresent, 15},
        {Kind::kSetGet, 10},
        {Kind::kSetNxGet, 10},
        {Kind::kSetNx, 10},
        {Kind::kGetSet, 10},
        {Kind::kGetDel, 15},
        {Kind::kGet, 15}},
       1,
       2,
       20},
      {"append",
       {{Kind::kAppend, 50},
        {Kind::kStrLen, 10},
        {Kind::kGet, 20},
        {Kind::kGetRange, 10},
        {Kind::kSetRange, 5},
        {Kind::kDel, 5}},
       1,
       1,
       0},
      {"churn", {{Kind::kSetIfMissing, 35}, {Kind::kDel, 35}, {Kind::kGet, 30}}, 1, 0, 0},
      {"expiry",
       {{Kind::kSetPx, 35},
        {Kind::kGet, 25},
        {Kind::kPttl, 15},
        {Kind::kSetKeepTtl, 10},
        {Kind::kGetDel, 10},
        {Kind::kDel, 10},
        {Kind::kSet, 10},
        {Kind::kTtl, 5}},
       1,
       2,
       0},
      {"mixed",
       {{Kind::kGet, 20},       {Kind::kSet, 15},         {Kind::kDel, 8},
        {Kind::kIncr, 10},      {Kind::kAppend, 5},       {Kind::kSetIfMissing, 5},
        {Kind::kSetNx, 4},      {Kind::kSetIfPresent, 4}, {Kind::kSetGet, 4},
        {Kind::kGetSet, 3},     {Kind::kGetDel, 4},       {Kind::kSetPx, 5},
        {Kind::kSetKeepTtl, 2}, {Kind::kPttl, 2},         {Kind::kExists, 2},
        {Kind::kStrLen, 2},     {Kind::kGetRange, 1},     {Kind::kSetRange, 2},
        {Kind::kMGet, 2},       {Kind::kMSet, 2},         {Kind::kDelSeveral, 1},
        {Kind::kDecrBy, 1}},
       2,
       4,
       50},
      {"multi",
       {{Kind::kMSet, 30},
        {Kind::kMGet, 30},
        {Kind::kDelSeveral, 15},
        {Kind::kExistsSeveral, 10},
        {Kind::kGet, 10},
        {Kind::kSet, 5}},
       2,
       3,
       20},
      // Blind writes that read-modify-writes and deletes interrupt.
      {"registers",
       {{Kind::kSet, 45},
        {Kind::kGet, 25},
        {Kind::kIncr, 14},
        {Kind::kDel, 6},
        {Kind::kSetIfPresent, 4},
        {Kind::kGetSet, 3},
        {Kind::kAppend, 3}},
       1,
       1,
       80},
      // Keys that end again and again, by several at once.
      {"endings",
       {{Kind::kSet, 40},
        {Kind::kDel, 30},
        {Kind::kGet, 15},
        {Kind::kIncr, 10},
        {Kind::kGetDel, 5}},
       1,
       0,
       100},
      {"growth",
       {{Kind::kSetNew, 70}, {Kind::kGet, 20}, {Kind::kIncr, 5}, {Kind::kDel, 5}},
       1,
       0,
       50},
      {"expire_commands",
       {{Kind::kSet, 15},
        {Kind::kSetPx, 15},
        {Kind::kExpire, 25},
        {Kind::kPersist, 10},
        {Kind::kGetEx, 10},
        {Kind::kPttl, 10},
        {Kind::kGet, 15}},
       1,
       2,
       0},
  };
  return *mixes;
}

}  // namespace

Program MakeProgram(uint64_t seed, const WorkloadOptions& options) {
  Rng seeds(seed);
  Program program;
  for (uint32_t client = 0; client < options.clients; ++client) {
    program.push_back(ClientMaker(options, client, seeds.Next()).Make());
  }
  return program;
}

std::span<const Mix> Mixes() { return AllMixes(); }

const Mix* FindMix(std::string_view name) {
  for (const Mix& mix : AllMixes()) {
    if (mix.name == name) return &mix;
  }
  return nullptr;
}

void ApplyMix(const Mix& mix, WorkloadOptions* options) {
  options->kinds = mix.kinds;
  options->hot_keys = mix.hot_keys;
  options->cold_keys = mix.cold_keys;
  options->number_percent = mix.number_percent;
  // Where all cold keys are some client's new ones, they are to be seen often enough.
  if (mix.cold_keys == 0) options->hot_percent = mix.name == "growth" ? 30 : 100;
}

std::span<const std::string_view> SmallShapes() {
  static constexpr auto kShapes = std::to_array<std::string_view>(
      {"W WW RR R", "WW WW RR", "W W I RR R", "W W WI RW R", "WR WD RI R", "I I IR D",
       // A register by then, which is frozen or deleted under the others.
       "WW WWI RR I R", "WWWW WWW III RRR", "WWR WII ID R", "WWW WWR D D R", "WWD WD RD R",
       "WWI WWD WRR I D"});
  return kShapes;
}

Program MakeSmallProgram(std::string_view shape, std::string_view key) {
  constexpr int64_t kPerClient = 1000;
  constexpr int64_t kPerCommand = 10;  // increments do not reach the next value
  Program program(1);
  for (const char letter : shape) {
    if (letter == ' ') {
      program.emplace_back();
      continue;
    }
    const auto client = static_cast<int64_t>(program.size());
    const auto op = static_cast<int64_t>(program.back().size()) + 1;
    Command command;
    switch (letter) {
      case 'W':
        command = {"SET", "", std::to_string(client * kPerClient + op * kPerCommand)};
        break;
      case 'R':
        command = {"GET", ""};
        break;
      case 'I':
        command = {"INCR", ""};
        break;
      case 'D':
        command = {"DEL", ""};
        break;
      default:
        CHECK(false);
    }
    command[1] = key;
    program.back().push_back(std::move(command));
  }
  return program;
}

}  // namespace onetrip
