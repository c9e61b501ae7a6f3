// Arguments: a command line taken apart by the rows of a table, and what is wrong with it.
//
// Flags are "--name VALUE" or "--name=VALUE"; everything behind "--" is a word. Values are not
// checked here: the row's type is the caller's business. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_ARGUMENTS_H_
#define ONETRIP_CLIENT_CORE_BASE_ARGUMENTS_H_

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/parameter_table.h"

namespace onetrip {

struct Arguments {
  std::map<std::string, std::string, std::less<>> flags;  // By name; a switch's value is "yes".
  std::vector<std::string> words;                         // The arguments that are no flags.
  bool help = false;                                      // --help or -h
  bool version = false;                                   // --version or -v
};

// The rows that a program takes, in the order of the table.
std::vector<const ParameterRow*> ParametersOf(ParameterUser user);

// Reads `argv`, which begins behind the program's name. False: *error says in one line which
// argument is wrong, and names the known flag that is nearest to an unknown one.
bool ReadArguments(std::span<const ParameterRow* const> known, std::span<const char* const> argv,
                   Arguments* arguments, std::string* error);

// True if each of `arguments` that begins with "--" is a flag of `known`; else false and *error as
// ReadArguments() says it. For programs that read a part of their flags by other means.
bool KnowsFlags(std::span<const ParameterRow* const> known, std::span<const std::string> arguments,
                std::string* error);

// The end of a message about an unknown name: which programs have it, or "; did you mean NEAREST?",
// or `otherwise`. The known names come with `prefix`, in front of which `name` does not.
std::string UnknownHint(std::span<const ParameterRow* const> known, std::string_view name,
                        std::string_view prefix, std::string_view otherwise);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_ARGUMENTS_H_
