#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "client_core/base/parameter_values.h"
#include "tool/commands.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;

struct Read {
  bool ok = false;
  CommandLine line;
  std::string error;
};
Read ReadLine(const std::vector<const char*>& arguments) {
  Read read;
  read.ok = ReadCommandLine(arguments, &read.line, &read.error);
  return read;
}

TEST(CommandLine, FlagsAndWordsFillTheCommandsOptions) {
  Read read = ReadLine({"up", "--dir", "d", "--memnodes=5", "--memory", "64MiB", "--persistent"});
  ASSERT_TRUE(read.ok) << read.error;
  EXPECT_EQ(read.line.options.up.dir, "d");
  EXPECT_EQ(read.line.options.up.memnodes, 5);
  EXPECT_EQ(read.line.options.up.memory, "64MiB");
  EXPECT_TRUE(read.line.options.up.persistent);
  EXPECT_FALSE(read.line.options.up.threads.has_value());
  read = ReadLine({"node", "add", "--no-wait", "memnode-1", "--master", "h:1"});
  ASSERT_TRUE(read.ok) << read.error;
  EXPECT_STREQ(read.line.command->text.name, "node add");
  EXPECT_EQ(read.line.options.node.node, "memnode-1");
  EXPECT_EQ(read.line.options.node.master, "h:1");
  EXPECT_FALSE(read.line.options.node.wait);
  read = ReadLine({"master", "rebuild", "--data-dir", "d", "--state", "a"});
  ASSERT_TRUE(read.ok) << read.error;
  EXPECT_EQ(read.line.options.rest.size(), 4U);
}

TEST(CommandLine, WatchMayComeWithoutAValue) {
  EXPECT_EQ(ReadLine({"status"}).line.options.status.watch_s, 0U);
  EXPECT_EQ(ReadLine({"status", "--watch"}).line.options.status.watch_s, 2U);
  EXPECT_EQ(ReadLine({"status", "--watch", "--json"}).line.options.status.watch_s, 2U);
  EXPECT_EQ(ReadLine({"status", "--watch", "5"}).line.options.status.watch_s, 5U);
}

TEST(CommandLine, ThePasswordMayComeFromTheEnvironment) {
  setenv("ONETRIP_PASSWORD", "p", 1);
  EXPECT_EQ(ReadLine({"status"}).line.options.status.password, "p");
  EXPECT_EQ(ReadLine({"check", "--password", "q"}).line.options.check.password, "q");
  unsetenv("ONETRIP_PASSWORD");
}

TEST(CommandLine, WhatIsWrongIsNamedWithWhatIsNear) {
  struct Case {
    std::vector<const char*> arguments;
    const char* error;
  };
  for (const Case& c : {
           Case{{}, "a command is needed: up, down, status, "},
           Case{{"stauts"}, "unknown command 'stauts'; did you mean status?"},
           Case{{"node"}, "node needs one of add, drain, keep, accept-loss"},
           Case{{"node", "drian"}, "unknown command 'node drian'; did you mean node drain?"},
           Case{{"xyzzy"}, "unknown command 'xyzzy'; see onetrip help"},
           Case{{"up", "--memroy", "1GiB"}, "unknown flag '--memroy'; did you mean --memory?"},
           Case{{"up", "--lease-ms", "1"}, "'--lease-ms', which only onetrip-master takes"},
           Case{{"up", "--memory", "1MiB"}, "--memory must be 16 MiB to 64 TiB, not '1MiB'"},
           Case{{"up", "--threads", "65"}, "--threads must be 1 to 64, not '65'"},
           Case{{"up", "--replicas", "6"}, "--replicas must be 1 to 5, not '6'"},
           Case{{"up", "--persistent=yes"}, "--persistent takes no value"},
           Case{{"restart"}, "NAME is missing; see onetrip help restart"},
           Case{{"down", "now"}, "unknown argument 'now'"},
           Case{{"status", "--dir", "d", "--master", "h:1"}, "--dir and --master"},
       }) {
    const Read read = ReadLine(c.arguments);
    EXPECT_FALSE(read.ok) << c.error;
    EXPECT_THAT(read.error, HasSubstr(c.error));
  }
}

TEST(CommandLine, HelpIsOfACommandOfAGroupOrOfAll) {
  EXPECT_TRUE(ReadLine({"--help"}).line.help);
  EXPECT_EQ(ReadLine({"--help"}).line.command, nullptr);
  EXPECT_EQ(ReadLine({"node", "--help"}).line.topic, "node");
  const Read read = ReadLine({"node", "drain", "--help"});
  EXPECT_TRUE(read.line.help);
  EXPECT_STREQ(read.line.command->text.name, "node drain");
  EXPECT_TRUE(ReadLine({"--version"}).line.version);
}

TEST(ToolCommands, EveryCommandHasTextsAndEveryFlagsDefaultIsLegal) {
  for (const ToolCommand& command : ToolCommands()) {
    EXPECT_STRNE(command.text.summary, "") << command.text.name;
    EXPECT_STRNE(command.text.help, "") << command.text.name;
    EXPECT_EQ(command.set_word != nullptr, *command.text.words != '\0' && !command.hands_on)
        << command.text.name;
    for (const ToolFlag& flag : command.flags) {
      EXPECT_STRNE(flag.row.help, "") << flag.row.name;
      std::string error;
      EXPECT_TRUE(*flag.row.default_text == '\0' ||
                  CheckParameter(flag.row, flag.row.default_text, &error))
          << flag.row.name << " " << error;
    }
  }
}

}  // namespace
}  // namespace onetrip
