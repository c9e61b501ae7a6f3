// Option table: every knob of every process, one row each.
//
// The rows are the only place where a name, default, limit or help text is stated: flags, ONETRIP_*
// environment, config files, --help and CONFIG GET / SET all read them. A row points at the fields
// it fills, one for each program that has the option, so that programs work with plain structs. An
// option that means something else to another program has a row for each. Start-up and CONFIG only;
// not the data path.
#ifndef ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_
#define ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "client_core/base/options.h"

namespace onetrip {

// Which programs have the option; a bit set.
enum OptionUser : uint8_t { kUserAgent = 1, kUserMemnode = 2, kUserMaster = 4 };

enum class OptionType : uint8_t {
  kInteger,       // Decimal.
  kOctal,         // File modes.
  kSize,          // Bytes; "64mb", "1GiB" and plain numbers are read.
  kText,          // Any text, or one of `choices`.
  kAddress,       // HOST:PORT.
  kOutputLimits,  // "CLASS HARD SOFT SECONDS ..." as Redis writes it.
};

// What an option fills in one program: nothing, if the program does not have it.
template <typename Options>
using OptionField = std::variant<std::monostate, uint64_t Options::*, std::string Options::*,
                                 OutputBufferLimits Options::*>;

struct OptionFields {
  OptionField<AgentOptions> agent{};
  OptionField<MemnodeOptions> memnode{};
  OptionField<MasterOptions> master{};
};

struct OptionRow {
  const char* name;          // As in --name and `name = ...`; ONETRIP_NAME with '-' as '_'.
  OptionType type;           //
  const char* default_text;  // As a user would write it.
  const char* unit;          // "bytes", "ms", "" and so on.
  const char* help;          // A sentence without its full stop.
  uint8_t users;             // Of OptionUser; one row for each program and name.
  bool runtime;              // CONFIG SET may change it while the process runs.
  const char* config_alias;  // The Redis parameter of the same meaning; empty: none.
  uint64_t min;              // Limits of numeric types, both inclusive.
  uint64_t max;
  const char* choices;       // Of kText, separated by '|'; empty: any text.
  OptionFields fields;       // Of the users; --config, which is read first, has none.
  bool is_required = false;  // Must be given, and not empty.
};

// All rows, in the order of --help. Any thread.
std::span<const OptionRow> OptionTable();

// The program's row of that name, or nullptr. Any thread.
const OptionRow* FindOption(OptionUser user, std::string_view name);
// The agent's row whose Redis parameter is `alias` (lower case), or nullptr. Any thread.
const OptionRow* FindOptionByConfigAlias(std::string_view alias);

// Reads `text` as `row` wants it and stores it in its field of *options. On failure false, *options
// unchanged and *error one line without the option's name: "must be 1 to 65535, not 'x'". Options
// is one of the three structs.
template <typename Options>
bool SetOption(const OptionRow& row, std::string_view text, Options* options, std::string* error);

// The field's value as CONFIG GET shows it: sizes in plain bytes, modes in octal.
template <typename Options>
std::string OptionText(const OptionRow& row, const Options& options);

// "64mb", "1GiB", "1000": decimal digits and a unit of b, k, kb, kib, m, mb, mib, g, gb, gib, t, tb
// or tib in any case. As in Redis, "k" is 1000 and "kb" 1024. False when malformed or above 64 bit.
bool ParseSize(std::string_view text, uint64_t* bytes);

// "127.0.0.1:7400", "[::1]:7400", "name:0": a host, without the brackets, and a port in decimal.
// False, and nothing changed, when malformed; IPv6 needs its brackets.
bool ParseHostPort(std::string_view text, std::string* host, uint16_t* port);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_
