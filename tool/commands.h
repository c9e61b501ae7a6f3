// The commands of `onetrip`, one row each with its flags: the table that command lines are read by,
// and from which help, man page and shell completion are made.
//
// A flag that a program of the cluster has, too (--memory, --replicas, --threads and so on), has
// the limits and the default of that program's row in client_core/base/parameter_table.h. A new
// flag is a row here and a field of the command's options.
#ifndef ONETRIP_TOOL_COMMANDS_H_
#define ONETRIP_TOOL_COMMANDS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/program_text.h"
#include "tool/check.h"
#include "tool/master.h"
#include "tool/node.h"
#include "tool/status.h"
#include "tool/up.h"

namespace onetrip {

// The contents of one command line; only the struct of its command is filled.
struct ToolOptions {
  UpOptions up;
  DownOptions down;
  RestartOptions restart;
  StatusOptions status;
  CheckOptions check;
  NodeOptions node;
  BackupOptions backup;
  std::string word;               // For help, completion and man; empty: none.
  std::vector<std::string> rest;  // For commands that hand their arguments on.
};

struct ToolFlag {
  ParameterRow row;
  void (*set)(ToolOptions& options, const std::string& text);  // `text` passed the row's check.
};

struct ToolCommand {
  CommandText text;  // Its parameters point into `flags`.
  std::vector<ToolFlag> flags;
  // Stores the one word that it may take beside flags; null: it takes none.
  void (*set_word)(ToolOptions& options, const std::string& text) = nullptr;
  bool needs_word = false;
  bool hands_on = false;          // All arguments behind its name, unread.
  bool starts_processes = false;  // Which take options from the environment.
};

// All commands, in the order of help. Any thread.
std::span<const ToolCommand> ToolCommands();

// The default of a flag of `onetrip up`, which its options leave open: a directory may know better.
// REQUIRES: there is that flag. Any thread.
const char* UpDefault(std::string_view flag);

// `onetrip` as help, man page and shell completion tell it. Any thread.
ProgramText DescribeTool();

struct CommandLine {
  const ToolCommand* command = nullptr;  // Null: help, version or nothing was asked for.
  ToolOptions options;
  bool help = false;  // On `command`; without one on `topic`.
  std::string topic;  // A word that several commands begin with: "node"; empty: `onetrip`.
  bool version = false;
};

// Reads `argv`, which begins behind the program's name. False: *error says in one line what is
// wrong and names what is near; `command` says how far it came. The environment gives --password.
bool ReadCommandLine(std::span<const char* const> argv, CommandLine* line, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_COMMANDS_H_
