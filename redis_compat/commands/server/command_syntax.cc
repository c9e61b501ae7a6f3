#include "redis_compat/commands/server/command_syntax.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "client_core/base/check.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

constexpr std::string_view kEllipsis = "...";

bool IsToken(std::string_view word) {
  return word.front() >= 'A' && word.front() <= 'Z' &&
         std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Several arguments as one.
Argument Join(Argument::Kind kind, std::vector<Argument> parts) {
  Argument joined;
  joined.kind = kind;
  for (const Argument& part : parts) {
    joined.name += (joined.name.empty() ? "" : "_") + part.name;
  }
  joined.parts = std::move(parts);
  return joined;
}

Argument AsOne(std::vector<Argument> sequence) {
  CHECK(!sequence.empty());
  return sequence.size() == 1 ? std::move(sequence.front())
                              : Join(Argument::Kind::kBlock, std::move(sequence));
}

// A recursive descent over the words and brackets of one line.
class SyntaxReader {
 public:
  explicit SyntaxReader(std::string_view line) : rest_(line) {}

  // Everything up to the end, a bar or a closing bracket.
  std::vector<Argument> ReadSequence() {
    std::vector<Argument> sequence;
    while (true) {
      SkipBlanks();
      if (rest_.empty() || rest_.front() == '|' || rest_.front() == ']' || rest_.front() == '>') {
        return sequence;
      }
      if (rest_.front() == '[') {
        ReadOptional(&sequence);
      } else if (rest_.front() == '<') {
        sequence.push_back(ReadAlternatives('>'));
      } else {
        sequence.push_back(ReadWord());
      }
    }
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view TakeWord() {
    const size_t end = std::min(rest_.find_first_of(" ]>|"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  // True if a value or a choice follows a token directly, so that the two belong together.
  bool ValueFollows() {
    SkipBlanks();
    if (rest_.empty()) return false;
    const char next = rest_.front();
    return next == '<' || (next >= 'a' && next <= 'z');
  }

  Argument ReadWord() {
    const std::string_view word = TakeWord();
    CHECK(!word.empty());
    Argument argument;
    if (!IsToken(word)) {
      argument.name = word;
      return argument;
    }
    if (ValueFollows()) {
      argument = rest_.front() == '<' ? ReadAlternatives('>') : ReadWord();
    } else {
      argument.kind = Argument::Kind::kToken;
      argument.name = ToLowerAscii(word);
    }
    argument.token = word;
    return argument;
  }

  // From an opening bracket to its closing one.
  Argument ReadAlternatives(char close) {
    rest_.remove_prefix(1);
    std::vector<Argument> alternatives;
    do {
      alternatives.push_back(AsOne(ReadSequence()));
    } while (TakeIf('|'));
    CHECK(TakeIf(close));
    return alternatives.size() == 1 ? std::move(alternatives.front())
                                    : Join(Argument::Kind::kOneOf, std::move(alternatives));
  }

  bool TakeIf(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // "[a b ...]" repeats what stands before it or, if that is something else, may come any number
  // of times itself. Every other bracket may be left out.
  void ReadOptional(std::vector<Argument>* sequence) {
    const size_t ellipsis = rest_.find(kEllipsis);
    const size_t inner_end = rest_.find_first_of("[]<|", 1);
    if (ellipsis == std::string_view::npos || ellipsis > inner_end) {
      Argument argument = ReadAlternatives(']');
      argument.optional = true;
      sequence->push_back(std::move(argument));
      return;
    }
    std::vector<std::string_view> repeated;
    rest_.remove_prefix(1);
    for (SkipBlanks(); rest_.substr(0, kEllipsis.size()) != kEllipsis; SkipBlanks()) {
      repeated.push_back(TakeWord());
    }
    rest_.remove_prefix(kEllipsis.size());
    CHECK(TakeIf(']'));
    Repeat(repeated, sequence);
  }

  static void Repeat(const std::vector<std::string_view>& names, std::vector<Argument>* sequence) {
    const size_t count = names.size();
    const bool repeats_last =
        sequence->size() >= count &&
        std::equal(names.begin(), names.end(), sequence->end() - static_cast<ptrdiff_t>(count),
                   [](std::string_view name, const Argument& last) { return last.name == name; });
    std::vector<Argument> parts;
    if (repeats_last) {
      const auto first = sequence->end() - static_cast<ptrdiff_t>(count);
      parts.assign(std::make_move_iterator(first), std::make_move_iterator(sequence->end()));
      sequence->erase(first, sequence->end());
    } else {
      for (const std::string_view name : names) {
        parts.emplace_back().name = name;
      }
    }
    Argument argument = AsOne(std::move(parts));
    argument.multiple = true;
    argument.optional = !repeats_last;
    sequence->push_back(std::move(argument));
  }

  std::string_view rest_;
};

}  // namespace

std::vector<Argument> ParseSyntax(std::string_view syntax) {
  SyntaxReader reader(syntax);
  std::vector<Argument> arguments = reader.ReadSequence();
  CHECK(reader.at_end());
  return arguments;
}

std::string_view ValueTypeOf(std::string_view value_name) {
  constexpr std::array<std::string_view, 10> kIntegers = {
      "seconds", "milliseconds", "increment", "decrement", "index",
      "offset",  "start",        "end",       "client-id", "protover"};
  if (value_name == "key" || value_name == "pattern") {
    return value_name;
  }
  if (value_name.substr(0, 9) == "unix-time") {
    return "unix-time";
  }
  if (value_name == "float-increment") {
    return "double";
  }
  const bool integer = std::find(kIntegers.begin(), kIntegers.end(), value_name) != kIntegers.end();
  return integer ? "integer" : "string";
}

}  // namespace onetrip
