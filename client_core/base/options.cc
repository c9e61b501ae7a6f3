#include "client_core/base/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/option_table.h"
#include "client_core/base/version.h"

namespace onetrip {
namespace {

constexpr const char* kAgentName = "onetrip-agent";
constexpr const char* kAgentSummary =
    "Serves the Redis protocol; every command becomes one-sided operations on three replicated\n"
    "memory nodes, which this program embeds.";

using OptionTexts = std::map<std::string, std::string>;

std::string EnvironmentName(const OptionRow& row) {
  std::string name = "ONETRIP_";
  for (const char* c = row.name; *c != '\0'; ++c) {
    name += *c == '-' ? '_' : (*c >= 'a' && *c <= 'z') ? static_cast<char>(*c - 'a' + 'A') : *c;
  }
  return name;
}

// Two lines a flag, so that nothing depends on the width of the terminal.
std::string HelpText(const char* program, const char* summary, OptionUser user) {
  std::string text = std::string("Usage: ") + program + " [--OPTION VALUE]...\n\n" + summary +
                     "\n\nEvery option may also stand in the config file (port = 6379) or in the "
                     "environment\n(ONETRIP_PORT=6379). Flags win over the environment, which wins "
                     "over the file.\n\nOptions:\n";
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & user) == 0) continue;
    text += std::string("  --") + row.name;
    if (*row.choices != '\0') {
      text += std::string(" ") + row.choices;
    } else if (*row.unit != '\0') {
      text += std::string(" <") + row.unit + ">";
    } else {
      text += row.type == OptionType::kInteger ? " <number>" : " <text>";
    }
    if (*row.default_text != '\0') text += std::string("  (default ") + row.default_text + ")";
    text += std::string("\n      ") + row.help + ".\n";
  }
  text += "  --help\n      Print this and exit.\n  --version\n      Print the version and exit.\n";
  return text;
}

// The texts of a config file by option name; false and *message when it cannot be used.
bool ReadConfigFile(const std::string& path, OptionUser user, OptionTexts* texts,
                    std::string* message) {
  std::vector<CLI::ConfigItem> items;
  std::error_code ignored;
  bool readable = !std::filesystem::is_directory(path, ignored);  // Would read as an empty file.
  try {
    if (readable) items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error&) {
    readable = false;
  }
  if (!readable) {
    *message = "cannot read config file " + path + "; give --config a readable TOML file";
    return false;
  }
  for (const CLI::ConfigItem& item : items) {
    const OptionRow* row = item.parents.empty() ? FindOption(item.name) : nullptr;
    if (row == nullptr || (row->users & user) == 0 || row == FindOption("config")) {
      *message = path + ": unknown key '" + item.fullname() + "'; --help lists the known ones";
      return false;
    }
    if (item.inputs.size() != 1) {
      *message = path + ": " + item.name + " needs exactly one value";
      return false;
    }
    if (!texts->emplace(item.name, item.inputs.front()).second) {
      *message = path + ": " + item.name + " is given twice; keep one";
      return false;
    }
  }
  return true;
}

// Reads argv into *flags by option name. kRun means: go on.
ParseAction ReadFlags(const char* program, const char* summary, OptionUser user, int argc,
                      const char* const* argv, OptionTexts* flags, std::string* message) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  OptionTexts found;
  bool help = false;
  bool version = false;
  app.add_flag("--help,-h", help);
  app.add_flag("--version,-v", version);
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & user) != 0) app.add_option(std::string("--") + row.name, found[row.name]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *message = std::string(program) + ": " + error.what() + "; see --help";
    return ParseAction::kFail;
  }
  if (help || version) {
    *message = help ? HelpText(program, summary, user)
                    : std::string(program) + " " + ONETRIP_VERSION + "\n";
    return ParseAction::kPrint;
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    *message = std::string(program) + ": unknown argument '" + extras.front() + "'; see --help";
    return ParseAction::kFail;
  }
  for (const auto& [name, text] : found) {
    if (app.count("--" + name) > 0) flags->emplace(name, text);
  }
  return ParseAction::kRun;
}

}  // namespace

AgentOptions DefaultAgentOptions() {
  AgentOptions options;
  std::string error;
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & kUserAgent) != 0) CHECK(SetOption(row, row.default_text, &options, &error));
  }
  return options;
}

ParseAction ParseAgentOptions(int argc, const char* const* argv, AgentOptions* options,
                              std::string* message) {
  OptionTexts flags;
  const ParseAction action =
      ReadFlags(kAgentName, kAgentSummary, kUserAgent, argc, argv, &flags, message);
  if (action != ParseAction::kRun) return action;

  OptionTexts environment;
  for (const OptionRow& row : OptionTable()) {
    const char* text = std::getenv(EnvironmentName(row).c_str());
    if (text != nullptr) environment.emplace(row.name, text);
  }

  std::string config_path;
  if (environment.contains("config")) config_path = environment["config"];
  if (flags.contains("config")) config_path = flags["config"];
  OptionTexts file;
  if (!config_path.empty() && !ReadConfigFile(config_path, kUserAgent, &file, message)) {
    *message = std::string(kAgentName) + ": " + *message;
    return ParseAction::kFail;
  }

  *options = DefaultAgentOptions();
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & kUserAgent) == 0) continue;
    struct Source {
      const OptionTexts& texts;
      std::string label;
    };
    const Source sources[] = {{file, config_path + ": " + row.name},
                              {environment, EnvironmentName(row)},
                              {flags, std::string("--") + row.name}};
    for (const Source& source : sources) {
      const auto text = source.texts.find(row.name);
      if (text == source.texts.end()) continue;
      std::string error;
      if (!SetOption(row, text->second, options, &error)) {
        *message = std::string(kAgentName) + ": " + source.label + " " + error;
        return ParseAction::kFail;
      }
    }
  }
  return ParseAction::kRun;
}

}  // namespace onetrip
