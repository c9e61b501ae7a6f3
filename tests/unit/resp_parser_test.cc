// RespParser: what Redis accepts, what it refuses, and that chunking changes nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/protocol/resp.h"
#include "tests/unit/resp_feed.h"

namespace onetrip {
namespace {

std::string Bulk(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

std::string Command(const std::vector<std::string>& arguments) {
  std::string text = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& argument : arguments) {
    text += Bulk(argument);
  }
  return text;
}

RespTrace Parse(std::string_view input, RespLimits limits = {}) {
  return FeedInChunks(input, limits, [](size_t) { return SIZE_MAX; });
}

std::vector<std::vector<std::string>> Commands(std::string_view input) {
  const RespTrace trace = Parse(input);
  EXPECT_EQ(trace.error, "") << input;
  return trace.commands;
}

std::string ErrorOf(std::string_view input, RespLimits limits = {}) {
  return Parse(input, limits).error;
}

using Lines = std::vector<std::vector<std::string>>;

TEST(RespParser, ReadsAnArrayOfBulks) {
  EXPECT_EQ(Commands(Command({"SET", "key", "value"})), (Lines{{"SET", "key", "value"}}));
}

TEST(RespParser, ReadsAPipeline) {
  EXPECT_EQ(Commands(Command({"GET", "a"}) + Command({"GET", "b"}) + "PING\r\n"),
            (Lines{{"GET", "a"}, {"GET", "b"}, {"PING"}}));
}

TEST(RespParser, KeepsEveryByteOfABulk) {
  const std::string bytes("\0\r\n$5\r\n*\xff", 9);
  EXPECT_EQ(Commands(Command({"ECHO", bytes, ""})), (Lines{{"ECHO", bytes, ""}}));
}

TEST(RespParser, ArgumentsAreViewsIntoTheInput) {
  const std::string input = Command({"GET", "key"});
  RespParser parser;
  ASSERT_EQ(parser.Next(input, {}), RespResult::kCommand);
  EXPECT_EQ(parser.consumed(), input.size());
  EXPECT_EQ(parser.argv()[1].data(), input.data() + input.find("key"));
}

TEST(RespParser, InlineArgumentsWithoutQuotesAreViewsIntoTheInput) {
  const std::string input = "GET  key \r\n";
  RespParser parser;
  ASSERT_EQ(parser.Next(input, {}), RespResult::kCommand);
  EXPECT_EQ(parser.argv()[1].data(), input.data() + input.find("key"));
}

TEST(RespParser, IgnoresEmptyLinesAndEmptyArrays) {
  EXPECT_EQ(Commands("\r\n \r\n\n*0\r\n*-1\r\n*-7\r\nPING\r\n"), (Lines{{"PING"}}));
}

TEST(RespParser, TakesALineFeedAloneForTheEndOfAnInlineCommand) {
  EXPECT_EQ(Commands("PING\nECHO a\n"), (Lines{{"PING"}, {"ECHO", "a"}}));
}

TEST(RespParser, DoesNotLookAtTheByteBehindACarriageReturn) {
  EXPECT_EQ(Commands("*1\rx$4\rxPINGxyPING\r\n"), (Lines{{"PING"}, {"PING"}}));
}

TEST(RespParser, UnquotesInlineArguments) {
  EXPECT_EQ(Commands("ECHO \"a b\\x41\\n\\q\" 'c\\'d\\n' e\"f g\"\r\n"),
            (Lines{{"ECHO", "a bA\nq", "c'd\\n", "ef g"}}));
  EXPECT_EQ(Commands("\"\" ''\r\n"), (Lines{{"", ""}}));
  EXPECT_EQ(Commands("ECHO \"\\x4\" \"\\xzz\"\r\n"), (Lines{{"ECHO", "x4", "xzz"}}));
}

TEST(RespParser, InlineLinesEndAtANulByte) {
  EXPECT_EQ(Commands(std::string_view("ECHO a\0b c\r\n", 12)), (Lines{{"ECHO", "a"}}));
}

TEST(RespParser, RefusesUnbalancedQuotes) {
  constexpr std::string_view kError = "ERR Protocol error: unbalanced quotes in request";
  for (const std::string_view line :
       {"ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO 'a'b\r\n", "ECHO \"a\\\r\n"}) {
    EXPECT_EQ(ErrorOf(line), kError) << line;
  }
}

TEST(RespParser, RefusesLengthsThatAreNoLengths) {
  for (const std::string_view line : {"*x\r\n", "*01\r\n", "*+1\r\n", "* 1\r\n", "*\r\n", "*-0\r\n",
                                      "*1a\r\n", "*2147483648\r\n", "*99999999999999999999\r\n"}) {
    EXPECT_EQ(ErrorOf(line), "ERR Protocol error: invalid multibulk length") << line;
  }
  for (const std::string_view line :
       {"*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$04\r\n", "*1\r\n$\r\n", "*1\r\n$536870913\r\n",
        "*1\r\n$99999999999999999999\r\n"}) {
    EXPECT_EQ(ErrorOf(line), "ERR Protocol error: invalid bulk length") << line;
  }
}

TEST(RespParser, SaysWhatItFoundInPlaceOfABulk) {
  EXPECT_EQ(ErrorOf("*1\r\n+PING\r\n"), "ERR Protocol error: expected '$', got '+'");
  EXPECT_EQ(ErrorOf("*2\r\n$4\r\nPING\r\n:1\r\n"), "ERR Protocol error: expected '$', got ':'");
  EXPECT_EQ(ErrorOf(std::string_view("*1\r\n\0\r\n", 7)),
            "ERR Protocol error: expected '$', got '");
}

TEST(RespParser, RefusesLinesWithoutAnEnd) {
  const std::string filler(RespLimits::kLineMaxBytes + 1, '1');
  EXPECT_EQ(ErrorOf(filler), "ERR Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("*" + filler), "ERR Protocol error: too big mbulk count string");
  EXPECT_EQ(ErrorOf("*1\r\n$" + filler), "ERR Protocol error: too big bulk count string");
}

TEST(RespParser, AnInlineLineMayHaveSixtyFourKibibytes) {
  const std::string longest(RespLimits::kLineMaxBytes, 'a');
  EXPECT_EQ(Commands(longest + "\n"), (Lines{{longest}}));
  EXPECT_EQ(Parse(longest).error, "");
}

TEST(RespParser, HoldsStrangersToSmallRequests) {
  RespLimits limits;
  limits.must_authenticate = true;
  EXPECT_EQ(ErrorOf("*11\r\n", limits), "ERR Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(ErrorOf("*10\r\n", limits), "");
  EXPECT_EQ(ErrorOf("*1\r\n$16385\r\n", limits), "ERR Protocol error: unauthenticated bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$16384\r\n", limits), "");
}

TEST(RespParser, SaysHowManyBytesAreMissing) {
  RespParser parser;
  const std::string head = "*2\r\n$3\r\nGET\r\n$100000\r\nabc";
  ASSERT_EQ(parser.Next(head, {}), RespResult::kNeedMore);
  EXPECT_EQ(parser.wanted_bytes(), 100000U + 2 - 3);
  EXPECT_EQ(parser.consumed(), 0U);
  EXPECT_TRUE(parser.in_command());
}

TEST(RespParser, CountsOnlyWhatIsBehindAPartialCommandAsConsumed) {
  RespParser parser;
  const std::string input = "\r\n*0\r\n*1\r\n$4\r\nPI";
  ASSERT_EQ(parser.Next(input, {}), RespResult::kNeedMore);
  EXPECT_EQ(parser.consumed(), input.find("*1"));
}

TEST(RespParser, AHugeCountAllocatesNothing) {
  RespParser parser;
  EXPECT_EQ(parser.Next("*2147483647\r\n$1\r\n", {}), RespResult::kNeedMore);
  EXPECT_EQ(parser.wanted_bytes(), 3U);
}

TEST(RespParser, ForgetsALargeCommandWhenAsked) {
  RespParser parser;
  const std::string input = Command(std::vector<std::string>(1000, "x"));
  ASSERT_EQ(parser.Next(input, {}), RespResult::kCommand);
  EXPECT_EQ(parser.argv().size(), 1000U);
  parser.Shrink();
  ASSERT_EQ(parser.Next("PING\r\n", {}), RespResult::kCommand);
  EXPECT_EQ(parser.argv().size(), 1U);
}

// Inputs that reach every state: whole, broken, and broken in the middle of a pipeline.
std::vector<std::string> Corpus() {
  return {
      Command({"SET", "key", "value"}) + Command({"GET", "key"}),
      Command({"MSET", "a", "", "b", std::string("\0\r\n", 3)}) + "PING\r\n" + Command({"X"}),
      "PING\r\n\r\nECHO \"a b\\x41\" 'c'\n" + Command({"GET", "k"}),
      "*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n",
      "*1\rx$4\rxPINGxyPING\r\n",
      "*000\r\n",
      "*10\r\n$1\r\na\r\n",
      "*2\r\n$3\r\nGET\r\n+k\r\n",
      "*2\r\n$3\r\nGET\r\n$-5\r\n",
      "PING\r\n*x\r\n",
      "PING\r\n\"a\r\nPING\r\n",
      "*12345678901\r\n",
      "*1\r\n$1234567890\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
      Command({std::string(300, 'x'), std::string(70, 'y')}) + "tail",
  };
}

TEST(RespParser, AnyTwoCutsGiveTheSameResult) {
  for (const std::string& input : Corpus()) {
    const RespTrace whole = Parse(input);
    for (size_t first = 0; first <= input.size(); ++first) {
      for (size_t second = first; second <= input.size(); ++second) {
        const RespTrace cut = FeedAtCuts(input, {}, {first, second});
        ASSERT_EQ(cut, whole) << testing::PrintToString(input) << " cut at " << first << " and "
                              << second;
      }
    }
  }
}

TEST(RespParser, ByteByByteGivesTheSameResult) {
  for (const std::string& input : Corpus()) {
    EXPECT_EQ(FeedInChunks(input, {}, [](size_t) { return size_t{1}; }), Parse(input)) << input;
  }
}

TEST(RespParser, LongLinesAreRefusedAtTheSameByteInAnyChunks) {
  const std::string filler(RespLimits::kLineMaxBytes + 100, '1');
  for (const std::string& input : {filler, "*" + filler + "\r\n", "*1\r\n$" + filler + "\r\n"}) {
    const RespTrace whole = Parse(input);
    EXPECT_NE(whole.error, "");
    for (const size_t chunk :
         {size_t{1000}, RespLimits::kLineMaxBytes, RespLimits::kLineMaxBytes + 1}) {
      EXPECT_EQ(FeedInChunks(input, {}, [chunk](size_t) { return chunk; }), whole);
    }
  }
}

TEST(RespParser, ManyArgumentsInSmallChunksTakeLinearTime) {
  // Quadratic rescanning would take minutes, and the test's time limit with it.
  const size_t arguments = 200'000;
  std::string input = "*" + std::to_string(arguments) + "\r\n";
  for (size_t i = 0; i < arguments; ++i) {
    input += "$1\r\nx\r\n";
  }
  const std::string_view all = input;
  RespParser parser;
  size_t calls = 0;
  RespResult result = RespResult::kNeedMore;
  for (size_t end = 64; result == RespResult::kNeedMore; end += 64, ++calls) {
    result = parser.Next(all.substr(0, end), {});
  }
  EXPECT_EQ(result, RespResult::kCommand);
  EXPECT_EQ(parser.argv().size(), arguments);
  EXPECT_GT(calls, input.size() / 64);
}

}  // namespace
}  // namespace onetrip
