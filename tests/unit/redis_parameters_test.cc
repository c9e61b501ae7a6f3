#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

#include "client_core/base/options.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"
#include "redis_compat/parameters.h"

namespace onetrip {
namespace {

std::string Get(const ServerConfig& config, std::string_view name) { return config.Value(name); }

TEST(Parameters, ConfigHasTheDefaultsOfTheFlags) {
  const ServerConfig config;
  const AgentOptions options = DefaultAgentOptions();
  for (const ParameterRow& row : ParameterTable()) {
    if (row.config == ConfigUse::kNone) {
      EXPECT_FALSE(config.Knows(row.name)) << row.name;
      continue;
    }
    EXPECT_TRUE(config.Knows(row.name)) << row.name;
    if (row.users != 0) {
      EXPECT_EQ(Get(config, row.name), ParameterText(row, options)) << row.name;
    }
  }
}

// CONFIG SET and a flag take the number alike.
void ExpectSame(ServerConfig& config, const ParameterRow& row, const std::string& number,
                bool is_legal) {
  std::string canonical;
  std::string error;
  EXPECT_EQ(CheckParameter(row, number, &error), is_legal) << row.name << " " << number;
  EXPECT_EQ(config.SetByServer(row.name, number), is_legal) << row.name << " " << number;
}

TEST(Parameters, ConfigSetHasTheLimitsOfTheFlags) {
  ServerConfig config;
  for (const ParameterRow& row : ParameterTable()) {
    const bool is_number = row.type == ParameterType::kInteger || row.type == ParameterType::kSize;
    if (row.config == ConfigUse::kNone || row.users == 0 || !is_number) continue;
    ExpectSame(config, row, std::to_string(row.min), true);
    ExpectSame(config, row, std::to_string(row.min - 1), false);
    ExpectSame(config, row, std::to_string(row.max), true);
    if (row.max < std::numeric_limits<int64_t>::max()) {
      ExpectSame(config, row, std::to_string(row.max + 1), false);
    }
  }
}

TEST(Parameters, WhatWorkersReadFollowsTheValue) {
  ServerConfig config;
  EXPECT_EQ(config.max_clients(), 10'000U);
  EXPECT_EQ(config.databases(), 16U);
  EXPECT_EQ(config.slow_call_us(), 10'000);
  EXPECT_TRUE(config.protected_mode());
  EXPECT_EQ(config.bulk_max_bytes(), int64_t{512} << 20);
  EXPECT_EQ(config.query_buffer_max_bytes(), uint64_t{1} << 30);
  EXPECT_TRUE(config.SetByServer("protected-mode", "no"));
  EXPECT_TRUE(config.SetByServer("slowlog-log-slower-than", "-1"));
  EXPECT_TRUE(config.SetByServer("proto-max-bulk-len", "1mb"));
  EXPECT_TRUE(config.SetByServer("timeout", "5"));
  EXPECT_FALSE(config.protected_mode());
  EXPECT_EQ(config.slow_call_us(), -1);
  EXPECT_EQ(config.bulk_max_bytes(), 1 << 20);
  EXPECT_EQ(config.timeout_s(), 5U);
}

TEST(Parameters, RefusalsAreInRedissWords) {
  const ServerConfig config;
  const auto refusal = [&config](std::string_view name, std::string_view value) {
    std::string canonical;
    std::string error;
    return config.Check(name, value, &canonical, &error) ? "" : error;
  };
  EXPECT_EQ(refusal("timeout", "-1"), "argument must be between 0 and 2147483647 inclusive");
  EXPECT_EQ(refusal("timeout", "x"), "argument couldn't be parsed into an integer");
  EXPECT_EQ(refusal("maxclients", "0"), "argument must be between 1 and 4294967295 inclusive");
  EXPECT_EQ(refusal("proto-max-bulk-len", "1GiB"), "argument must be a memory value");
  EXPECT_EQ(refusal("protected-mode", "maybe"), "argument must be 'yes' or 'no'");
  EXPECT_EQ(refusal("sanitize-dump-payload", "x"),
            "argument(s) must be one of the following: no, yes, clients");
  EXPECT_EQ(refusal("port", "1"), "it is chosen when the agent starts");
  EXPECT_FALSE(config.IsMutable("databases"));
  EXPECT_FALSE(config.IsMutable("unixsocket"));
}

}  // namespace
}  // namespace onetrip
