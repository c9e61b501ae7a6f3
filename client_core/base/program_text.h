// ProgramText: what --help, man pages and shell completion say about a program, from the table.
//
// Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_PROGRAM_TEXT_H_
#define ONETRIP_CLIENT_CORE_BASE_PROGRAM_TEXT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/parameter_table.h"

namespace onetrip {

struct ExampleText {
  const char* what;     // A sentence without its full stop.
  const char* command;  // As one types it.
};

// A command of a program, or what the program does without one.
struct CommandText {
  const char* name = "";     // "up", "node add"; empty: the program without a command.
  const char* words = "";    // Arguments beside flags: "NODE", "[NODE]".
  const char* summary = "";  // Half a line, for lists.
  const char* help = "";     // Sentences; empty: the program's.
  std::vector<const ParameterRow*> parameters = {};
  std::vector<std::string> choices = {};  // Shells offer these for its word.
  std::vector<ExampleText> examples = {};
};

struct ProgramText {
  const char* name = "";
  char man_section = '1';
  const char* summary = "";     // Half a line.
  const char* help = "";        // Sentences.
  const char* variable = "";    // An example of one of the environment; empty: it reads none.
  const char* file_line = "";   // An example of a line of its config file; empty: it has none.
  const char* exit_codes = "";  // Sentences.
  std::vector<CommandText> commands = {};  // At least one.
};

// Describes onetrip-agent, onetrip-memnode or onetrip-master.
ProgramText DescribeProgram(ParameterUser user);

// The command of that name, or nullptr.
const CommandText* FindCommandText(const ProgramText& program, std::string_view name);

// The placeholder of a value: "<size>", "shm|tcp", "<HOST:PORT>"; empty for a switch.
std::string ValueText(const ParameterRow& row);
// Further facts: "required", "default 1GiB", "8 MiB to 64 TiB", joined by "; ".
std::string NotesText(const ParameterRow& row);

// --help of one command, two lines a flag, so that nothing depends on the width of the terminal.
std::string HelpText(const ProgramText& program, const CommandText& command);
// --help of a program of several commands: one line each.
std::string OverviewText(const ProgramText& program);

// The page as `man -l` takes it.
std::string ManPage(const ProgramText& program);

// A script for "bash", "zsh" or "fish" that completes commands, flags and values of the programs;
// empty for another shell.
std::string CompletionScript(std::string_view shell, std::span<const ProgramText> programs);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PROGRAM_TEXT_H_
