// How CONFIG SET reads the values of parameters: Redis's grammar and error texts, one checker per
// type, with the limits and choices of the parameter's row.
//
// Pure; any thread.
#ifndef ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_
#define ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client_core/base/parameter_table.h"

namespace onetrip {

// A number of bytes with an optional unit: b, k (1000), kb (1024), m, mb, g, gb in any case.
// Without digits it is 0, as Redis has it. Empty for anything else.
std::optional<int64_t> ParseMemory(std::string_view text);

// Checks `value` against `row` and brings it to the form CONFIG GET shows. Returns false with
// Redis's words in `error`. `current`: the parameter's value; what `value` does not name stays.
bool CheckConfigValue(const ParameterRow& row, std::string_view current, std::string_view value,
                      std::string* canonical, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_CONFIG_VALUES_H_
