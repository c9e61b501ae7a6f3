#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "client_core/base/option_table.h"
#include "client_core/base/options.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Parsed {
  ParseAction action;
  AgentOptions options;
  std::string message;
};

Parsed Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "onetrip-agent");
  Parsed parsed;
  parsed.action = ParseAgentOptions(static_cast<int>(arguments.size()), arguments.data(),
                                    &parsed.options, &parsed.message);
  return parsed;
}

// A config file that is gone after the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "onetrip_options_test_" + std::to_string(getpid()) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  [[nodiscard]] const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

// An environment variable that is unset after the test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(AgentOptions, DefaultsWithoutArguments) {
  const Parsed parsed = Parse({});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.port, 6379U);
  EXPECT_EQ(parsed.options.bind, "127.0.0.1");
  EXPECT_EQ(parsed.options.engine, "snapshot");
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(parsed.options.location_cache_bytes, uint64_t{64} << 20);
  EXPECT_EQ(parsed.options.op_timeout_ms, 5000U);
  EXPECT_EQ(parsed.options.wait_polls_max, 64U);
  EXPECT_EQ(parsed.options.output_limits.pubsub.soft_s, 60U);
  EXPECT_EQ(parsed.options.bulk_bytes_max, uint64_t{1} << 20);
}

TEST(AgentOptions, FlagsFillTheFields) {
  const Parsed parsed = Parse({"--port", "7000", "--memory=64mb", "--engine", "raw", "--threads",
                               "2", "--unixsocketperm", "700", "--requirepass", "a b"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.port, 7000U);
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{64} << 20);
  EXPECT_EQ(parsed.options.engine, "raw");
  EXPECT_EQ(parsed.options.threads, 2U);
  EXPECT_EQ(parsed.options.unixsocketperm, 0700U);
  EXPECT_EQ(parsed.options.requirepass, "a b");
}

TEST(AgentOptions, FlagsWinOverEnvironmentWinsOverFile) {
  const ConfigFile file("# comment\nport = 1\nthreads = 3\nmemory = \"16MiB\"\n");
  const Environment port("ONETRIP_PORT", "2");
  const Environment timeout("ONETRIP_OP_TIMEOUT_MS", "7");
  const Parsed parsed = Parse({"--config", file.path(), "--op-timeout-ms", "8"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.port, 2U);
  EXPECT_EQ(parsed.options.threads, 3U);
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{16} << 20);
  EXPECT_EQ(parsed.options.op_timeout_ms, 8U);
}

TEST(AgentOptions, EveryErrorIsOneLineThatNamesItsSource) {
  struct Case {
    std::vector<const char*> arguments;
    const char* part;
  };
  const Case cases[] = {
      {{"--prot", "1"}, "'--prot'"},
      {{"serve"}, "'serve'"},
      {{"--port"}, "--port"},
      {{"--port", "1", "--port", "2"}, "--port"},
      {{"--port", "65536"}, "--port must be 0 to 65535, not '65536'"},
      {{"--port", "-1"}, "--port"},
      {{"--port", "7k"}, "--port"},
      {{"--memory", "lots"}, "--memory must be a size such as 64mb or 1GiB"},
      {{"--memory", "1k"}, "--memory"},
      {{"--engine", "paxos"}, "--engine must be one of snapshot|raw, not 'paxos'"},
      {{"--unixsocketperm", "8"}, "--unixsocketperm must be an octal mode"},
      {{"--client-output-buffer-limit", "normal 1 2"}, "HARD SOFT SECONDS"},
      {{"--config", "/"}, "cannot read config file /"},
      {{"--config", "/nonexistent/x.toml"}, "cannot read config file /nonexistent/x.toml"},
  };
  for (const Case& c : cases) {
    const Parsed parsed = Parse(c.arguments);
    EXPECT_EQ(parsed.action, ParseAction::kFail) << c.part;
    EXPECT_THAT(parsed.message, HasSubstr(c.part));
    EXPECT_THAT(parsed.message, Not(HasSubstr("\n")));
  }
}

