// Numbers, globs, inline lines and configuration values: the pure text rules.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/config_values.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/set_options.h"
#include "redis_compat/protocol/inline_split.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/glob.h"

namespace onetrip {
namespace {

TEST(ParseInt64, TakesCanonicalIntegersOnly) {
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{9}, int64_t{10}, int64_t{1234567890123},
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(ParseInt64(std::to_string(value)), value);
  }
  for (const std::string_view text :
       {"", "-", "+1", "01", "-0", "-01", "00", " 1", "1 ", "1.0", "0x1", "a", "--1",
        "9223372036854775808", "-9223372036854775809", "99999999999999999999999"}) {
    EXPECT_EQ(ParseInt64(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseInt64(std::string_view("1\0", 2)), std::nullopt);
}

std::string Formatted(long double value) {
  char text[kLongDoubleTextMax];
  return std::string(text, FormatLongDouble(value, text));
}

TEST(LongDouble, ReadsWhatStrtoldReads) {
  EXPECT_EQ(ParseLongDouble("10.5"), 10.5L);
  EXPECT_EQ(ParseLongDouble("-5e3"), -5000.0L);
  EXPECT_EQ(ParseLongDouble("0x10"), 16.0L);
  EXPECT_EQ(ParseLongDouble("inf"), std::numeric_limits<long double>::infinity());
  for (const std::string_view text : {"", " 1", "1 ", "abc", "1.5x", "nan", "1e9999", "1e-9999"}) {
    EXPECT_EQ(ParseLongDouble(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseLongDouble(std::string(kLongDoubleTextMax, '1')), std::nullopt);
}

TEST(LongDouble, WritesWithoutTrailingZeros) {
  EXPECT_EQ(Formatted(0), "0");
  EXPECT_EQ(Formatted(-0.0L), "0");
  EXPECT_EQ(Formatted(3000), "3000");
  EXPECT_EQ(Formatted(10.6L), "10.6");
  EXPECT_EQ(Formatted(-0.00001L), "-0.00001");
  EXPECT_EQ(Formatted(0.1L + 0.2L), "0.3");
  EXPECT_EQ(Formatted(std::numeric_limits<long double>::max()).size(), 4933U);
}

TEST(Glob, MatchesAsRedisDoes) {
  struct Case {
    std::string_view pattern;
    std::string_view text;
    bool matches;
  };
  const std::vector<Case> cases = {
      {"", "", true},           {"*", "", false},       {"*", "abc", true},
      {"a*c", "abbc", true},    {"a*c", "abbd", false}, {"a?c", "abc", true},
      {"a?c", "ac", false},     {"[a-c]x", "bx", true}, {"[^a-c]x", "bx", false},
      {"[c-a]x", "bx", true},   {"[abc", "a", true},    {"\\*", "*", true},
      {"\\*", "a", false},      {"[\\]]", "]", true},   {"a**b*", "axxb", true},
      {"*a*b*", "xaxbx", true}, {"abc", "ABC", false},  {"a", "", false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(GlobMatch(each.pattern, each.text, GlobCase::kExact), each.matches)
        << each.pattern << " " << each.text;
  }
  EXPECT_TRUE(GlobMatch("MAX*", "maxmemory", GlobCase::kIgnore));
  EXPECT_TRUE(GlobMatch("[A-C]", "b", GlobCase::kIgnore));
}

TEST(Glob, ManyStarsDoNotTakeForEver) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(GlobMatch(pattern + "b", std::string(20'000, 'a'), GlobCase::kExact));
}

TEST(ConfigValues, ReadsMemoryWithUnits) {
  EXPECT_EQ(ParseMemory("1024"), 1024);
  EXPECT_EQ(ParseMemory("1k"), 1000);
  EXPECT_EQ(ParseMemory("2KB"), 2048);
  EXPECT_EQ(ParseMemory("1mb"), 1 << 20);
  EXPECT_EQ(ParseMemory("1GB"), 1 << 30);
  for (const std::string_view text : {"", "mb", "B"}) EXPECT_EQ(ParseMemory(text), 0) << text;
  for (const std::string_view text : {"-1", "x", "1tb", "1.5mb", "99999999999gb"}) {
    EXPECT_EQ(ParseMemory(text), std::nullopt) << text;
  }
}

TEST(ConfigValues, ShowsKeyspaceEventsInTheirOrder) {
  ParameterRow row;
  row.type = ParameterType::kKeyEvents;
  std::string canonical;
  std::string error;
  ASSERT_TRUE(CheckConfigValue(row, "", "KEA", &canonical, &error));
  EXPECT_EQ(canonical, "AKE");
  ASSERT_TRUE(CheckConfigValue(row, "", "xgE", &canonical, &error));
  EXPECT_EQ(canonical, "gxE");
  ASSERT_TRUE(CheckConfigValue(row, "", "", &canonical, &error));
  EXPECT_EQ(canonical, "");
  EXPECT_FALSE(CheckConfigValue(row, "", "q", &canonical, &error));
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < line.size()) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

TEST(SetOptions, RefusesContradictions) {
  for (const std::string_view line : {"NX XX", "XX NX", "EX", "EX 1 PX 1", "EX 1 KEEPTTL",
                                      "KEEPTTL EX 1", "FOO", "PERSIST", "EXAT 1 PXAT 1"}) {
    const std::vector<std::string_view> words = Split(line);
    ArgumentReader arguments(words);
    SetOptions options;
    ReadSetOptions(arguments, &options);
    EXPECT_FALSE(arguments.ok()) << line;
  }
  for (const std::string_view line : {"", "nx", "NX GET", "ex 1 EX 2", "KEEPTTL XX get", "NX NX"}) {
    const std::vector<std::string_view> words = Split(line);
    ArgumentReader arguments(words);
    SetOptions options;
    ReadSetOptions(arguments, &options);
    EXPECT_TRUE(arguments.ok()) << line;
  }
}

TEST(SetOptions, TurnsEveryUnitIntoADeadline) {
  constexpr uint64_t kNowMs = 1'000'000;
  const auto deadline = [](std::string_view line) {
    const std::vector<std::string_view> words = Split(line);
    ArgumentReader arguments(words);
    SetOptions options;
    ReadSetOptions(arguments, &options);
    EXPECT_TRUE(arguments.ok()) << line;
    uint64_t deadline_ms = 0;
    const char* const error =
        ReadDeadline(options.unit, options.expiry, kNowMs,
                     "ERR invalid expire time in 'set' command", &deadline_ms);
    return error == nullptr ? std::to_string(deadline_ms) : std::string(error);
  };
  EXPECT_EQ(deadline(""), "0");
  EXPECT_EQ(deadline("EX 10"), "1010000");
  EXPECT_EQ(deadline("PX 10"), "1000010");
  EXPECT_EQ(deadline("EXAT 10"), "10000");
  EXPECT_EQ(deadline("PXAT 10"), "10");
  EXPECT_EQ(deadline("EX x"), "ERR value is not an integer or out of range");
  for (const std::string_view line : {"EX 0", "PX -1", "EX 9223372036854775807",
                                      "PX 9223372036854775807", "EXAT 9223372036854775807"}) {
    EXPECT_EQ(deadline(line), "ERR invalid expire time in 'set' command") << line;
  }
}

}  // namespace
}  // namespace onetrip
