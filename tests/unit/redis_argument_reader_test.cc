// The reader of command arguments: the first error is kept, and nothing is read behind it.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {
namespace {

using Words = std::vector<std::string_view>;

TEST(ArgumentReader, TakesWordsInAnyCaseAndInAnyOrder) {
  const Words words = {"cmd", "count", "3", "REPLACE", "Match", "a*"};
  ArgumentReader arguments(words, 1);
  bool replace = false;
  int64_t count = 0;
  std::string_view pattern;
  while (arguments.HasMore()) {
    const bool known = arguments.Flag("replace", &replace) || arguments.Integer("COUNT", &count) ||
                       arguments.Value("MATCH", &pattern);
    if (!known) arguments.SyntaxError();
  }
  EXPECT_TRUE(arguments.ok());
  EXPECT_TRUE(replace);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(pattern, "a*");
}

TEST(ArgumentReader, DoesNotTakeAWordWhoseValuesAreMissing) {
  const Words words = {"AUTH", "user"};
  ArgumentReader arguments(words);
  std::string_view value = "untouched";
  EXPECT_FALSE(arguments.Word("AUTH", 2));
  EXPECT_TRUE(arguments.Word("AUTH", 1));
  EXPECT_FALSE(arguments.Value("USER", &value));
  EXPECT_EQ(value, "untouched");
  EXPECT_EQ(arguments.Take(), "user");
  EXPECT_FALSE(arguments.HasMore());
  EXPECT_TRUE(arguments.ok());
}

TEST(ArgumentReader, TellsAnEmptyValueFromNone) {
  const Words words = {"TYPE", ""};
  ArgumentReader arguments(words);
  std::optional<std::string_view> type;
  std::optional<std::string_view> pattern;
  EXPECT_TRUE(arguments.Value("TYPE", &type));
  EXPECT_FALSE(arguments.Value("MATCH", &pattern));
  EXPECT_EQ(type, "");
  EXPECT_EQ(pattern, std::nullopt);
}

TEST(ArgumentReader, KeepsTheFirstError) {
  const Words words = {"x", "7", "NX"};
  ArgumentReader arguments(words);
  EXPECT_EQ(arguments.TakeInteger(), 0);
  EXPECT_EQ(arguments.error(), kNotIntegerError);
  arguments.SyntaxError();
  arguments.Fail(std::string("ERR made"));
  arguments.Require(false, "ERR required");
  EXPECT_EQ(arguments.error(), kNotIntegerError);
}

TEST(ArgumentReader, ReadsNothingBehindAnError) {
  const Words words = {"7", "NX", "8"};
  ArgumentReader arguments(words);
  arguments.Fail("ERR first");
  bool flag = false;
  EXPECT_FALSE(arguments.HasMore());
  EXPECT_FALSE(arguments.Flag("7", &flag));
  EXPECT_FALSE(flag);
  EXPECT_EQ(arguments.Take(), "");
  EXPECT_EQ(arguments.TakeInteger(), 0);
  EXPECT_EQ(arguments.TakeOneOf({"x", "7"}), 0u);
  EXPECT_EQ(arguments.ReadInteger("8"), 0);
  EXPECT_EQ(arguments.error(), "ERR first");
}

TEST(ArgumentReader, NoErrorIsNoErrorAndAConditionThatHoldsNeither) {
  ArgumentReader arguments(Words{});
  arguments.Fail(nullptr);
  arguments.Require(true, "ERR required");
  EXPECT_TRUE(arguments.ok());
}

TEST(ArgumentReader, MissesAnArgument) {
  ArgumentReader arguments(Words{});
  EXPECT_EQ(arguments.Take(), "");
  EXPECT_EQ(arguments.error(), kSyntaxError);
}

TEST(ArgumentReader, TellsNumbersOutOfRangeFromWhatIsNoNumber) {
  constexpr IntegerRange kRange{1, 9, "ERR range", "ERR number"};
  const auto error = [&](std::string_view text) {
    ArgumentReader arguments(Words{});
    (void)arguments.ReadInteger(text, kRange);
    return std::string(arguments.error());
  };
  EXPECT_EQ(error("1"), "");
  EXPECT_EQ(error("9"), "");
  EXPECT_EQ(error("0"), "ERR range");
  EXPECT_EQ(error("10"), "ERR range");
  EXPECT_EQ(error(""), "ERR number");
  EXPECT_EQ(error("1x"), "ERR number");
  EXPECT_EQ(error("9223372036854775808"), "ERR number");
}

TEST(ArgumentReader, AnErrorInAValueIsNoUnknownWord) {
  const Words words = {"COUNT", "x"};
  ArgumentReader arguments(words);
  int64_t count = 5;
  EXPECT_TRUE(arguments.Integer("COUNT", &count));
  EXPECT_EQ(arguments.error(), kNotIntegerError);
}

TEST(ArgumentReader, TellsWhichOfSeveralWordsCame) {
  const Words words = {"bit", "Byte", "nibble"};
  ArgumentReader arguments(words);
  EXPECT_EQ(arguments.TakeOneOf({"BYTE", "BIT"}), 1u);
  EXPECT_EQ(arguments.TakeOneOf({"BYTE", "BIT"}), 0u);
  EXPECT_TRUE(arguments.ok());
  EXPECT_EQ(arguments.TakeOneOf({"BYTE", "BIT"}, "ERR unit"), 0u);
  EXPECT_EQ(arguments.error(), "ERR unit");
}

TEST(ArgumentReader, KeepsAnErrorWithAnyBytes) {
  const std::string error("ERR Unknown argument a\0b", 24);
  ArgumentReader arguments(Words{});
  arguments.Fail(error);
  EXPECT_EQ(arguments.error(), error);
}

TEST(ArgumentReader, AnswersItsErrorOnce) {
  OutputBuffer buffer;
  ReplyWriter out(buffer, 2);
  ArgumentReader arguments(Words{});
  EXPECT_FALSE(arguments.AnsweredError(out));
  EXPECT_EQ(out.errors(), 0u);
  arguments.Fail("ERR made of '" + std::string("x") + "'");
  EXPECT_TRUE(arguments.AnsweredError(out));
  EXPECT_EQ(out.errors(), 1u);
}

}  // namespace
}  // namespace onetrip