TEST(AgentOptions, UnknownConfigKeysAndSectionsAreErrors) {
  for (const char* text : {"prot = 1\n", "[agent]\nport = 1\n", "config = \"x\"\n",
                           "port = [1, 2]\n", "port = 1\nport = 2\n"}) {
    const ConfigFile file(text);
    const Parsed parsed = Parse({"--config", file.path()});
    EXPECT_EQ(parsed.action, ParseAction::kFail) << text;
    EXPECT_THAT(parsed.message, HasSubstr(file.path()));
  }
}

TEST(AgentOptions, EnvironmentErrorsNameTheVariable) {
  const Environment port("ONETRIP_PORT", "x");
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.action, ParseAction::kFail);
  EXPECT_THAT(parsed.message, HasSubstr("ONETRIP_PORT must be 0 to 65535, not 'x'"));
}

TEST(AgentOptions, HelpNamesEveryOptionOfTheAgent) {
  const Parsed parsed = Parse({"--help"});
  ASSERT_EQ(parsed.action, ParseAction::kPrint);
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & kUserAgent) == 0) continue;
    EXPECT_THAT(parsed.message, HasSubstr(std::string("  --") + row.name)) << row.name;
    EXPECT_THAT(parsed.message, HasSubstr(row.help)) << row.name;
  }
}

TEST(AgentOptions, VersionIsPrinted) {
  const Parsed parsed = Parse({"--version"});
  EXPECT_EQ(parsed.action, ParseAction::kPrint);
  EXPECT_THAT(parsed.message, HasSubstr("onetrip-agent 0."));
}

TEST(OptionTable, EveryDefaultIsLegalAndSurvivesItsOwnText) {
  const AgentOptions defaults = DefaultAgentOptions();
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & kUserAgent) == 0) continue;
    AgentOptions options = defaults;
    std::string error;
    EXPECT_TRUE(SetOption(row, OptionText(row, defaults), &options, &error)) << row.name << error;
    EXPECT_EQ(OptionText(row, options), OptionText(row, defaults)) << row.name;
  }
}

TEST(OptionTable, NamesAndAliasesAreUnique) {
  for (const OptionRow& row : OptionTable()) {
    EXPECT_EQ(FindOption(row.name), &row);
    if (*row.config_alias != '\0') {
      EXPECT_EQ(FindOptionByConfigAlias(row.config_alias), &row);
    }
  }
  EXPECT_EQ(FindOption("nothing"), nullptr);
  EXPECT_EQ(FindOptionByConfigAlias(""), nullptr);
}

TEST(OptionTable, OutputLimitsAreWrittenAsRedisDoes) {
  AgentOptions options = DefaultAgentOptions();
  const OptionRow* row = FindOptionByConfigAlias("client-output-buffer-limit");
  ASSERT_NE(row, nullptr);
  std::string error;
  ASSERT_TRUE(SetOption(*row, "normal 1mb 0 0  REPLICA 1 2 3", &options, &error)) << error;
  EXPECT_EQ(OptionText(*row, options), "normal 1048576 0 0 slave 1 2 3 pubsub 33554432 8388608 60");
  EXPECT_FALSE(SetOption(*row, "normal 1 0 0 other 1 2 3", &options, &error));
  EXPECT_EQ(options.output_limits.normal.hard_bytes, 1048576U);
}

TEST(ParseSize, ReadsUnitsAndRefusesTheRest) {
  uint64_t bytes = 0;
  const auto read = [&](std::string_view text) {
    return ParseSize(text, &bytes) ? static_cast<int64_t>(bytes) : -1;
  };
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read("123"), 123);
  EXPECT_EQ(read("1k"), 1000);
  EXPECT_EQ(read("1kb"), 1024);
  EXPECT_EQ(read("64MB"), 64 << 20);
  EXPECT_EQ(read("1GiB"), 1 << 30);
  EXPECT_EQ(read("2t"), 2'000'000'000'000);
  for (const char* text : {"", "kb", "-1", "+1", " 1", "1 kb", "1.5gb", "1x", "0x10",
                           "99999999999999999999", "18014398509481984kb"}) {
    EXPECT_EQ(read(text), -1) << text;
  }
}

}  // namespace
}  // namespace onetrip
