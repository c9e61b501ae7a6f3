#include "client_core/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "client_core/base/nearest_name.h"

namespace onetrip {
namespace {

constexpr std::string_view kPrefix = "ONETRIP_";

// Variables that are no options: `onetrip status` reads one, scripts, benches and tests the others,
// which start processes in their own environment.
constexpr std::string_view kOthers[] = {
    "ONETRIP_PASSWORD",        "ONETRIP_COMPARE_AGENT",  "ONETRIP_FUZZ_S",
    "ONETRIP_LINT_BASE",       "ONETRIP_TIDY_BUDGET_S",  "ONETRIP_NEMESIS_SEED",
    "ONETRIP_NEMESIS_MINUTES", "ONETRIP_SIM_SCALE",      "ONETRIP_EXPLORE_MORE",
    "ONETRIP_REGISTER_SEEDS",  "ONETRIP_REGISTER_FIRST", "ONETRIP_GUEST_TIMEOUT_S",
};

}  // namespace

std::string EnvironmentName(std::string_view parameter) {
  std::string name(kPrefix);
  for (const char c : parameter) {
    name += c == '-' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::map<std::string, std::string, std::less<>> ReadEnvironment(
    std::span<const ParameterRow* const> known) {
  std::map<std::string, std::string, std::less<>> texts;
  for (const ParameterRow* row : known) {
    const char* text = std::getenv(EnvironmentName(row->name).c_str());
    if (text != nullptr) texts.emplace(row->name, text);
  }
  return texts;
}

bool CheckEnvironment(std::span<const ParameterRow* const> known, std::string* error) {
  // Those of the program itself come first: of several that are as near, they are meant.
  std::vector<std::string> names;
  for (const ParameterRow* row : known) names.push_back(EnvironmentName(row->name));
  for (const ParameterRow& row : ParameterTable()) {
    if (row.users != 0) names.push_back(EnvironmentName(row.name));
  }
  names.insert(names.end(), std::begin(kOthers), std::end(kOthers));
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::string name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(kPrefix)) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    // The prefix, which all have, would make everything near.
    std::vector<std::string> ends(names.size());
    std::transform(names.begin(), names.end(), ends.begin(),
                   [](const std::string& other) { return other.substr(kPrefix.size()); });
    const std::string nearest = NearestName(name.substr(kPrefix.size()), ends);
    *error = "unknown variable " + name + " in the environment" +
             (nearest.empty() ? "; --help lists the options"
                              : "; did you mean " + std::string(kPrefix) + nearest + "?");
    return false;
  }
  return true;
}

}  // namespace onetrip
