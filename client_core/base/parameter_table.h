// Parameter table: every knob of every process, one row each.
//
// The rows are the only place where a name, default, unit, limit or help text is stated. Flags,
// ONETRIP_* environment, config files, --help, man pages, shell completion, CONFIG GET and CONFIG
// SET all read them. A row points at the fields it fills, so that programs work with plain structs.
// A parameter that means something else to another program has a row for each. Start-up and CONFIG
// only; not the data path.
//
// A new parameter:
//   1. a row in parameter_table.cc, with the programs that take it as .users;
//   2. a field in the struct of each of them (options.h), named by the row's .fields;
//   3. its use: the program reads the field.
// That is all for what is chosen at start. If CONFIG is to show it, the row says so by .config. If
// CONFIG SET is to change it while the agent runs, workers must not read the field of step 2, which
// keeps the value from the start: add a field to LiveOptions (live_options.h), name it by .live,
// and read it through an accessor of ServerConfig (redis_compat/parameters.h).
#ifndef ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_
#define ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "client_core/base/live_options.h"
#include "client_core/base/options.h"

namespace onetrip {

// Which programs take the parameter as flag, in the environment and in their file; a bit set.
enum ParameterUser : uint8_t { kUserAgent = 1, kUserMemnode = 2, kUserMaster = 4 };

// Types of values. Flags, environment and files read sizes, numbers and words as
// parameter_values.h says; CONFIG SET reads them as Redis does (redis_compat/config_values.h).
enum class ParameterType : uint8_t {
  kInteger,       // Decimal.
  kOctal,         // File modes.
  kSize,          // Bytes; "64mb", "1GiB" and plain numbers are read.
  kText,          // Any text.
  kPath,          // Any text; shells complete file names.
  kChoice,        // One of `choices`.
  kYesNo,         // "yes" or "no".
  kAddress,       // HOST:PORT.
  kOutputLimits,  // "CLASS HARD SOFT SECONDS ..." as Redis writes it.
  kSwitch,        // A flag without a value. Commands of `onetrip` only.
  kSave,          // Pairs of seconds and changes. CONFIG only.
  kKeyEvents,     // Letters of notify-keyspace-events. CONFIG only.
};

// The part that CONFIG takes in a parameter.
enum class ConfigUse : uint8_t {
  kNone,   // CONFIG does not know it.
  kShown,  // CONFIG GET shows it; CONFIG SET calls it immutable.
  kSet,    // CONFIG SET changes it, unless the row has `fixed_because`.
};

// The field that a parameter fills in one program: none, if the program does not have it.
template <typename Options>
using ParameterField = std::variant<std::monostate, uint64_t Options::*, int64_t Options::*,
                                    std::string Options::*, OutputBufferLimits Options::*>;

struct ParameterFields {
  ParameterField<AgentOptions> agent{};
  ParameterField<MemnodeOptions> memnode{};
  ParameterField<MasterOptions> master{};
};

struct ParameterRow {
  // As in --name, `name = ...` and CONFIG; ONETRIP_NAME with '-' as '_' in the environment.
  const char* name = "";
  ParameterType type = ParameterType::kText;
  const char* default_text = "";  // As a user would write it.
  const char* unit = "";          // "ms", "s", "us", "nodes" and so on; sizes are in bytes.
  // Limits of numeric types, both inclusive.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  // CONFIG SET takes a number within the limits but not between these for the nearer one.
  int64_t nearest_min = std::numeric_limits<int64_t>::min();
  int64_t nearest_max = std::numeric_limits<int64_t>::max();
  const char* choices = "";  // For kChoice, separated by '|'.
  // The value of a flag that comes without one, and may; empty: it may not. Of `onetrip` only.
  const char* implied_text = "";
  bool is_required = false;  // Must be given, and not empty.
  const char* help = "";     // A sentence without its full stop. Of CONFIG's rows empty: only kept.
  uint8_t users = 0;         // Bits of ParameterUser; 0: CONFIG alone has it.
  ConfigUse config = ConfigUse::kNone;
  const char* second_name = "";    // CONFIG shows it as a parameter of its own.
  const char* fixed_because = "";  // Why CONFIG SET takes no value but the one that is there.
  ParameterFields fields = {};     // One for each user; --config, which is read first, has none.
  LiveField live = nullptr;        // Follows CONFIG's value while the agent runs.
};

// All rows, in the order of --help and of CONFIG GET *. Any thread.
std::span<const ParameterRow> ParameterTable();

// The program's row of that name, or nullptr. Any thread.
const ParameterRow* FindParameter(ParameterUser user, std::string_view name);

// "onetrip-agent" and so on. Any thread.
const char* ProgramName(ParameterUser user);
// The names of all programs that take a parameter of that name, as "onetrip-agent and
// onetrip-master"; empty: none does. Any thread.
std::string ProgramsWith(std::string_view name);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PARAMETER_TABLE_H_
