// onetrip: for people: a cluster on this host, and what any cluster is doing.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/environment.h"
#include "client_core/base/nearest_name.h"
#include "client_core/base/version.h"
#include "tool/commands.h"

namespace onetrip {
namespace {

constexpr int kNotServing = static_cast<int>(Service::kNotServing);

int Fail(const std::string& command, const std::string& reason) {
  const std::string name = "onetrip" + (command.empty() ? "" : " " + command);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), reason.c_str());
  // A caller that asks how a cluster does must not take this for an answer.
  return command == "status" ? kNotServing : 1;
}

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

std::vector<ProgramText> AllPrograms() {
  return {DescribeTool(), DescribeProgram(kUserAgent), DescribeProgram(kUserMemnode),
          DescribeProgram(kUserMaster)};
}

// The program of that name, in `programs`; null: there is none, and *error says which is near.
const ProgramText* FindProgram(std::span<const ProgramText> programs, const std::string& name,
                               std::string* error) {
  std::vector<std::string> names;
  for (const ProgramText& program : programs) {
    if (name == program.name) return &program;
    names.emplace_back(program.name);
  }
  const std::string nearest = NearestName(name, names);
  *error = "there is no program '" + name + "'" +
           (nearest.empty() ? "; see onetrip help" : "; did you mean " + nearest + "?");
  return nullptr;
}

int Help(const std::vector<std::string>& words) {
  std::string topic;
  for (const std::string& word : words) topic += (topic.empty() ? "" : " ") + word;
  const std::vector<ProgramText> programs = AllPrograms();
  const ProgramText& tool = programs.front();
  if (topic.empty() || topic == tool.name) return Print(OverviewText(tool));
  const CommandText* command = FindCommandText(tool, topic);
  if (command != nullptr) return Print(HelpText(tool, *command));
  std::vector<std::string> names;
  std::string group;
  for (const CommandText& other : tool.commands) {
    names.emplace_back(other.name);
    if (names.back().starts_with(topic + " ")) group += HelpText(tool, other) + "\n";
  }
  if (!group.empty()) return Print(group);
  for (const ProgramText& program : programs) {
    if (topic == program.name) return Print(HelpText(program, program.commands.front()));
    names.emplace_back(program.name);
  }
  const std::string nearest = NearestName(topic, names);
  return Fail("help", "there is no command or program '" + topic + "'" +
                          (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

int Completion(const std::string& shell) {
  const std::string script = CompletionScript(shell, AllPrograms());
  return script.empty() ? Fail("completion", "must be bash, zsh or fish, not '" + shell + "'")
                        : Print(script);
}

int Man(const std::string& name) {
  const std::vector<ProgramText> programs = AllPrograms();
  std::string error;
  const ProgramText* program = FindProgram(programs, name.empty() ? "onetrip" : name, &error);
  return program == nullptr ? Fail("man", error) : Print(ManPage(*program));
}

// The commands whose only answer is that it is done.
Status Do(const std::string& command, const ToolOptions& options, std::string* reason) {
  if (command == "up") return Up(options.up, reason);
  if (command == "down") return Down(options.down, reason);
  if (command == "restart") return Restart(options.restart, reason);
  if (command == "node add") return AddNode(options.node, reason);
  if (command == "node drain") return DrainNode(options.node, reason);
  if (command == "node keep") return KeepNode(options.node, reason);
  if (command == "node accept-loss") return AcceptLoss(options.node, reason);
  if (command == "master backup") return BackUpMaster(options.backup, reason);
  if (command == "master rebuild") return RebuildMaster(options.rest, reason);
  *reason = "the command does nothing";
  return Status(StatusCode::kInvalidArgument, "command");
}

int Execute(const CommandLine& line) {
  const std::string command = line.command->text.name;
  const ToolOptions& options = line.options;
  std::string reason;
  if (command == "help") return Help(options.rest);
  if (command == "completion") return Completion(options.word);
  if (command == "man") return Man(options.word);
  // A variable that the processes would refuse is told before any is started.
  if (line.command->starts_processes && !CheckEnvironment({}, &reason)) {
    return Fail(command, reason);
  }
  if (command == "status") {
    const Result<Service> service = ShowStatus(options.status, &reason);
    return service.ok() ? static_cast<int>(*service) : Fail(command, reason);
  }
  if (command == "check") {
    const Result<bool> sound = CheckPool(options.check, &reason);
    if (!sound.ok()) return Fail(command, reason);
    return *sound ? 0 : 1;
  }
  return Do(command, options, &reason).ok() ? 0 : Fail(command, reason);
}

int Run(int argc, char** argv) {
  CommandLine line;
  std::string error;
  const std::span<char* const> given(argv, static_cast<size_t>(argc));
  const std::vector<const char*> arguments(given.begin() + (argc > 0 ? 1 : 0), given.end());
  if (!ReadCommandLine(arguments, &line, &error)) {
    return Fail(line.command == nullptr ? "" : line.command->text.name, error);
  }
  if (line.version) return Print("onetrip " ONETRIP_VERSION "\n");
  if (line.command == nullptr) return Help({line.topic});
  return line.help ? Help({line.command->text.name}) : Execute(line);
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return onetrip::Run(argc, argv); }
