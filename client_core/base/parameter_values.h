// Parameter values: how the text of a parameter is read, checked and printed.
//
// For flags, environment, config files and messages; CONFIG SET has Redis's grammar instead
// (redis_compat/config_values.h), with the limits of the same rows. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_PARAMETER_VALUES_H_
#define ONETRIP_CLIENT_CORE_BASE_PARAMETER_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/parameter_table.h"

namespace onetrip {

// Reads `text` as `row` wants it and stores it in its field of *options. On failure false, *options
// unchanged and *error one line without the parameter's name: "must be 1 to 64, not 'x'". Options
// is one of the three structs.
template <typename Options>
bool SetParameter(const ParameterRow& row, std::string_view text, Options* options,
                  std::string* error);

// The field's value as CONFIG GET shows it: sizes in plain bytes, modes in octal.
template <typename Options>
std::string ParameterText(const ParameterRow& row, const Options& options);

// True if SetParameter() would take `text`; else false, and *error as there.
bool CheckParameter(const ParameterRow& row, std::string_view text, std::string* error);

// The row's default as CONFIG GET shows it.
std::string DefaultText(const ParameterRow& row);

// The limits of a numeric row for people: "8 MiB to 64 TiB", "100 to 60000 ms (1 min)", "at least
// 1 MiB"; empty for other types and where every number will do.
std::string LimitsText(const ParameterRow& row);

// The choices of a row: those of kChoice, yes and no of kYesNo, else none.
std::vector<std::string> ChoicesOf(const ParameterRow& row);

// "64mb", "1GiB", "1000": decimal digits and a unit of b, k, kb, kib, m, mb, mib, g, gb, gib, t, tb
// or tib in any case. As in Redis, "k" is 1000 and "kb" 1024. False when malformed or above 64 bit.
bool ParseSize(std::string_view text, uint64_t* bytes);

// In the largest unit in which it is whole: "64 TiB", "1 MiB", "1000 bytes".
std::string SizeText(uint64_t bytes);

// `count` of `unit` ("us", "ms" or "s") in the largest unit that it fills, rounded: "10 s", "1
// min", "68 years". REQUIRES: `unit` is one of these.
std::string DurationText(uint64_t count, std::string_view unit);

// "127.0.0.1:7400", "[::1]:7400", "name:0": a host, without the brackets, and a port in decimal.
// False, and nothing changed, when malformed; IPv6 needs its brackets.
bool ParseHostPort(std::string_view text, std::string* host, uint16_t* port);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PARAMETER_VALUES_H_
