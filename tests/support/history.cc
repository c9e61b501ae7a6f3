#include "tests/support/history.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "client_core/base/check.h"
#include "tests/support/collection_model.h"

namespace onetrip {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
// The most bytes of an argument or a reply that a timeline shows.
constexpr size_t kShownBytesMax = 48;

// Returns true if a write changes its keys one after the other, and there are several.
bool WritesSeveralKeys(const Command& argv) {
  const std::string name = CommandName(argv);
  return (name == "mset" && argv.size() > 3) ||
         ((name == "del" || name == "unlink") && argv.size() > 2);
}

// Takes the line that starts at `*text`; false if there is no line end.
bool TakeLine(std::string_view* text, std::string_view* line) {
  const size_t end = text->find(kLineEnd);
  if (end == std::string_view::npos) return false;
  *line = text->substr(0, end);
  text->remove_prefix(end + kLineEnd.size());
  return true;
}

// The number behind the type byte of a line.
bool ReadCount(std::string_view line, int64_t* count) {
  const char* const end = line.data() + line.size();
  const auto [read, error] = std::from_chars(line.data() + 1, end, *count);
  return error == std::errc() && read == end;
}

// Takes one RESP2 element that is no array.
bool TakeElement(std::string_view* text, std::string* element) {
  const std::string_view whole = *text;
  std::string_view line;
  if (!TakeLine(text, &line) || line.empty() || line[0] == '*') return false;
  int64_t bytes = -1;
  if (line[0] == '$' && !ReadCount(line, &bytes)) return false;
  if (bytes >= 0) {
    const auto size = static_cast<uint64_t>(bytes);
    if (text->size() < size + kLineEnd.size() || text->substr(size, kLineEnd.size()) != kLineEnd) {
      return false;
    }
    text->remove_prefix(size + kLineEnd.size());
  }
  *element = whole.substr(0, whole.size() - text->size());
  return true;
}

std::string DescribeReply(std::string_view reply) {
  if (reply.empty()) return "no reply";
  std::vector<std::string> elements;
  if (SplitArray(reply, &elements)) {
    std::string text = "[";
    for (const std::string& element : elements) {
      text += (text.size() > 1 ? ", " : "") + DescribeReply(element);
    }
    return text + "]";
  }
  std::string_view rest = reply;
  std::string element;
  if (!TakeElement(&rest, &element) || !rest.empty()) return "malformed " + Quote(reply, 64);
  std::string_view line;
  rest = reply;
  TakeLine(&rest, &line);
  switch (line[0]) {
    case '$':
      return reply == kRespNil ? "(nil)" : Quote(rest.substr(0, rest.size() - 2), kShownBytesMax);
    case '-':
      return "(error) " + std::string(line.substr(1));
    case ':':
    case '+':
      return std::string(line.substr(1));
    default:
      return "malformed " + Quote(reply, 64);
  }
}

std::string Microseconds(uint64_t ns) {
  char text[48];
  std::snprintf(text, sizeof(text), "%.3f", static_cast<double>(ns) / 1000);
  return text;
}

}  // namespace

Ending ClassifyReply(const Command& argv, std::string_view reply) {
  if (reply.empty()) return Ending::kUnknown;
  if (reply[0] != '-') return Ending::kAnswered;
  const auto starts_with_one_of = [reply](const auto& texts) {
    return std::any_of(texts.begin(), texts.end(), [reply](std::string_view text) {
      return reply.substr(1).starts_with(text);
    });
  };
  // As redis_compat/protocol/reply_status.cc words them.
  static constexpr auto kFaults = std::to_array<std::string_view>(
      {"ERR The stored data of this key is damaged", "ERR internal error"});
  static constexpr auto kRefusals =
      std::to_array<std::string_view>({"TRYAGAIN ", "ERR The agent has lost its lease"});
  static constexpr auto kLimits = std::to_array<std::string_view>(
      {"OOM ", "ERR string exceeds maximum allowed size", "ERR key exceeds maximum allowed size"});
  if (starts_with_one_of(kFaults)) return Ending::kFault;
  if (starts_with_one_of(kRefusals)) return Ending::kNotApplied;
  if (starts_with_one_of(kLimits)) {
    return WritesSeveralKeys(argv) ? Ending::kUnknown : Ending::kNotApplied;
  }
  return reply.starts_with("-UNKNOWN ") ? Ending::kUnknown : Ending::kAnswered;
}

