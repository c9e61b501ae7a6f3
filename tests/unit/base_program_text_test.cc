#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_core/base/program_text.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A program of commands, with texts that shells and roff have to be told about.
ProgramText Tool(const std::vector<ParameterRow>& rows) {
  ProgramText tool;
  tool.name = "tool";
  tool.summary = "does it";
  tool.help = "Does it.";
  tool.exit_codes = "0.";
  CommandText up;
  up.name = "up";
  up.summary = "Start it";
  up.help = ".Starts what isn't there.";
  for (const ParameterRow& row : rows) up.parameters.push_back(&row);
  up.examples = {{"As always", "tool up --dir 'a b'"}};
  CommandText add;
  add.name = "node add";
  add.words = "[NODE]";
  add.summary = "Add one";
  add.help = "Adds one.";
  add.choices = {"one", "two"};
  tool.commands = {up, add};
  return tool;
}

std::vector<ParameterRow> Rows() {
  return {{.name = "dir", .type = ParameterType::kPath, .default_text = "x", .help = "Where"},
          {.name = "fabric", .type = ParameterType::kChoice, .choices = "shm|tcp", .help = "How"},
          {.name = "force", .type = ParameterType::kSwitch, .help = "Don't ask"}};
}

TEST(ProgramText, HelpHasUsageOptionsAndExamples) {
  const std::vector<ParameterRow> rows = Rows();
  const ProgramText tool = Tool(rows);
  EXPECT_EQ(HelpText(tool, tool.commands[0]),
            "Usage: tool up [--OPTION VALUE]...\n\n.Starts what isn't there.\n\nOptions:\n"
            "  --dir <path>  (default x)\n      Where.\n"
            "  --fabric shm|tcp\n      How.\n"
            "  --force\n      Don't ask.\n"
            "  --help\n      Print this and exit.\n"
            "\nExamples:\n  As always:\n      tool up --dir 'a b'\n");
  EXPECT_THAT(HelpText(tool, tool.commands[1]), StartsWith("Usage: tool node add [NODE]\n"));
  EXPECT_THAT(OverviewText(tool), HasSubstr("\n  up                Start it\n"));
  EXPECT_EQ(FindCommandText(tool, "node add"), &tool.commands[1]);
  EXPECT_EQ(FindCommandText(tool, "node"), nullptr);
}

TEST(ProgramText, HelpOfAProgramTellsLimitsAndExamples) {
  const ProgramText agent = DescribeProgram(kUserAgent);
  const std::string help = HelpText(agent, agent.commands.front());
  EXPECT_THAT(help, HasSubstr("\n  --memory <size>  (default 1GiB; 8 MiB to 64 TiB)\n"));
  EXPECT_THAT(help, HasSubstr("\n  --op-timeout-ms <ms>  (default 5000; 1 to 3600000 ms (1 h))\n"));
  EXPECT_THAT(help, HasSubstr("\nExamples:\n"));
  const ProgramText master = DescribeProgram(kUserMaster);
  EXPECT_THAT(HelpText(master, master.commands.front()), HasSubstr("onetrip-master rebuild"));
}

TEST(ManPage, HasEverySectionAndNothingThatRoffWouldTakeForARequest) {
  const std::vector<ParameterRow> rows = Rows();
  const std::string page = ManPage(Tool(rows));
  EXPECT_THAT(page, StartsWith(".TH TOOL 1 "));
  EXPECT_THAT(page, HasSubstr(".SH COMMANDS\n.SS up\n\\&.Starts what isn't there.\n"));
  EXPECT_THAT(page, HasSubstr(".B \\-\\-dir \\fR<path>\nWhere.\n(default x)\n"));
  EXPECT_THAT(page, Not(HasSubstr("ENVIRONMENT")));
  for (const ParameterUser user : {kUserAgent, kUserMemnode, kUserMaster}) {
    const std::string own = ManPage(DescribeProgram(user));
    for (const ParameterRow& row : ParameterTable()) {
      if ((row.users & user) == 0) continue;
      std::string flag = ".B \\-\\-";
      for (const char* c = row.name; *c != '\0'; ++c)
        flag += *c == '-' ? "\\-" : std::string(1, *c);
      EXPECT_THAT(own, HasSubstr(flag)) << row.name;
    }
    for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT",
                                "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"}) {
      EXPECT_THAT(own, HasSubstr(std::string(".SH ") + section + "\n"));
    }
  }
}

TEST(CompletionScript, NamesCommandsFlagsAndChoicesOfEveryShell) {
  const std::vector<ParameterRow> rows = Rows();
  const ProgramText tool = Tool(rows);
  const std::string bash = CompletionScript("bash", {&tool, 1});
  EXPECT_THAT(bash, HasSubstr("'tool||node') command='node' ;;"));
  EXPECT_THAT(bash, HasSubstr("'tool|node|add') command='node add' ;;"));
  EXPECT_THAT(
      bash,
      HasSubstr("'tool|up|--fabric') mapfile -t COMPREPLY < <(compgen -W 'shm tcp' -- \"$cur\")"));
  EXPECT_THAT(bash, HasSubstr("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;"));
  EXPECT_THAT(bash, HasSubstr("'tool|up') words='--dir --fabric --force --help' ;;"));
  EXPECT_THAT(bash, HasSubstr("'tool|node add') words='one two --help' ;;"));
  EXPECT_THAT(bash, Not(HasSubstr("command='node add one'")));
  EXPECT_THAT(bash, HasSubstr("'tool|') words='up node --help' ;;"));
  const std::string zsh = CompletionScript("zsh", {&tool, 1});
  EXPECT_THAT(zsh, StartsWith("#compdef tool\n"));
  EXPECT_THAT(zsh, HasSubstr("'--force:Don'\\''t ask'"));
  EXPECT_THAT(zsh, HasSubstr("'tool|up|--fabric') compadd -- shm tcp; return ;;"));
  const std::string fish = CompletionScript("fish", {&tool, 1});
  EXPECT_THAT(fish, HasSubstr("-l force -d 'Don\\'t ask'\n"));
  EXPECT_THAT(fish, HasSubstr("-l fabric -d 'How' -xa 'shm tcp'\n"));
  EXPECT_THAT(fish,
              HasSubstr("-n '__fish_seen_subcommand_from node; and not __fish_seen_subcommand_from "
                        "add' -a add -d 'Add one'\n"));
  EXPECT_THAT(fish, HasSubstr("-a node -d 'add'\n"));
  EXPECT_EQ(CompletionScript("tcsh", {&tool, 1}), "");
}

}  // namespace
}  // namespace onetrip
