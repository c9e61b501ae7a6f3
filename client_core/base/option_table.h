// Option table: every knob of every process, one row each.
//
// The rows are the only place where a name, default, limit or help text is stated: flags, ONETRIP_*
// environment, config files, --help and CONFIG GET / SET all read them. A row points at the field
// it fills, so that a program works with plain structs. Start-up and CONFIG only; not the data
// path.
#ifndef ONETRIP_CLIENT_CORE_BASE_OPTION_TABLE_H_
#define ONETRIP_CLIENT_CORE_BASE_OPTION_TABLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "client_core/base/options.h"

namespace onetrip {

// Which programs have the option; a bit set.
enum OptionUser : uint8_t { kUserAgent = 1, kUserMemnode = 2, kUserMaster = 4, kUserTool = 8 };

enum class OptionType : uint8_t {
  kInteger,       // Decimal.
  kOctal,         // File modes.
  kSize,          // Bytes; "64mb", "1GiB" and plain numbers are read.
  kText,          // Any text, or one of `choices`.
  kOutputLimits,  // "CLASS HARD SOFT SECONDS ..." as Redis writes it.
};

// Filled in by a program that does not have the option: nothing.
using OptionField = std::variant<std::monostate, uint64_t AgentOptions::*,
                                 std::string AgentOptions::*, OutputBufferLimits AgentOptions::*>;

struct OptionRow {
  const char* name;          // As in --name and `name = ...`; ONETRIP_NAME with '-' as '_'.
  OptionType type;           //
  const char* default_text;  // As a user would write it.
  const char* unit;          // "bytes", "ms", "" and so on.
  const char* help;          // A sentence without its full stop.
  uint8_t users;             // Of OptionUser.
  bool runtime;              // CONFIG SET may change it while the process runs.
  const char* config_alias;  // The Redis parameter of the same meaning; empty: none.
  uint64_t min;              // Limits of numeric types, both inclusive.
  uint64_t max;
  const char* choices;  // Of kText, separated by '|'; empty: any text.
  OptionField agent_field;
};

// All rows, in the order of --help. Any thread.
std::span<const OptionRow> OptionTable();

// The row of that name, or nullptr. Any thread.
const OptionRow* FindOption(std::string_view name);
// The agent's row whose Redis parameter is `alias` (lower case), or nullptr. Any thread.
const OptionRow* FindOptionByConfigAlias(std::string_view alias);

// Reads `text` as `row` wants it and stores it in its field of *options. On failure false, *options
// unchanged and *error one line without the option's name: "must be 1 to 65535, not 'x'".
bool SetOption(const OptionRow& row, std::string_view text, AgentOptions* options,
               std::string* error);

// The field's value as CONFIG GET shows it: sizes in plain bytes, modes in octal.
std::string OptionText(const OptionRow& row, const AgentOptions& options);

// "64mb", "1GiB", "1000": decimal digits and a unit of b, k, kb, kib, m, mb, mib, g, gb, gib, t, tb
// or tib in any case. As in Redis, "k" is 1000 and "kb" 1024. False when malformed or above 64 bit.
bool ParseSize(std::string_view text, uint64_t* bytes);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_OPTION_TABLE_H_
