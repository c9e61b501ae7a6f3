// ReadCommandLine(): which command, with what.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/arguments.h"
#include "client_core/base/nearest_name.h"
#include "client_core/base/parameter_values.h"
#include "tool/commands.h"

namespace onetrip {
namespace {

constexpr const char* kSeeHelp = "; see onetrip help";

const ToolCommand* Find(std::string_view name) {
  for (const ToolCommand& command : ToolCommands()) {
    if (name == command.text.name) return &command;
  }
  return nullptr;
}

// The words that may follow `group` ("node"); the first words of all commands if it is empty.
std::vector<std::string> WordsAfter(const std::string& group) {
  std::vector<std::string> words;
  const std::string prefix = group.empty() ? "" : group + " ";
  for (const ToolCommand& command : ToolCommands()) {
    const std::string name = command.text.name;
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const std::string word = rest.substr(0, rest.find(' '));
    if (words.empty() || words.back() != word) words.push_back(word);
  }
  return words;
}

std::string ListOf(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

// Takes the command's name off the front of *argv. False: *error, or there is none and help is
// wanted.
bool TakeCommand(std::span<const char* const>* argv, CommandLine* line, std::string* error) {
  std::string group;
  while (true) {
    const std::vector<std::string> known = WordsAfter(group);
    if (argv->empty()) {
      *error = group.empty() ? "a command is needed: " + ListOf(known) + kSeeHelp
                             : group + " needs one of " + ListOf(known) + kSeeHelp;
      return false;
    }
    const std::string word = argv->front();
    line->help = word == "--help" || word == "-h";
    line->version = group.empty() && (word == "--version" || word == "-v");
    line->topic = group;
    if (line->help || line->version) return true;
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      const std::string nearest = NearestName(word, known);
      const std::string before = group.empty() ? "" : group + " ";
      *error = "unknown command '" + before;
      error->append(word).append("'");
      if (nearest.empty()) {
        *error += kSeeHelp;
        return false;
      }
      error->append("; did you mean ").append(before).append(nearest).append("?");
      return false;
    }
    *argv = argv->subspan(1);
    group += (group.empty() ? "" : " ") + word;
    line->command = Find(group);
    if (line->command != nullptr) return true;
  }
}

bool SetFlags(const ToolCommand& command, const Arguments& arguments, ToolOptions* options,
              std::string* error) {
  for (const ToolFlag& flag : command.flags) {
    const auto given = arguments.flags.find(flag.row.name);
    if (given == arguments.flags.end()) continue;
    std::string why;
    if (!CheckParameter(flag.row, given->second, &why)) {
      *error = std::string("--") + flag.row.name + " " + why;
      return false;
    }
    flag.set(*options, given->second);
  }
  if (arguments.flags.contains("dir") && arguments.flags.contains("master")) {
    *error = "--dir and --master each name a cluster; give one of them";
    return false;
  }
  return true;
}

bool SetWords(const ToolCommand& command, const std::vector<std::string>& words,
              ToolOptions* options, std::string* error) {
  const size_t most = command.set_word == nullptr ? 0 : 1;
  if (words.size() > most) {
    *error = "unknown argument '" + words[most] + "'" + kSeeHelp + " " + command.text.name;
    return false;
  }
  if (words.empty() && command.needs_word) {
    *error = std::string(command.text.words) + " is missing" + kSeeHelp + " " + command.text.name;
    return false;
  }
  if (!words.empty()) command.set_word(*options, words.front());
  return true;
}

}  // namespace

bool ReadCommandLine(std::span<const char* const> argv, CommandLine* line, std::string* error) {
  if (!TakeCommand(&argv, line, error)) return false;
  if (line->help || line->version) return true;
  const ToolCommand& command = *line->command;
  if (command.hands_on) {
    line->options.rest.assign(argv.begin(), argv.end());
    line->help = !argv.empty() &&
                 (std::string_view(argv[0]) == "--help" || std::string_view(argv[0]) == "-h");
    return true;
  }
  if (const char* password = std::getenv("ONETRIP_PASSWORD")) {
    line->options.status.password = password;
    line->options.check.password = password;
  }
  Arguments arguments;
  if (!ReadArguments(command.text.parameters, argv, &arguments, error)) return false;
  line->help = arguments.help;
  if (line->help) return true;
  return SetFlags(command, arguments, &line->options, error) &&
         SetWords(command, arguments.words, &line->options, error);
}

}  // namespace onetrip
