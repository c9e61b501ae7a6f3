// ManPage(): roff of the man macros.
#include <string>

#include "client_core/base/arguments.h"
#include "client_core/base/environment.h"
#include "client_core/base/program_text.h"
#include "client_core/base/version.h"

namespace onetrip {
namespace {

// Text as roff prints it, whatever it begins with.
std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string Section(const char* title) { return std::string(".SH ") + title + "\n"; }

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string Parameters(const std::vector<const ParameterRow*>& rows) {
  std::string out;
  for (const ParameterRow* row : rows) {
    out += ".TP\n.B " + Escape(std::string("--") + row->name);
    const std::string value = ValueText(*row);
    if (!value.empty()) out += " \\fR" + Escape(value);
    out += "\n" + Escape(std::string(row->help) + ".");
    const std::string notes = NotesText(*row);
    if (!notes.empty()) out += "\n" + Escape("(" + notes + ")");
    out += "\n";
  }
  return out;
}

std::string Examples(const std::vector<ExampleText>& examples) {
  std::string out;
  for (const ExampleText& example : examples) {
    out += ".PP\n" + Escape(std::string(example.what) + ":") + "\n.PP\n.RS 4\n.nf\n" +
           Escape(example.command) + "\n.fi\n.RE\n";
  }
  return out;
}

std::string Synopsis(const ProgramText& program) {
  std::string out = Section("SYNOPSIS");
  for (const CommandText& command : program.commands) {
    std::string line = program.name;
    if (*command.name != '\0') line += std::string(" ") + command.name;
    out += ".B " + Escape(line) + "\n";
    if (*command.words != '\0') out += Escape(command.words) + "\n";
    if (!command.parameters.empty()) out += Escape("[--OPTION VALUE]...") + "\n";
    out += ".br\n";
  }
  return out;
}

std::string Sources(const ProgramText& program) {
  if (*program.file_line == '\0') return "";
  std::string out = Section("FILES");
  out += Escape("--config names a TOML file; each line gives one option by its name, as in") +
         "\n.B " + Escape(program.file_line) + "\n";
  out += Section("ENVIRONMENT");
  out +=
      Escape(std::string("Every option may be given as a variable, such as ") + program.variable +
             ". Flags win over the environment, which wins over the file. Other variables that "
             "begin with ONETRIP_ are errors.") +
      "\n";
  for (const ParameterRow* row : program.commands.front().parameters) {
    out += ".br\n" + Escape(EnvironmentName(row->name)) + "\n";
  }
  return out;
}

// The agent has a section on parameters that CONFIG SET changes while it runs.
std::string ConfigParameters(const ProgramText& program) {
  if (program.name != std::string_view(ProgramName(kUserAgent))) return "";
  std::string out = Section("CONFIG");
  out += "While the agent runs, CONFIG SET changes these; CONFIG GET shows them and others.\n";
  for (const ParameterRow* row : program.commands.front().parameters) {
    if (row->config != ConfigUse::kSet || *row->fixed_because != '\0') continue;
    out += ".br\n.B " + Escape(row->name) + "\n";
  }
  return out;
}

}  // namespace

std::string ManPage(const ProgramText& program) {
  std::string page = std::string(".TH ") + Upper(program.name) + " " + program.man_section +
                     " \"\" \"Onetrip " ONETRIP_VERSION "\" \"Onetrip\"\n.nh\n.ad l\n";
  page += Section("NAME") + Escape(program.name) + " \\- " + Escape(program.summary) + "\n";
  page += Synopsis(program);
  page += Section("DESCRIPTION") + Escape(program.help) + "\n";
  std::string commands;
  std::string examples;
  for (const CommandText& command : program.commands) {
    examples += Examples(command.examples);
    if (*command.name == '\0') {
      page += Section("OPTIONS") + Parameters(command.parameters);
      continue;
    }
    commands +=
        ".SS " +
        Escape(std::string(command.name) + (*command.words == '\0' ? "" : " ") + command.words) +
        "\n" + Escape(command.help) + "\n" + Parameters(command.parameters);
  }
  if (!commands.empty()) page += Section("COMMANDS") + commands;
  page += Sources(program) + ConfigParameters(program);
  page += Section("EXIT STATUS") + Escape(program.exit_codes) + "\n";
  if (!examples.empty()) page += Section("EXAMPLES") + examples;
  page += Section("SEE ALSO");
  page +=
      ".BR onetrip (1),\n.BR onetrip\\-agent (8),\n.BR onetrip\\-memnode (8),\n"
      ".BR onetrip\\-master (8)\n";
  return page;
}

}  // namespace onetrip
