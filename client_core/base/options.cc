#include "client_core/base/options.h"

#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "client_core/base/arguments.h"
#include "client_core/base/check.h"
#include "client_core/base/config_file.h"
#include "client_core/base/environment.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"
#include "client_core/base/program_text.h"
#include "client_core/base/version.h"

namespace onetrip {
namespace {

using Rows = std::vector<const ParameterRow*>;

// A value and where it stands, as messages name that: "--port", "ONETRIP_PORT", "a.toml:3: port".
struct SourceText {
  std::string label;
  std::string text;
};
using SourceTexts = std::map<std::string, SourceText, std::less<>>;

const ParameterRow* Find(const Rows& rows, std::string_view name) {
  for (const ParameterRow* row : rows) {
    if (name == row->name) return row;
  }
  return nullptr;
}

// Puts the file's texts into *texts, where those of flags and environment stay.
bool AddFile(const std::string& path, const Rows& rows, SourceTexts* texts, std::string* error) {
  std::vector<ConfigEntry> entries;
  if (!ReadConfigFile(path, &entries, error)) return false;
  for (ConfigEntry& entry : entries) {
    const std::string place = path + ":" + std::to_string(entry.line) + ": ";
    const ParameterRow* row = Find(rows, entry.key);
    if (entry.key == "config") {
      *error = place + "config stands in no config file";
      return false;
    }
    if (row == nullptr) {
      *error = place + "unknown key '" + entry.key + "'" +
               UnknownHint(rows, entry.key, "", "; --help lists the known ones");
      return false;
    }
    if (entry.is_boolean && row->type == ParameterType::kYesNo) {
      entry.text = entry.text == "true" ? "yes" : "no";
    }
    // A bad value is an error also where another source wins over it.
    std::string why;
    if (!CheckParameter(*row, entry.text, &why)) {
      *error = place + entry.key;
      error->append(" ").append(why);
      return false;
    }
    texts->try_emplace(entry.key, SourceText{place + entry.key, std::move(entry.text)});
  }
  return true;
}

// The texts of all sources but the defaults, by name; false and *error when one cannot be used.
bool ReadSources(const Rows& rows, const Arguments& arguments, SourceTexts* texts,
                 std::string* error) {
  if (!CheckEnvironment(rows, error)) return false;
  for (const auto& [name, text] : arguments.flags) {
    texts->emplace(name, SourceText{"--" + name, text});
  }
  for (const auto& [name, text] : ReadEnvironment(rows)) {
    std::string why;
    if (!CheckParameter(*Find(rows, name), text, &why)) {
      *error = EnvironmentName(name) + " " + why;
      return false;
    }
    texts->try_emplace(name, SourceText{EnvironmentName(name), text});
  }
  const auto config = texts->find("config");
  return config == texts->end() || config->second.text.empty() ||
         AddFile(config->second.text, rows, texts, error);
}

template <typename Options>
Options Defaults(ParameterUser user) {
  Options options;
  std::string error;
  for (const ParameterRow* row : ParametersOf(user)) {
    CHECK(SetParameter(*row, row->default_text, &options, &error));
  }
  return options;
}

template <typename Options>
bool Fill(const Rows& rows, const SourceTexts& texts, Options* options, std::string* error) {
  for (const ParameterRow* row : rows) {
    const auto found = texts.find(row->name);
    std::string why;
    if (found != texts.end() && !SetParameter(*row, found->second.text, options, &why)) {
      *error = found->second.label + " " + why;
      return false;
    }
    if (row->is_required && ParameterText(*row, *options).empty()) {
      *error = std::string("--") + row->name + " must be given, as a flag, in the environment (" +
               EnvironmentName(row->name) + ") or in the config file";
      return false;
    }
  }
  return true;
}

template <typename Options>
ParseAction Parse(ParameterUser user, int argc, const char* const* argv, Options* options,
                  std::string* message) {
  const std::string program = ProgramName(user);
  const Rows rows = ParametersOf(user);
  const auto fail = [message, &program](const std::string& why) {
    *message = program + ": " + why;
    return ParseAction::kFail;
  };
  Arguments arguments;
  std::string error;
  const std::span<const char* const> given(argv, static_cast<size_t>(argc));
  if (!ReadArguments(rows, given.subspan(given.empty() ? 0 : 1), &arguments, &error)) {
    return fail(error);
  }
  if (arguments.help) {
    const ProgramText text = DescribeProgram(user);
    *message = HelpText(text, text.commands.front());
    message->pop_back();  // The caller ends the last line.
    return ParseAction::kPrint;
  }
  if (arguments.version) {
    *message = program + " " + ONETRIP_VERSION;
    return ParseAction::kPrint;
  }
  if (!arguments.words.empty()) {
    return fail("unknown argument '" + arguments.words.front() + "'; see --help");
  }
  SourceTexts texts;
  if (!ReadSources(rows, arguments, &texts, &error)) return fail(error);
  *options = Defaults<Options>(user);
  return Fill(rows, texts, options, &error) ? ParseAction::kRun : fail(error);
}

}  // namespace

AgentOptions DefaultAgentOptions() { return Defaults<AgentOptions>(kUserAgent); }
MemnodeOptions DefaultMemnodeOptions() { return Defaults<MemnodeOptions>(kUserMemnode); }
MasterOptions DefaultMasterOptions() { return Defaults<MasterOptions>(kUserMaster); }

ParseAction ParseAgentOptions(int argc, const char* const* argv, AgentOptions* options,
                              std::string* message) {
  return Parse(kUserAgent, argc, argv, options, message);
}
ParseAction ParseMemnodeOptions(int argc, const char* const* argv, MemnodeOptions* options,
                                std::string* message) {
  return Parse(kUserMemnode, argc, argv, options, message);
}
ParseAction ParseMasterOptions(int argc, const char* const* argv, MasterOptions* options,
                               std::string* message) {
  return Parse(kUserMaster, argc, argv, options, message);
}

}  // namespace onetrip
