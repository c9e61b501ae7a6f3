// Environment: the variables ONETRIP_* that give options, and those that give none.
//
// Main thread, before others start: it reads the process's environment.
#ifndef ONETRIP_CLIENT_CORE_BASE_ENVIRONMENT_H_
#define ONETRIP_CLIENT_CORE_BASE_ENVIRONMENT_H_

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "client_core/base/parameter_table.h"

namespace onetrip {

// "op-timeout-ms" as ONETRIP_OP_TIMEOUT_MS.
std::string EnvironmentName(std::string_view parameter);

// The texts of the variables that name a row of `known`, by the row's name.
std::map<std::string, std::string, std::less<>> ReadEnvironment(
    std::span<const ParameterRow* const> known);

// True if every variable ONETRIP_* is the option of some program, since processes of a cluster
// often share an environment, or read by another part of Onetrip. False: *error says in one line
// which is not, and names the nearest option, first of `known`.
bool CheckEnvironment(std::span<const ParameterRow* const> known, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_ENVIRONMENT_H_
