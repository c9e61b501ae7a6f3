#include "tests/explore/tree_commands.h"

#include "tests/explore/tree_worker.h"

namespace onetrip {
namespace {

constexpr std::string_view kTick = "TICK";
constexpr std::string_view kBeside = " & TICK ";

// The element of a field or member in the sequential object.
int ShiftOf(char element) { return 8 * (element - 'a'); }
uint64_t ByteOf(uint64_t value, int shift) { return value >> shift & 0xff; }

uint64_t ObjectOf(TreeKind kind, const std::vector<std::string>& parts) {
  uint64_t value = 0;
  if (kind == TreeKind::kList) {
    for (size_t i = 0; i < parts.size(); ++i) {
      value |= uint64_t{static_cast<unsigned char>(parts[i][0])} << 8 * i;
    }
    return value;
  }
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    value |= uint64_t{static_cast<unsigned char>(parts[i + 1][0])} << ShiftOf(parts[i][0]);
  }
  return value;
}

}  // namespace

bool ReadsOnly(std::string_view command) {
  return command.starts_with("HGETALL") || command.starts_with("LRANGE") ||
         command.starts_with("ZRANGE") || command == kTick;
}

std::string_view CommandIn(std::string_view command) {
  return command == kTick ? "" : command.substr(0, command.find(kBeside));
}

size_t TicksIn(std::string_view command) {
  if (command == kTick) return 1;
  const size_t beside = command.find(kBeside);
  if (beside == std::string_view::npos) return 0;
  return static_cast<size_t>(command[beside + kBeside.size()] - '0');
}

std::vector<std::string_view> MakersCommands(TreeKind kind) {
  switch (kind) {
    case TreeKind::kHash:
      return {"HSET a 1 b 1 c 1 d 1 e 1 f 1"};
    case TreeKind::kList:
      return {"RPUSH a b c d e f"};
    default:
      return {"ZADD 1 a 2 b 3 c 4 d 5 e 6 f"};
  }
}

std::vector<std::string_view> WarmCommands(TreeKind kind) {
  std::vector<std::string_view> commands = MakersCommands(kind);
  switch (kind) {
    case TreeKind::kHash:
      commands.insert(commands.end(), {"HDEL a b c d", "HSET g 1"});
      break;
    case TreeKind::kList:
      commands.insert(commands.end(), {"LTRIM 0 1", "LPUSH g"});
      break;
    default:
      commands.insert(commands.end(), {"ZREM a b c d", "ZADD 7 g"});
  }
  return commands;
}

std::string_view ReadingCommand(TreeKind kind) {
  switch (kind) {
    case TreeKind::kHash:
      return "HGETALL";
    case TreeKind::kList:
      return "LRANGE 0 -1";
    default:
      return "ZRANGE 0 -1 WITHSCORES";
  }
}

uint64_t TreeResultOf(TreeKind kind, std::string_view command, const std::string& reply) {
  const std::vector<std::string> parts = ReplyParts(reply);
  if (command == kTick) return 0;
  if (ReadsOnly(command)) return ObjectOf(kind, parts);
  if (parts.empty() || parts[0].empty()) return 0;
  const bool is_pop = command.starts_with("RPOP") || command.starts_with("LPOP");
  return is_pop ? static_cast<unsigned char>(parts[0][0]) : std::stoull(parts[0]);
}

Scope::SpecStep TreeStepOf(std::string_view command, uint64_t value) {
  const auto with = [value](int shift, char byte) {
    return (value & ~(uint64_t{0xff} << shift)) | uint64_t{static_cast<unsigned char>(byte)}
                                                      << shift;
  };
  if (command == kTick) return {value, 0};
  if (ReadsOnly(command)) return {value, value};
  if (command == "RPOP") {
    int last = 56;
    while (last > 0 && ByteOf(value, last) == 0) last -= 8;
    return {with(last, '\0'), ByteOf(value, last)};
  }
  if (command.starts_with("LPUSH ")) {
    const uint64_t pushed = value << 8 | static_cast<unsigned char>(command[6]);
    uint64_t length = 0;
    for (int shift = 0; shift < 64; shift += 8) length += ByteOf(pushed, shift) != 0 ? 1 : 0;
    return {pushed, length};
  }
  const bool is_score = command.starts_with("ZADD ");
  const char element = command[is_score ? 7 : 5];
  const int shift = ShiftOf(element);
  const uint64_t was = ByteOf(value, shift) != 0 ? 1 : 0;
  if (command[1] == 'D' || command[1] == 'R') return {with(shift, '\0'), was};
  return {with(shift, command[is_score ? 5 : 7]), 1 - was};
}

}  // namespace onetrip
