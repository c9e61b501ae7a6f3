#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/base/rng.h"
#include "client_core/base/status.h"

namespace onetrip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Status, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    names.emplace(StatusCodeName(static_cast<StatusCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(StatusCode::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Status, ComparesByCodeAlone) {
  EXPECT_TRUE(Status::Ok().ok());
  EXPECT_EQ(Status(StatusCode::kCorrupt, "a"), Status(StatusCode::kCorrupt, "b"));
  EXPECT_FALSE(Status(StatusCode::kCorrupt).ok());
}

TEST(Result, HoldsAValueOrTheReasonForItsAbsence) {
  Result<std::unique_ptr<int>> value = std::make_unique<int>(7);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(**value, 7);
  const std::unique_ptr<int> moved = std::move(value.value());
  EXPECT_EQ(*moved, 7);
  const Result<int> absent = Status(StatusCode::kNotFound, "no such key");
  EXPECT_FALSE(absent.ok());
  EXPECT_STREQ(absent.status().message(), "no such key");
}

TEST(CheckDeathTest, NamesTheConditionAndAborts) {
  const int two = 2;
  CHECK(two == 2);
  EXPECT_DEATH(CHECK(two == 3), "base_core_test.cc:[0-9]+: CHECK failed: two == 3");
  const Result<int> absent = Status(StatusCode::kNotFound);
  EXPECT_DEATH((void)absent.value(), "CHECK failed: ok\\(\\)");
}

TEST(Rng, TheSameSeedRepeatsAndAnotherDiffers) {
  Rng a(1);
  Rng b(1);
  Rng c(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a.Next();
    EXPECT_EQ(value, b.Next());
    differs |= value != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, BelowCoversItsRangeAndNothingElse) {
  Rng rng(3);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(rng.Below(10));
    const double unit = rng.NextDouble();
    EXPECT_GE(unit, 0.0);
    EXPECT_LT(unit, 1.0);
  }
  EXPECT_EQ(seen.size(), 10U);
  EXPECT_EQ(*seen.rbegin(), 9U);
  EXPECT_EQ(rng.Below(0), 0U);
  EXPECT_EQ(rng.Below(1), 0U);
}

TEST(Clock, SystemTimeAdvancesAndManualTimeObeys) {
  const SystemClock system;
  const uint64_t before_ns = system.NowNs();
  EXPECT_GE(system.NowNs(), before_ns);
  EXPECT_GT(system.UnixUs(), 1'600'000'000'000'000U);

  ManualClock manual;
  const uint64_t origin_us = manual.UnixUs();
  manual.Advance(5'000);
  EXPECT_EQ(manual.NowNs(), 5'000U);
  EXPECT_EQ(manual.UnixUs(), origin_us + 5);
  manual.AdvanceTo(1'000);
  EXPECT_EQ(manual.NowNs(), 5'000U);
}

TEST(Log, WritesLinesOfItsLevelToStderrAndCountsErrors) {
  testing::internal::CaptureStderr();
  const uint64_t errors_before = LoggedErrors();
  LogDebug("too quiet to see");
  LogInfo("braces {} are text");
  SetLogLevel(LogLevel::kOff);
  LogError("counted though dropped");
  SetLogLevel(LogLevel::kInfo);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, HasSubstr("info braces {} are text\n"));
  EXPECT_THAT(written, Not(HasSubstr("quiet")));
  EXPECT_THAT(written, Not(HasSubstr("dropped")));
  EXPECT_EQ(LoggedErrors(), errors_before + 1);
}

TEST(Log, LevelsAreReadByName) {
  LogLevel level = LogLevel::kOff;
  EXPECT_TRUE(ParseLogLevel("warning", &level));
  EXPECT_EQ(level, LogLevel::kWarning);
  EXPECT_FALSE(ParseLogLevel("loud", &level));
  EXPECT_EQ(level, LogLevel::kWarning);
}

}  // namespace
}  // namespace onetrip
