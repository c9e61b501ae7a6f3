#include "client_core/base/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/version.h"

namespace onetrip {
namespace {

struct Program {
  OptionUser user;
  const char* name;
  const char* summary;
  const char* example;  // Of a config file's line.
  const char* example_variable;
};

constexpr Program kAgent = {
    kUserAgent, "onetrip-agent",
    "Serves the Redis protocol; every command becomes one-sided operations on replicated memory\n"
    "nodes: those of the cluster of --master, or without it three that this program embeds.",
    "port = 6379", "ONETRIP_PORT=6379"};
constexpr Program kMemnode = {
    kUserMemnode, "onetrip-memnode",
    "Holds memory for the cluster of --master: agents read and write it by one-sided operations,\n"
    "over shared memory on this host and over tcp.",
    "memory = \"2GiB\"", "ONETRIP_MEMORY=2GiB"};
constexpr Program kMaster = {
    kUserMaster, "onetrip-master",
    "Says who is a member of the cluster and where its data lies. Never on the data path.",
    "lease-ms = 2000", "ONETRIP_LEASE_MS=2000"};

using OptionTexts = std::map<std::string, std::string>;

std::string EnvironmentName(const OptionRow& row) {
  std::string name = "ONETRIP_";
  for (const char* c = row.name; *c != '\0'; ++c) {
    name += *c == '-' ? '_' : (*c >= 'a' && *c <= 'z') ? static_cast<char>(*c - 'a' + 'A') : *c;
  }
  return name;
}

// Two lines a flag, so that nothing depends on the width of the terminal.
std::string HelpText(const Program& program) {
  std::string text = std::string("Usage: ") + program.name + " [--OPTION VALUE]...\n\n" +
                     program.summary + "\n\nEvery option may also stand in the config file (" +
                     program.example + ") or in the environment\n(" + program.example_variable +
                     "). Flags win over the environment, which wins over the file.\n\nOptions:\n";
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & program.user) == 0) continue;
    text += std::string("  --") + row.name;
    if (*row.choices != '\0') {
      text += std::string(" ") + row.choices;
    } else if (*row.unit != '\0') {
      text += std::string(" <") + row.unit + ">";
    } else {
      text += row.type == OptionType::kInteger ? " <number>" : " <text>";
    }
    if (row.is_required) text += "  (required)";
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
    const OptionRow* row = item.parents.empty() ? FindOption(user, item.name) : nullptr;
    if (row == nullptr || row == FindOption(user, "config")) {
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
ParseAction ReadFlags(const Program& program, int argc, const char* const* argv, OptionTexts* flags,
                      std::string* message) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  OptionTexts found;
  bool help = false;
  bool version = false;
  app.add_flag("--help,-h", help);
  app.add_flag("--version,-v", version);
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & program.user) != 0)
      app.add_option(std::string("--") + row.name, found[row.name]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *message = std::string(program.name) + ": " + error.what() + "; see --help";
    return ParseAction::kFail;
  }
  if (help || version) {
    *message = help ? HelpText(program) : std::string(program.name) + " " + ONETRIP_VERSION + "\n";
    return ParseAction::kPrint;
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    *message =
        std::string(program.name) + ": unknown argument '" + extras.front() + "'; see --help";
    return ParseAction::kFail;
  }
  for (const auto& [name, text] : found) {
    if (app.count("--" + name) > 0) flags->emplace(name, text);
  }
  return ParseAction::kRun;
}

OptionTexts ReadEnvironment(const Program& program) {
  OptionTexts environment;
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & program.user) == 0) continue;
    const char* text = std::getenv(EnvironmentName(row).c_str());
    if (text != nullptr) environment.emplace(row.name, text);
  }
  return environment;
}

template <typename Options>
Options Defaults(const Program& program) {
  Options options;
  std::string error;
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & program.user) == 0) continue;
    CHECK(SetOption(row, row.default_text, &options, &error));
  }
  return options;
}

template <typename Options>
ParseAction Parse(const Program& program, int argc, const char* const* argv, Options* options,
                  std::string* message) {
  OptionTexts flags;
  const ParseAction action = ReadFlags(program, argc, argv, &flags, message);
  if (action != ParseAction::kRun) return action;

  OptionTexts environment = ReadEnvironment(program);
  std::string config_path;
  if (environment.contains("config")) config_path = environment["config"];
  if (flags.contains("config")) config_path = flags["config"];
  OptionTexts file;
  if (!config_path.empty() && !ReadConfigFile(config_path, program.user, &file, message)) {
    *message = std::string(program.name) + ": " + *message;
    return ParseAction::kFail;
  }

  *options = Defaults<Options>(program);
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & program.user) == 0) continue;
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
        *message = std::string(program.name) + ": " + source.label + " " + error;
        return ParseAction::kFail;
      }
    }
    if (row.is_required && OptionText(row, *options).empty()) {
      *message = std::string(program.name) + ": --" + row.name +
                 " must be given, as a flag, in the environment (" + EnvironmentName(row) +
                 ") or in the config file";
      return ParseAction::kFail;
    }
  }
  return ParseAction::kRun;
}

}  // namespace

AgentOptions DefaultAgentOptions() { return Defaults<AgentOptions>(kAgent); }
MemnodeOptions DefaultMemnodeOptions() { return Defaults<MemnodeOptions>(kMemnode); }
MasterOptions DefaultMasterOptions() { return Defaults<MasterOptions>(kMaster); }

ParseAction ParseAgentOptions(int argc, const char* const* argv, AgentOptions* options,
                              std::string* message) {
  return Parse(kAgent, argc, argv, options, message);
}
ParseAction ParseMemnodeOptions(int argc, const char* const* argv, MemnodeOptions* options,
                                std::string* message) {
  return Parse(kMemnode, argc, argv, options, message);
}
ParseAction ParseMasterOptions(int argc, const char* const* argv, MasterOptions* options,
                               std::string* message) {
  return Parse(kMaster, argc, argv, options, message);
}

}  // namespace onetrip
