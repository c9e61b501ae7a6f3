#include "client_core/base/arguments.h"

#include <algorithm>

#include "client_core/base/nearest_name.h"

namespace onetrip {
namespace {

const ParameterRow* Find(std::span<const ParameterRow* const> known, std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [name](const ParameterRow* row) { return name == row->name; });
  return found == known.end() ? nullptr : *found;
}

// The value of the flag at argv[*at], behind its '=' or in the next argument, which *at then names.
bool ReadValue(const ParameterRow& row, std::span<const char* const> argv, size_t* at,
               std::string* value, std::string* error) {
  const std::string_view argument = argv[*at];
  const std::string flag = std::string("--") + row.name;
  const size_t equals = argument.find('=');
  const bool has_value = equals != std::string_view::npos;
  if (has_value) *value = argument.substr(equals + 1);
  if (row.type == ParameterType::kSwitch) {
    *value = "yes";
    if (has_value) *error = flag + " takes no value";
    return !has_value;
  }
  if (has_value) return true;
  const bool is_last = *at + 1 == argv.size();
  const std::string_view next = is_last ? std::string_view() : argv[*at + 1];
  if (*row.implied_text != '\0' && (is_last || next.starts_with('-'))) {
    *value = row.implied_text;
    return true;
  }
  if (is_last || next.starts_with("--")) {
    *error = flag + " needs a value";
    if (!is_last) *error += "; one that begins with -- is given as " + flag + "=VALUE";
    return false;
  }
  ++*at;
  *value = next;
  return true;
}

// The row of "--name" or "--name=VALUE"; null and *error: there is none.
const ParameterRow* FindFlag(std::span<const ParameterRow* const> known, std::string_view argument,
                             std::string* error) {
  const std::string_view flag = argument.substr(0, argument.find('='));
  const ParameterRow* row = flag.starts_with("--") ? Find(known, flag.substr(2)) : nullptr;
  if (row != nullptr) return row;
  const std::string_view name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  *error =
      "unknown flag '" + std::string(flag) + "'" + UnknownHint(known, name, "--", "; see --help");
  return nullptr;
}

}  // namespace

std::vector<const ParameterRow*> ParametersOf(ParameterUser user) {
  std::vector<const ParameterRow*> rows;
  for (const ParameterRow& row : ParameterTable()) {
    if ((row.users & user) != 0) rows.push_back(&row);
  }
  return rows;
}

std::string UnknownHint(std::span<const ParameterRow* const> known, std::string_view name,
                        std::string_view prefix, std::string_view otherwise) {
  const std::string others = Find(known, name) == nullptr ? ProgramsWith(name) : "";
  if (!others.empty())
    return ", which only " + others + (others.find(' ') == std::string::npos ? " takes" : " take");
  std::vector<std::string> names;
  for (const ParameterRow* row : known) names.emplace_back(row->name);
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? std::string(otherwise)
                         : "; did you mean " + std::string(prefix) + nearest + "?";
}

bool KnowsFlags(std::span<const ParameterRow* const> known, std::span<const std::string> arguments,
                std::string* error) {
  return std::all_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const bool is_flag = argument.starts_with("--") && argument != "--help" &&
                         argument != "--version" && argument != "--";
    return !is_flag || FindFlag(known, argument, error) != nullptr;
  });
}

bool ReadArguments(std::span<const ParameterRow* const> known, std::span<const char* const> argv,
                   Arguments* arguments, std::string* error) {
  for (size_t i = 0; i < argv.size(); ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") {
      arguments->words.insert(arguments->words.end(), argv.begin() + static_cast<ptrdiff_t>(i) + 1,
                              argv.end());
      return true;
    }
    if (argument == "--help" || argument == "-h") {
      arguments->help = true;
      continue;
    }
    if (argument == "--version" || argument == "-v") {
      arguments->version = true;
      continue;
    }
    if (!argument.starts_with('-') || argument == "-") {
      arguments->words.emplace_back(argument);
      continue;
    }
    const ParameterRow* row = FindFlag(known, argument, error);
    if (row == nullptr) return false;
    std::string value;
    if (!ReadValue(*row, argv, &i, &value, error)) return false;
    if (!arguments->flags.emplace(row->name, value).second) {
      *error = std::string("--") + row->name + " is given twice; keep one";
      return false;
    }
  }
  return true;
}

}  // namespace onetrip
