// Syntax lines: what COMMAND DOCS makes of them, and that every row's line can be read.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/commands/server/command_syntax.h"
#include "redis_compat/dispatch/command_table.h"

namespace onetrip {
namespace {

// Writes arguments back in one canonical notation: TOKEN=, name, (parts), ? optional, + multiple.
std::string Show(const std::vector<Argument>& arguments, std::string_view separator = " ") {
  std::string text;
  for (const Argument& argument : arguments) {
    if (!text.empty()) text += separator;
    if (argument.kind == Argument::Kind::kToken) {
      text += argument.token;
    } else {
      if (!argument.token.empty()) text += argument.token + "=";
      if (argument.parts.empty()) {
        text += argument.name;
      } else {
        const bool choice = argument.kind == Argument::Kind::kOneOf;
        text += "(" + Show(argument.parts, choice ? "|" : " ") + ")";
      }
    }
    if (argument.optional) text += "?";
    if (argument.multiple) text += "+";
  }
  return text;
}

std::string Parsed(std::string_view syntax) { return Show(ParseSyntax(syntax)); }

TEST(CommandSyntax, ReadsEveryNotation) {
  EXPECT_EQ(Parsed(""), "");
  EXPECT_EQ(Parsed("key value"), "key value");
  EXPECT_EQ(Parsed("key [key ...]"), "key+");
  EXPECT_EQ(Parsed("key value [key value ...]"), "(key value)+");
  EXPECT_EQ(Parsed("[name ...]"), "name?+");
  EXPECT_EQ(Parsed("command [arg ...]"), "command arg?+");
  EXPECT_EQ(Parsed("[section [section ...]]"), "section?+");
  EXPECT_EQ(Parsed("[ID id [id ...]]"), "ID=id?+");
  EXPECT_EQ(Parsed("[a]"), "a?");
  EXPECT_EQ(Parsed("[a b]"), "(a b)?");
  EXPECT_EQ(Parsed("<ON | OFF>"), "(ON|OFF)");
  EXPECT_EQ(Parsed("[NX | XX] [GET]"), "(NX|XX)? GET?");
  EXPECT_EQ(Parsed("[EX seconds | KEEPTTL]"), "(EX=seconds|KEEPTTL)?");
  EXPECT_EQ(Parsed("[TYPE <A | B>] [c]"), "TYPE=(A|B)? c?");
  EXPECT_EQ(Parsed("[v [AUTH user password] [SETNAME name]]"),
            "(v (AUTH=user password)? SETNAME=name?)?");
  EXPECT_EQ(Parsed("<ip:port | [ID id] [SKIPME yes/no]>"), "(ip:port|(ID=id? SKIPME=yes/no?))");
}

TEST(CommandSyntax, EveryRowCanBeRead) {
  for (const CommandRow& row : AllCommands()) {
    const std::vector<Argument> arguments = ParseSyntax(row.syntax);
    EXPECT_EQ(arguments.empty(), row.syntax.empty()) << row.name;
    // A command without arguments takes exactly its name, unless Redis lets it take anything.
    if (arguments.empty() && !row.is_container() && row.name != "quit") {
      EXPECT_EQ(row.arity, row.is_subcommand() ? 2 : 1) << row.name;
    }
    // Keys come first where there are any.
    EXPECT_EQ(row.keys.first != 0, Show(arguments).find("key") != std::string::npos) << row.name;
  }
}

TEST(CommandSyntax, TellsTypesByName) {
  EXPECT_EQ(ValueTypeOf("key"), "key");
  EXPECT_EQ(ValueTypeOf("seconds"), "integer");
  EXPECT_EQ(ValueTypeOf("unix-time-seconds"), "unix-time");
  EXPECT_EQ(ValueTypeOf("float-increment"), "double");
  EXPECT_EQ(ValueTypeOf("value"), "string");
}

}  // namespace
}  // namespace onetrip
