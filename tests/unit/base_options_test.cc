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

constexpr ParameterUser kUsers[] = {kUserAgent, kUserMemnode, kUserMaster};

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

// Lines that were broken between words, as one.
std::string WithoutBreaks(const std::string& text) {
  std::string joined;
  for (const char c : text) {
    if (c == '\n') {
      joined += ' ';
    } else if (c != ' ' || joined.empty() || joined.back() != ' ') {
      joined += c;
    }
  }
  return joined;
}

TEST(AgentOptions, DefaultsWithoutArguments) {
  const auto parsed = Parse({});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.port, 6379U);
  EXPECT_EQ(parsed.options.bind, "127.0.0.1");
  EXPECT_EQ(parsed.options.engine, "swarm");
  EXPECT_EQ(parsed.options.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(parsed.options.cache_bytes, 0U);
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
      {{"--memory", "lots"},
       "--memory must be a size such as 64mb or 1GiB, 8 MiB to 64 TiB, not 'lots'"},
      {{"--memory", "1k"}, "--memory must be 8 MiB to 64 TiB, not '1k'"},
      {{"--engine", "paxos"}, "--engine must be one of swarm|snapshot|raw|abd, not 'paxos'"},
      {{"--fabric", "both"}, "--fabric must be one of auto|shm|tcp|verbs, not 'both'"},
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

TEST(AgentOptions, UnknownNamesComeWithTheNearestKnownOne) {
  EXPECT_EQ(Parse({"--memroy", "1GiB"}).message,
            "onetrip-agent: unknown flag '--memroy'; did you mean --memory?");
  EXPECT_EQ(Parse({"-port", "1"}).message,
            "onetrip-agent: unknown flag '-port'; did you mean --port?");
  EXPECT_EQ(Parse({"--xyzzy"}).message, "onetrip-agent: unknown flag '--xyzzy'; see --help");
  EXPECT_EQ(Parse({"--lease-ms=1"}).message,
            "onetrip-agent: unknown flag '--lease-ms', which only onetrip-master takes");
  EXPECT_THAT(Parse({"--engine", "swram"}).message, HasSubstr("; did you mean swarm?"));
  {
    const Environment typo("ONETRIP_MEMROY", "1GiB");
    EXPECT_EQ(Parse({}).message,
              "onetrip-agent: unknown variable ONETRIP_MEMROY in the environment; did you mean "
              "ONETRIP_MEMORY?");
    EXPECT_EQ(Parse({"--version"}).action, ParseAction::kPrint);
  }
  // Another program, `onetrip status` and a script have these.
  const Environment lease("ONETRIP_LEASE_MS", "x");
  const Environment password("ONETRIP_PASSWORD", "x");
  const Environment seed("ONETRIP_NEMESIS_SEED", "x");
  EXPECT_EQ(Parse({}).action, ParseAction::kRun);
}

TEST(AgentOptions, AnErrorInTheFileNamesFileAndLine) {
  struct Case {
    const char* line;
    const char* error;
  };
  for (const Case& c : {
           Case{"memroy = \"1GiB\"", "unknown key 'memroy'; did you mean memory?"},
           Case{"lease-ms = 5", "unknown key 'lease-ms', which only onetrip-master takes"},
           Case{"memory = \"1MiB\"", "memory must be 8 MiB to 64 TiB, not '1MiB'"},
           Case{"memory = \"1GiB", "a closing \" is missing"},
           Case{"port = 1.5", "port must be 0 to 65535, not '1.5'"},
           Case{"protected-mode = maybe",
                "protected-mode: what is no number is written in quotes: "
                "\"maybe\""},
       }) {
    const ConfigFile file(std::string("# one\nthreads = 1\n") + c.line + "\n");
    // Also where a flag wins over what the file says.
    for (const std::vector<const char*>& more :
         {std::vector<const char*>{}, {"--memory", "1GiB", "--port", "1"}}) {
      std::vector<const char*> arguments = {"--config", file.path()};
      arguments.insert(arguments.end(), more.begin(), more.end());
      EXPECT_EQ(Parse(arguments).message,
                "onetrip-agent: " + std::string(file.path()) + ":3: " + c.error);
    }
  }
}

TEST(AgentOptions, AFilesTextsAreThoseThatTomlMeans) {
  const ConfigFile file(
      "requirepass = \"a#b \\\"c\\\"\"\nprotected-mode = false\nunixsocket = '/tmp/\\x'\n");
  const auto parsed = Parse({"--config", file.path()});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.requirepass, "a#b \"c\"");
  EXPECT_EQ(parsed.options.protected_mode, "no");
  EXPECT_EQ(parsed.options.unixsocket, "/tmp/\\x");
}

TEST(AgentOptions, WhatOnlyConfigSetCouldSayBeforeIsAFlagToo) {
  const auto parsed = Parse({"--slowlog-log-slower-than", "-1", "--slowlog-max-len", "7",
                             "--latency-monitor-threshold", "100"});
  ASSERT_EQ(parsed.action, ParseAction::kRun) << parsed.message;
  EXPECT_EQ(parsed.options.slow_call_us, -1);
  EXPECT_EQ(parsed.options.slow_calls_max, 7U);
  EXPECT_EQ(parsed.options.latency_threshold_ms, 100U);
}

TEST(AgentOptions, AFlagTakesItsValueBehindItOrBehindAnEqualsSign) {
  EXPECT_EQ(Parse({"--requirepass=--x=y"}).options.requirepass, "--x=y");
  EXPECT_EQ(Parse({"--requirepass="}).options.requirepass, "");
  EXPECT_EQ(Parse({"--requirepass", "-x"}).options.requirepass, "-x");
  EXPECT_EQ(Parse({"--requirepass", "--port", "1"}).message,
            "onetrip-agent: --requirepass needs a value; one that begins with -- is given as "
            "--requirepass=VALUE");
  EXPECT_EQ(Parse({"--port", "1", "--port=2"}).message,
            "onetrip-agent: --port is given twice; keep one");
  EXPECT_EQ(Parse({"--", "--port"}).message,
            "onetrip-agent: unknown argument '--port'; see --help");
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
  // Not an option of this program, whichever other program may have it.
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
      {{"--master", "h:1", "--fabric", "auto"},
       "--fabric must be one of shm|tcp|both|verbs, not 'auto'"},
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
      {{"--data-dir", "/d", "--lease-ms", "99"},
       "--lease-ms must be 100 to 60000 ms (1 min), not '99'"},
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
    for (const ParameterRow& row : ParameterTable()) {
      const std::string flag = std::string("\n  --") + row.name + " ";
      if ((row.users & kUsers[i]) != 0) {
        EXPECT_THAT(texts[i], HasSubstr(flag)) << row.name;
        EXPECT_THAT(WithoutBreaks(texts[i]), HasSubstr(row.help)) << row.name;
      } else if (FindParameter(kUsers[i], row.name) == nullptr) {
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

}  // namespace
}  // namespace onetrip
