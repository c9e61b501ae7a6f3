#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/config_file.h"
#include "client_core/base/nearest_name.h"
#include "client_core/base/options.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"

namespace onetrip {
namespace {

using ::testing::StartsWith;

constexpr ParameterUser kUsers[] = {kUserAgent, kUserMemnode, kUserMaster};

template <typename Options>
void ExpectLegalDefaults(ParameterUser user, const Options& defaults) {
  for (const ParameterRow& row : ParameterTable()) {
    if ((row.users & user) == 0) continue;
    Options options = defaults;
    std::string error;
    EXPECT_TRUE(SetParameter(row, ParameterText(row, defaults), &options, &error))
        << row.name << error;
    EXPECT_EQ(ParameterText(row, options), ParameterText(row, defaults)) << row.name;
  }
}

TEST(ParameterTable, EveryDefaultIsLegalAndSurvivesItsOwnText) {
  ExpectLegalDefaults(kUserAgent, DefaultAgentOptions());
  ExpectLegalDefaults(kUserMemnode, DefaultMemnodeOptions());
  ExpectLegalDefaults(kUserMaster, DefaultMasterOptions());
}

TEST(ParameterTable, NamesAreUniqueInEachProgramAndInConfig) {
  std::set<std::string> config_names;
  for (const ParameterRow& row : ParameterTable()) {
    for (const ParameterUser user : kUsers) {
      if ((row.users & user) != 0) {
        EXPECT_EQ(FindParameter(user, row.name), &row) << row.name;
      }
    }
    // CONFIG is the agent's.
    if (row.config != ConfigUse::kNone) {
      EXPECT_EQ(row.users & ~kUserAgent, 0) << row.name;
      for (const char* name : {row.name, row.second_name}) {
        if (*name == '\0') continue;
        EXPECT_TRUE(config_names.insert(name).second) << name;
      }
    }
    EXPECT_TRUE(row.users != 0 || row.config != ConfigUse::kNone) << row.name;
  }
  EXPECT_EQ(FindParameter(kUserAgent, "nothing"), nullptr);
  EXPECT_EQ(FindParameter(kUserMaster, "port"), nullptr);
}

TEST(ParameterTable, ARowFillsAFieldOfExactlyTheProgramsThatHaveIt) {
  for (const ParameterRow& row : ParameterTable()) {
    if (row.name == std::string_view("config")) continue;
    EXPECT_EQ(row.fields.agent.index() != 0, (row.users & kUserAgent) != 0) << row.name;
    EXPECT_EQ(row.fields.memnode.index() != 0, (row.users & kUserMemnode) != 0) << row.name;
    EXPECT_EQ(row.fields.master.index() != 0, (row.users & kUserMaster) != 0) << row.name;
  }
}

TEST(ParameterTable, AnOptionHasAHelpTextAndOneThatConfigChangesWhileItRunsALiveField) {
  for (const ParameterRow& row : ParameterTable()) {
    if (row.users != 0) {
      EXPECT_STRNE(row.help, "") << row.name;
      EXPECT_FALSE(std::string_view(row.help).ends_with('.')) << row.name;
    }
    EXPECT_TRUE(row.live == nullptr || row.config != ConfigUse::kNone) << row.name;
    EXPECT_TRUE(*row.fixed_because == '\0' || row.config == ConfigUse::kSet) << row.name;
    EXPECT_TRUE(*row.unit == '\0' || row.type != ParameterType::kSize) << row.name;
  }
}

TEST(ParameterValues, LimitsAreToldAsPeopleWriteThem) {
  const auto limits = [](ParameterUser user, const char* name) {
    return LimitsText(*FindParameter(user, name));
  };
  EXPECT_EQ(limits(kUserAgent, "memory"), "8 MiB to 64 TiB");
  EXPECT_EQ(limits(kUserMemnode, "memory"), "16 MiB to 64 TiB");
  EXPECT_EQ(limits(kUserAgent, "cache-memory"), "0 to 1 TiB");
  EXPECT_EQ(limits(kUserAgent, "client-query-buffer-limit"), "at least 1 MiB");
  EXPECT_EQ(limits(kUserMaster, "lease-ms"), "100 to 60000 ms (1 min)");
  EXPECT_EQ(limits(kUserMaster, "replace-node-after-s"), "0 to 86400 s (1 day)");
  EXPECT_EQ(limits(kUserAgent, "timeout"), "0 to 2147483647 s (68 years)");
  EXPECT_EQ(limits(kUserAgent, "port"), "0 to 65535");
  EXPECT_EQ(limits(kUserAgent, "unixsocketperm"), "0 to 777");
  EXPECT_EQ(limits(kUserAgent, "slowlog-log-slower-than"), "at least -1 us");
  EXPECT_EQ(limits(kUserAgent, "slowlog-max-len"), "");
  EXPECT_EQ(limits(kUserAgent, "engine"), "");
}

TEST(ParameterValues, SizesAndDurationsAreShownInTheirLargestUnit) {
  EXPECT_EQ(SizeText(0), "0 bytes");
  EXPECT_EQ(SizeText(1), "1 byte");
  EXPECT_EQ(SizeText(1000), "1000 bytes");
  EXPECT_EQ(SizeText(1536), "1536 bytes");
  EXPECT_EQ(SizeText(2048), "2 KiB");
  EXPECT_EQ(SizeText(uint64_t{64} << 40), "64 TiB");
  EXPECT_EQ(DurationText(0, "ms"), "0 ms");
  EXPECT_EQ(DurationText(999, "us"), "999 us");
  EXPECT_EQ(DurationText(1000, "us"), "1 ms");
  EXPECT_EQ(DurationText(90, "s"), "2 min");
  EXPECT_EQ(DurationText(3'600'000, "ms"), "1 h");
  EXPECT_EQ(DurationText(86'400, "s"), "1 day");
  EXPECT_EQ(DurationText(UINT64_MAX, "s"), "584942 years");
}

TEST(NearestName, IsTheLeastMistypedOneIfAnyIsNear) {
  const std::vector<std::string> known = {"memory", "master", "port", "op-timeout-ms", "timeout"};
  EXPECT_EQ(NearestName("memroy", known), "memory");
  EXPECT_EQ(NearestName("MEMORI", known), "memory");
  EXPECT_EQ(NearestName("prot", known), "port");
  EXPECT_EQ(NearestName("op_timeout_ms", known), "op-timeout-ms");
  EXPECT_EQ(NearestName("mem", known), "memory");
  EXPECT_EQ(NearestName("memory-size", known), "memory");
  EXPECT_EQ(NearestName("xyzzy", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'm'), known), "");
  EXPECT_EQ(NearestName("a", {}), "");
}

struct ConfigRead {
  std::vector<ConfigEntry> entries;
  std::string error;
};
ConfigRead ReadConfig(std::string_view text) {
  ConfigRead read;
  (void)ParseConfigText(text, &read.entries, &read.error);
  return read;
}

TEST(ConfigFile, ReadsStringsNumbersAndBooleans) {
  const ConfigRead read = ReadConfig(
      "# comment\r\n"
      "port = 6_379 # behind\n"
      "\n"
      "  requirepass=\"a#b \\\"\\\\\\u00e9\"\n"
      "bind = '127.0.0.1\\n'\t\n"
      "\"protected-mode\" = true\n"
      "slow = -1");
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.entries.size(), 5U);
  EXPECT_EQ(read.entries[0].line, 2);
  EXPECT_EQ(read.entries[0].text, "6379");
  EXPECT_EQ(read.entries[1].key, "requirepass");
  EXPECT_EQ(read.entries[1].text, "a#b \"\\\xc3\xa9");
  EXPECT_EQ(read.entries[2].text, "127.0.0.1\\n");
  EXPECT_EQ(read.entries[3].key, "protected-mode");
  EXPECT_TRUE(read.entries[3].is_boolean);
  EXPECT_EQ(read.entries[4].line, 7);
  EXPECT_EQ(read.entries[4].text, "-1");
}

TEST(ConfigFile, EveryErrorNamesItsLine) {
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& c : {
           Case{"a = 1\nb\n", "2: '=' is missing behind b"},
           Case{"a = 1\n\nmemory \"2GiB\"\n", "3: '=' is missing behind memory"},
           Case{"memory = \"2GiB\n", "1: a closing \" is missing"},
           Case{"bind = 'x\n", "1: a closing ' is missing"},
           Case{"memory = 2GiB\n", "1: memory: what is no number is written in quotes: \"2GiB\""},
           Case{"port = 1 2\n", "1: port takes one value; '2' is too much"},
           Case{"bind = \"a\" b\n", "1: bind takes one value; 'b' is too much"},
           Case{"port = [1, 2]\n", "1: port takes one value, no list"},
           Case{"port =\n", "1: port has no value"},
           Case{"port = # 5\n", "1: port has no value"},
           Case{"port = = 1\n", "1: port: what is no number"},
           Case{"[agent]\nport = 1\n", "1: options are in no section"},
           Case{"= 3\n", "1: a line must be KEY = VALUE"},
           Case{"port: 3\n", "1: '=' is missing behind port"},
           Case{"a = 1\nb = 2\na = 3\n", "3: a is given twice, in line 1 already"},
           Case{"a = \"\"\"x\n\"\"\"\n", "1: a value must be on one line"},
           Case{"a = \"\\q\"\n", "1: there is no such escape"},
           Case{"a = \"\\uD800\"\n", "1: there is no such escape"},
           Case{"a = \"\\", "1: there is no such escape"},
       }) {
    EXPECT_THAT(ReadConfig(c.text).error, StartsWith(c.error)) << c.text;
  }
}

TEST(ParameterTable, OutputLimitsAreWrittenAsRedisDoes) {
  AgentOptions options = DefaultAgentOptions();
  const ParameterRow* row = FindParameter(kUserAgent, "client-output-buffer-limit");
  ASSERT_NE(row, nullptr);
  std::string error;
  ASSERT_TRUE(SetParameter(*row, "normal 1mb 0 0  REPLICA 1 2 3", &options, &error)) << error;
  EXPECT_EQ(ParameterText(*row, options),
            "normal 1048576 0 0 slave 1 2 3 pubsub 33554432 8388608 60");
  EXPECT_FALSE(SetParameter(*row, "normal 1 0 0 other 1 2 3", &options, &error));
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
