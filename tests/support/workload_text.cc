// Programs as text, for people and for the command that replays a run.
#include <algorithm>
#include <charconv>

#include "tests/support/workload.h"

namespace onetrip {
namespace {

// Values repeat their writer's name: a text that says so stays readable.
constexpr size_t kUnitMax = 24;
constexpr size_t kRepeatsMin = 4;
// The most that a text may ask for.
constexpr size_t kBytesMax = 64U << 20;

// The unit that `bytes` repeats to its end, the last time perhaps in part; empty if none.
std::string_view UnitOf(std::string_view bytes) {
  for (size_t size = 1; size <= kUnitMax && size * kRepeatsMin <= bytes.size(); ++size) {
    if (bytes.substr(size) == bytes.substr(0, bytes.size() - size)) return bytes.substr(0, size);
  }
  return {};
}

bool IsPlain(std::string_view word) {
  return !word.empty() && word.size() < kUnitMax &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; });
}

// The unit ends at a brace: one inside of it is written as a number.
std::string QuoteUnit(std::string_view unit) {
  std::string text;
  for (const char c : unit) {
    const std::string quoted = Quote(std::string_view(&c, 1));
    text += c == '}' ? "\\x7d" : quoted.substr(1, quoted.size() - 2);
  }
  return text;
}

std::string WordToText(std::string_view word) {
  if (IsPlain(word)) return std::string(word);
  const std::string_view unit = UnitOf(word);
  if (unit.empty()) return Quote(word);
  return "\"\\{" + std::to_string(word.size()) + "*" + QuoteUnit(unit) + "}\"";
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads one line of a program.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  void SkipBlanks() {
    while (!rest_.empty() && IsBlank(rest_[0])) rest_.remove_prefix(1);
  }
  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }
  [[nodiscard]] bool AtComment() const { return !rest_.empty() && rest_[0] == '#'; }

  // A number and `behind`.
  bool ReadNumber(char behind, size_t* number) {
    const char* const end = rest_.data() + rest_.size();
    const auto [read, error] = std::from_chars(rest_.data(), end, *number);
    if (error != std::errc() || read == end || *read != behind) return false;
    rest_.remove_prefix(static_cast<size_t>(read - rest_.data()) + 1);
    return true;
  }

  bool ReadWord(std::string* word) {
    word->clear();
    if (rest_[0] == '"') {
      rest_.remove_prefix(1);
      return ReadUntil('"', word) && (rest_.empty() || IsBlank(rest_[0]));
    }
    while (!rest_.empty() && !IsBlank(rest_[0])) {
      word->push_back(rest_[0]);
      rest_.remove_prefix(1);
    }
    return IsPlainEnough(*word);
  }

 private:
  static bool IsPlainEnough(std::string_view word) {
    return word.find_first_of("\"\\") == std::string_view::npos;
  }

  bool ReadUntil(char closing, std::string* word) {
    while (!rest_.empty()) {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == closing) return true;
      if (c != '\\') {
        word->push_back(c);
      } else if (!ReadEscape(word)) {
        return false;
      }
    }
    return false;
  }

  bool ReadEscape(std::string* word) {
    if (rest_.empty()) return false;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    switch (c) {
      case '"':
      case '\\':
        word->push_back(c);
        return true;
      case 'n':
        word->push_back('\n');
        return true;
      case 'r':
        word->push_back('\r');
        return true;
      case 't':
        word->push_back('\t');
        return true;
      case 'x':
        return ReadByte(word);
      case '{':
        return ReadRepeated(word);
      default:
        return false;
    }
  }

  bool ReadByte(std::string* word) {
    unsigned value = 0;
    const auto [read, error] =
        std::from_chars(rest_.data(), rest_.data() + std::min<size_t>(2, rest_.size()), value, 16);
    if (error != std::errc() || read != rest_.data() + 2) return false;
    word->push_back(static_cast<char>(value));
    rest_.remove_prefix(2);
    return true;
  }

  bool ReadRepeated(std::string* word) {
    size_t bytes = 0;
    std::string unit;
    if (!ReadNumber('*', &bytes) || bytes > kBytesMax || !ReadUntil('}', &unit) || unit.empty()) {
      return false;
    }
    const size_t end = word->size() + bytes;
    while (word->size() < end) word->append(unit);
    word->resize(end);
    return true;
  }

  std::string_view rest_;
};

bool ReadLine(std::string_view line, Program* program) {
  constexpr size_t kClientsMax = 100'000;
  LineReader reader(line);
  reader.SkipBlanks();
  if (reader.AtEnd() || reader.AtComment()) return true;
  size_t client = 0;
  if (!reader.ReadNumber(':', &client) || client >= kClientsMax) return false;
  if (program->size() <= client) program->resize(client + 1);
  Command command;
  for (reader.SkipBlanks(); !reader.AtEnd(); reader.SkipBlanks()) {
    std::string word;
    if (!reader.ReadWord(&word)) return false;
    command.push_back(std::move(word));
  }
  if (command.empty()) return false;
  (*program)[client].push_back(std::move(command));
  return true;
}

}  // namespace

std::string ProgramToText(const Program& program) {
  std::string text;
  for (size_t client = 0; client < program.size(); ++client) {
    for (const Command& command : program[client]) {
      text += std::to_string(client) + ":";
      for (const std::string& word : command) text += " " + WordToText(word);
      text += "\n";
    }
  }
  return text;
}

bool ProgramFromText(std::string_view text, Program* program, std::string* error) {
  program->clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!ReadLine(line, program)) {
      *error = line;
      return false;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

}  // namespace onetrip
