// The syntax line of a command, taken apart: what COMMAND DOCS calls its arguments.
//
// A syntax line is written for people and read here, so that no row says the same twice:
//   key              a value
//   EX seconds       a word to be typed, and the value behind it
//   [a]              may be left out
//   <a | b>, [a | b] one of them
//   key [key ...]    any number of them
// Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_COMMAND_SYNTAX_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_COMMAND_SYNTAX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetrip {

struct Argument {
  enum class Kind : uint8_t {
    kValue,  // Something the caller makes up.
    kToken,  // A word to be typed as it stands.
    kBlock,  // All of `parts`, in order.
    kOneOf,  // One of `parts`.
  };

  Kind kind = Kind::kValue;
  std::string name;   // Lower case; made from the parts where the syntax gives none.
  std::string token;  // The word in front of a value, or the token itself; upper case.
  bool optional = false;
  bool multiple = false;
  std::vector<Argument> parts;

  friend bool operator==(const Argument&, const Argument&) = default;
};

// The arguments of a syntax line, in order. REQUIRES: balanced brackets (the table's test checks
// every row).
std::vector<Argument> ParseSyntax(std::string_view syntax);

// Redis's name for the type of a value, judged by its name: "key", "integer", "unix-time",
// "pattern", "double" or "string".
std::string_view ValueTypeOf(std::string_view value_name);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_COMMAND_SYNTAX_H_
