#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/options.h"
#include "client_core/base/parameter_table.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename Options>
struct Parsed {
  ParseAction action;
  Options options;
  std::string message;
};

template <typename Options>
Parsed<Options> ParseBy(ParseAction (*parse)(int, const char* const*, Options*, std::string*),
                        std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  Parsed<Options> parsed;
  parsed.action =
      parse(static_cast<int>(arguments.size()), arguments.data(), &parsed.options, &parsed.message);
  return parsed;
}

Parsed<AgentOptions> Parse(const std::vector<const char*>& arguments) {
  return ParseBy(ParseAgentOptions, arguments);
}
Parsed<MemnodeOptions> ParseMemnode(const std::vector<const char*>& arguments) {
  return ParseBy(ParseMemnodeOptions, arguments);
}
Parsed<MasterOptions> ParseMaster(const std::vector<const char*>& arguments) {
  return ParseBy(ParseMasterOptions, arguments);
}

constexpr OptionUser kUsers[] = {kUserAgent, kUserMemnode, kUserMaster};

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
  const auto parsed = Parse({});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.port, 6379U);
  EXPECT_EQ(parsed.options.bind, "127.0.0.1");
  EXPECT_EQ(parsed.options.engine, "swarm");
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(parsed.options.location_cache_bytes, uint64_t{64} << 20);
  EXPECT_EQ(parsed.options.op_timeout_ms, 5000U);
  EXPECT_EQ(parsed.options.wait_polls_max, 64U);
  EXPECT_EQ(parsed.options.output_limits.pubsub.soft_s, 60U);
  EXPECT_EQ(parsed.options.bulk_bytes_max, uint64_t{512} << 20);
  EXPECT_EQ(parsed.options.large_value_bytes, uint64_t{1} << 30);
  EXPECT_EQ(parsed.options.master, "");
  EXPECT_EQ(parsed.options.fabric, "auto");
  EXPECT_EQ(parsed.options.secret_file, "");
  EXPECT_EQ(parsed.options.connect_timeout_ms, 10'000U);
  EXPECT_EQ(parsed.options.busy_poll_us, 0U);
}

TEST(AgentOptions, FlagsFillTheFields) {
  const auto parsed = Parse({"--port", "7000", "--memory=64mb", "--engine", "raw", "--threads", "2",
                             "--unixsocketperm", "700", "--requirepass", "a b"});
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
  const auto parsed = Parse({"--config", file.path(), "--op-timeout-ms", "8"});
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
      {{"--engine", "paxos"}, "--engine must be one of swarm|snapshot|raw|abd, not 'paxos'"},
      {{"--fabric", "both"}, "--fabric must be one of auto|shm|tcp, not 'both'"},
      {{"--master", "somewhere"}, "--master must be HOST:PORT, not 'somewhere'"},
      {{"--listen", "127.0.0.1:1"}, "'--listen'"},
      {{"--unixsocketperm", "8"}, "--unixsocketperm must be an octal mode"},
      {{"--client-output-buffer-limit", "normal 1 2"}, "HARD SOFT SECONDS"},
      {{"--config", "/"}, "cannot read config file /"},
      {{"--config", "/nonexistent/x.toml"}, "cannot read config file /nonexistent/x.toml"},
  };
  for (const Case& c : cases) {
    const auto parsed = Parse(c.arguments);
    EXPECT_EQ(parsed.action, ParseAction::kFail) << c.part;
    EXPECT_THAT(parsed.message, HasSubstr(c.part));
    EXPECT_THAT(parsed.message, Not(HasSubstr("\n")));
  }
}

TEST(AgentOptions, UnknownConfigKeysAndSectionsAreErrors) {
  for (const char* text : {"prot = 1\n", "[agent]\nport = 1\n", "config = \"x\"\n",
                           "port = [1, 2]\n", "port = 1\nport = 2\n"}) {
    const ConfigFile file(text);
    const auto parsed = Parse({"--config", file.path()});
    EXPECT_EQ(parsed.action, ParseAction::kFail) << text;
    EXPECT_THAT(parsed.message, HasSubstr(file.path()));
  }
}

TEST(AgentOptions, EnvironmentErrorsNameTheVariable) {
  const Environment port("ONETRIP_PORT", "x");
  const auto parsed = Parse({});
  EXPECT_EQ(parsed.action, ParseAction::kFail);
  EXPECT_THAT(parsed.message, HasSubstr("ONETRIP_PORT must be 0 to 65535, not 'x'"));
}