std::string CommandName(const Command& argv) {
  std::string name = argv[0];
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

bool IsReadOnly(const Command& argv) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"get", "mget", "exists", "strlen", "getrange", "ttl", "pttl", "type"});
  const std::string name = CommandName(argv);
  return CollectionCommandReads(name) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

size_t History::Start(uint32_t client, Command argv, uint64_t now_ns, uint32_t database) {
  CHECK(!argv.empty());
  HistoryOp& op = ops_.emplace_back();
  op.argv = std::move(argv);
  op.client = client;
  op.database = database;
  op.start = position_++;
  op.start_ns = now_ns;
  return ops_.size() - 1;
}

void History::Finish(size_t index, std::string reply, uint64_t now_ns) {
  HistoryOp& op = ops_[index];
  CHECK(op.end == HistoryOp::kNever);
  op.ending = ClassifyReply(op.argv, reply);
  op.reply = ReplyInOrder(op.argv, std::move(reply));
  op.end = position_++;
  op.end_ns = now_ns;
}

void History::Clear() {
  ops_.clear();
  position_ = 0;
}

std::string DescribeOp(const HistoryOp& op) {
  char head[64];
  std::snprintf(head, sizeof(head), "client %-2u [%5llu, ", op.client,
                static_cast<unsigned long long>(op.start));
  std::string text = head;
  if (op.end == HistoryOp::kNever) {
    text += "    ?]";
  } else {
    std::snprintf(head, sizeof(head), "%5llu]", static_cast<unsigned long long>(op.end));
    text += head;
  }
  text += " us " + Microseconds(op.start_ns) + "..";
  text += op.end_ns == HistoryOp::kNever ? "?" : Microseconds(op.end_ns);
  text += op.database == 0 ? " " : " (database 1) ";
  for (const std::string& argument : op.argv) {
    const bool plain = !argument.empty() && argument.size() <= kShownBytesMax &&
                       std::all_of(argument.begin(), argument.end(), [](char c) {
                         return c > ' ' && c < 127 && c != '"' && c != '\\';
                       });
    text += " " + (plain ? argument : Quote(argument, kShownBytesMax));
  }
  // One key's part of a count over several keys may be anything.
  const bool any = op.reply.empty() && op.ending == Ending::kAnswered;
  text += " -> " + (any ? "?" : DescribeReply(op.reply));
  switch (op.ending) {
    case Ending::kAnswered:
      break;
    case Ending::kUnknown:
      text += "  [outcome unknown]";
      break;
    case Ending::kNotApplied:
      text += "  [not applied]";
      break;
    case Ending::kFault:
      text += "  [FAULT]";
      break;
  }
  return text;
}

std::string DescribeHistory(const std::vector<HistoryOp>& ops) {
  std::vector<const HistoryOp*> sorted;
  sorted.reserve(ops.size());
  for (const HistoryOp& op : ops) sorted.push_back(&op);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const HistoryOp* a, const HistoryOp* b) { return a->start < b->start; });
  std::string text;
  for (const HistoryOp* op : sorted) text += DescribeOp(*op) + "\n";
  return text;
}

std::string Quote(std::string_view bytes, size_t bytes_max) {
  std::string text = "\"";
  for (const char c : bytes.substr(0, bytes_max)) {
    switch (c) {
      case '"':
      case '\\':
        text += '\\';
        text += c;
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      default:
        if (c >= ' ' && c < 127) {
          text += c;
        } else {
          char escaped[8];
          std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(c));
          text += escaped;
        }
    }
  }
  text += '"';
  if (bytes.size() > bytes_max) text += "...(" + std::to_string(bytes.size()) + " bytes)";
  return text;
}

std::string RespInteger(int64_t value) { return ":" + std::to_string(value) + "\r\n"; }

std::string RespBulk(std::string_view value) {
  std::string reply = "$" + std::to_string(value.size()) + "\r\n";
  reply.append(value);
  return reply + "\r\n";
}

std::string RespError(std::string_view message) { return "-" + std::string(message) + "\r\n"; }

std::string RespArray(const std::vector<std::string>& elements) {
  std::string reply = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) reply += element;
  return reply;
}

bool SplitArray(std::string_view reply, std::vector<std::string>* elements) {
  elements->clear();
  std::string_view line;
  int64_t count = 0;
  if (!TakeLine(&reply, &line) || line.empty() || line[0] != '*' || !ReadCount(line, &count)) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::string element;
    if (!TakeElement(&reply, &element)) return false;
    elements->push_back(std::move(element));
  }
  return reply.empty();
}

}  // namespace onetrip