TEST(MemnodeOptions, DefaultsAndFlags) {
  auto parsed = ParseMemnode({"--master", "10.0.0.1:7400"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.master, "10.0.0.1:7400");
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(parsed.options.fabric, "both");
  EXPECT_EQ(parsed.options.listen, "127.0.0.1:0");
  EXPECT_EQ(parsed.options.socket, "");
  EXPECT_EQ(parsed.options.backing, "");
  EXPECT_EQ(parsed.options.connect_timeout_ms, 10'000U);
  EXPECT_EQ(parsed.options.log_level, "info");

  const ConfigFile file(
      "master = \"[::1]:7400\"\nmemory = \"64MiB\"\nfabric = \"tcp\"\nlisten = \"10.0.0.1:7500\"\n"
      "backing = \"/b\"\nsecret-file = \"/s\"\n");
  const Environment busy("ONETRIP_BUSY_POLL_US", "20");
  // Not an option of this program, whoever else may have it.
  const Environment port("ONETRIP_PORT", "x");
  parsed = ParseMemnode({"--config", file.path(), "--fabric", "shm", "--socket", "/n.sock"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.master, "[::1]:7400");
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{64} << 20);
  EXPECT_EQ(parsed.options.fabric, "shm");
  EXPECT_EQ(parsed.options.listen, "10.0.0.1:7500");
  EXPECT_EQ(parsed.options.socket, "/n.sock");
  EXPECT_EQ(parsed.options.backing, "/b");
  EXPECT_EQ(parsed.options.secret_file, "/s");
  EXPECT_EQ(parsed.options.busy_poll_us, 20U);
}

TEST(MasterOptions, DefaultsAndFlags) {
  auto parsed = ParseMaster({"--data-dir", "/d"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.listen, "127.0.0.1:7400");
  EXPECT_EQ(parsed.options.data_dir, "/d");
  EXPECT_EQ(parsed.options.replicas, 3U);
  EXPECT_EQ(parsed.options.nodes, 3U);
  EXPECT_EQ(parsed.options.lease_ms, 1000U);
  EXPECT_EQ(parsed.options.replace_node_after_s, 10U);
  EXPECT_EQ(parsed.options.secret_file, "");

  const Environment data("ONETRIP_DATA_DIR", "/e");
  parsed =
      ParseMaster({"--listen", "0.0.0.0:1", "--replicas", "2", "--nodes", "5", "--lease-ms", "100",
                   "--replace-node-after-s", "0", "--secret-file", "/s", "--log-level", "off"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.listen, "0.0.0.0:1");
  EXPECT_EQ(parsed.options.data_dir, "/e");
  EXPECT_EQ(parsed.options.replicas, 2U);
  EXPECT_EQ(parsed.options.nodes, 5U);
  EXPECT_EQ(parsed.options.lease_ms, 100U);
  EXPECT_EQ(parsed.options.replace_node_after_s, 0U);
  EXPECT_EQ(parsed.options.secret_file, "/s");
  EXPECT_EQ(parsed.options.log_level, "off");
}

TEST(ProgramOptions, EveryErrorOfTheOtherProgramsIsOneLineThatNamesItsSource) {
  struct Case {
    std::vector<const char*> arguments;
    const char* part;
  };
  const Case memnode[] = {
      {{}, "onetrip-memnode: --master must be given"},
      {{"--master", ""}, "--master must be given"},
      {{"--master", "h:1", "--memory", "1MiB"}, "--memory"},
      {{"--master", "h:1", "--fabric", "auto"}, "--fabric must be one of shm|tcp|both, not 'auto'"},
      {{"--master", "h:1", "--listen", "7500"}, "--listen must be HOST:PORT, not '7500'"},
      {{"--master", "h:1", "--port", "1"}, "'--port'"},
      {{"--master", "h:1", "--data-dir", "/d"}, "'--data-dir'"},
  };
  for (const Case& c : memnode) {
    const auto parsed = ParseMemnode(c.arguments);
    EXPECT_EQ(parsed.action, ParseAction::kFail) << c.part;
    EXPECT_THAT(parsed.message, HasSubstr(c.part));
    EXPECT_THAT(parsed.message, Not(HasSubstr("\n")));
  }
  const Case master[] = {
      {{}, "onetrip-master: --data-dir must be given"},
      {{"--data-dir", "/d", "--replicas", "6"}, "--replicas must be 1 to 5, not '6'"},
      {{"--data-dir", "/d", "--nodes", "0"}, "--nodes must be 1 to 256, not '0'"},
      {{"--data-dir", "/d", "--lease-ms", "99"}, "--lease-ms must be 100 to 60000, not '99'"},
      {{"--data-dir", "/d", "--master", "h:1"}, "'--master'"},
  };
  for (const Case& c : master) {
    const auto parsed = ParseMaster(c.arguments);
    EXPECT_EQ(parsed.action, ParseAction::kFail) << c.part;
    EXPECT_THAT(parsed.message, HasSubstr(c.part));
    EXPECT_THAT(parsed.message, Not(HasSubstr("\n")));
  }
}

TEST(ProgramOptions, AKeyOfAnotherProgramIsUnknownInAConfigFile) {
  const ConfigFile file("master = \"h:1\"\nport = 1\n");
  const auto parsed = ParseMemnode({"--config", file.path()});
  EXPECT_EQ(parsed.action, ParseAction::kFail);
  EXPECT_THAT(parsed.message, HasSubstr("unknown key 'port'"));
}

TEST(ProgramOptions, HelpNamesEveryOptionAndNoOther) {
  // Also without what must be given.
  const std::string texts[] = {Parse({"--help"}).message, ParseMemnode({"--help"}).message,
                               ParseMaster({"--help"}).message};
  for (size_t i = 0; i < std::size(kUsers); ++i) {
    for (const OptionRow& row : OptionTable()) {
      const std::string flag = std::string("\n  --") + row.name + " ";
      if ((row.users & kUsers[i]) != 0) {
        EXPECT_THAT(texts[i], HasSubstr(flag)) << row.name;
        EXPECT_THAT(texts[i], HasSubstr(row.help)) << row.name;
      } else if (FindOption(kUsers[i], row.name) == nullptr) {
        EXPECT_THAT(texts[i], Not(HasSubstr(flag))) << row.name;
      }
    }
  }
  EXPECT_THAT(texts[1], HasSubstr("--master <HOST:PORT>  (required)"));
}

TEST(ProgramOptions, VersionIsPrinted) {
  EXPECT_EQ(Parse({"--version"}).action, ParseAction::kPrint);
  EXPECT_THAT(Parse({"--version"}).message, HasSubstr("onetrip-agent 0."));
  EXPECT_THAT(ParseMemnode({"--version"}).message, HasSubstr("onetrip-memnode 0."));
  EXPECT_THAT(ParseMaster({"--version"}).message, HasSubstr("onetrip-master 0."));
}

template <typename Options>
void ExpectLegalDefaults(OptionUser user, const Options& defaults) {
  for (const OptionRow& row : OptionTable()) {
    if ((row.users & user) == 0) continue;
    Options options = defaults;
    std::string error;
    EXPECT_TRUE(SetOption(row, OptionText(row, defaults), &options, &error)) << row.name << error;
    EXPECT_EQ(OptionText(row, options), OptionText(row, defaults)) << row.name;
  }
}

TEST(OptionTable, EveryDefaultIsLegalAndSurvivesItsOwnText) {
  ExpectLegalDefaults(kUserAgent, DefaultAgentOptions());
  ExpectLegalDefaults(kUserMemnode, DefaultMemnodeOptions());
  ExpectLegalDefaults(kUserMaster, DefaultMasterOptions());
}

TEST(OptionTable, NamesAndAliasesAreUniqueInEachProgram) {
  for (const OptionRow& row : OptionTable()) {
    for (const OptionUser user : kUsers) {
      if ((row.users & user) != 0) {
        EXPECT_EQ(FindOption(user, row.name), &row) << row.name;
      }
    }
    if (*row.config_alias != '\0') {
      EXPECT_EQ(FindOptionByConfigAlias(row.config_alias), &row);
      EXPECT_EQ(row.users, kUserAgent) << row.name;
    }
  }
  EXPECT_EQ(FindOption(kUserAgent, "nothing"), nullptr);
  EXPECT_EQ(FindOption(kUserMaster, "port"), nullptr);
  EXPECT_EQ(FindOptionByConfigAlias(""), nullptr);
}

TEST(OptionTable, ARowFillsAFieldOfExactlyTheProgramsThatHaveIt) {
  for (const OptionRow& row : OptionTable()) {
    if (row.name == std::string_view("config")) continue;
    EXPECT_EQ(row.fields.agent.index() != 0, (row.users & kUserAgent) != 0) << row.name;
    EXPECT_EQ(row.fields.memnode.index() != 0, (row.users & kUserMemnode) != 0) << row.name;
    EXPECT_EQ(row.fields.master.index() != 0, (row.users & kUserMaster) != 0) << row.name;
  }
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

TEST(ParseHostPort, ReadsNamesAndBothKindsOfAddresses) {
  struct Case {
    const char* text;
    const char* host;
    uint16_t port;
  };
  std::string host;
  uint16_t port = 0;
  for (const Case& c : {Case{"127.0.0.1:7400", "127.0.0.1", 7400}, Case{"[::1]:0", "::1", 0},
                        Case{"a.example:65535", "a.example", 65535}}) {
    ASSERT_TRUE(ParseHostPort(c.text, &host, &port)) << c.text;
    EXPECT_EQ(host, c.host);
    EXPECT_EQ(port, c.port);
  }
  for (const char* text : {"", ":", "h", "h:", ":1", "h:65536", "h:-1", "h:+1", "h: 1", "h:1x",
                           "::1:80", "[::1]", "[::1]80", "[]:1", "[h:1", "h]:1", "[a]:1"}) {
    EXPECT_FALSE(ParseHostPort(text, &host, &port)) << text;
  }
  EXPECT_EQ(host, "a.example") << "left alone";
}

}  // namespace
}  // namespace onetrip
