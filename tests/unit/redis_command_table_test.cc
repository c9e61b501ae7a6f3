// The command table: names are found, rows are sound, COMMAND tells the truth about them.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

TEST(CommandTable, FindsEveryCommandInAnyCase) {
  size_t top_level = 0;
  for (const CommandRow& row : AllCommands()) {
    if (row.is_subcommand()) continue;
    ++top_level;
    std::string mixed = ToUpperAscii(row.name);
    EXPECT_EQ(FindCommand(mixed), &row);
    mixed[mixed.size() / 2] = AsciiLower(mixed[mixed.size() / 2]);
    EXPECT_EQ(FindCommand(mixed), &row) << mixed;
    EXPECT_EQ(FindCommand(row.name), &row);
  }
  EXPECT_EQ(TopLevelCommandCount(), top_level);
}

TEST(CommandTable, FindsNothingElse) {
  for (const std::string_view name : {"", "g", "ge", "gett", "get ", "xget", "client|id", "gEt\r",
                                      "set\x01", "\x07et", "G\x05T", "incrbyfloatincrbyfloat"}) {
    EXPECT_EQ(FindCommand(name), nullptr) << name;
  }
  EXPECT_EQ(FindCommand(std::string_view("get\0", 4)), nullptr);
  EXPECT_EQ(FindCommand(std::string(1000, 'g')), nullptr);
}

TEST(CommandTable, OneByteMoreOrLessOrOtherIsAnotherName) {
  for (const CommandRow& row : AllCommands()) {
    if (row.is_subcommand()) continue;
    for (size_t i = 0; i < row.name.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string other(row.name);
        other[i] = static_cast<char>(byte);
        const CommandRow* const found = FindCommand(other);
        EXPECT_TRUE(found == nullptr || EqualsIgnoreCase(found->name, other))
            << row.name << " at " << i << " byte " << byte;
      }
    }
  }
}

TEST(CommandTable, SubcommandsFollowTheirContainer) {
  const CommandRow* container = nullptr;
  std::set<std::string_view> names;
  for (const CommandRow& row : AllCommands()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(ToLowerAscii(row.name), row.name);
    EXPECT_EQ(&AllCommands()[CommandId(row)], &row);
    if (!row.is_subcommand()) {
      container = &row;
      continue;
    }
    ASSERT_NE(container, nullptr);
    EXPECT_TRUE(container->is_container()) << row.name;
    const size_t bar = row.name.find('|');
    EXPECT_EQ(row.name.substr(0, bar), container->name);
    EXPECT_EQ(FindSubcommand(*container, ToUpperAscii(row.name.substr(bar + 1))), &row);
  }
}

TEST(CommandTable, KeysAndFlagsAgree) {
  for (const CommandRow& row : AllCommands()) {
    EXPECT_FALSE((row.flags & kWrite) != 0 && (row.flags & kReadOnly) != 0) << row.name;
    EXPECT_FALSE((row.flags & kDenyOom) != 0 && (row.flags & kWrite) == 0) << row.name;
    EXPECT_EQ(row.keys.first != 0, row.keys.step != 0) << row.name;
    if (row.keys.first != 0) {
      // WATCH reads for EXEC's sake.
      EXPECT_TRUE((row.flags & (kWrite | kReadOnly)) != 0 || row.name == "watch") << row.name;
      EXPECT_NE(row.keys.flags, 0U) << row.name;
    }
    EXPECT_NE((row.categories & kCatFast) != 0, (row.categories & kCatSlow) != 0) << row.name;
    EXPECT_EQ((row.flags & kFast) != 0, (row.categories & kCatFast) != 0) << row.name;
  }
}

std::vector<size_t> KeysOf(std::string_view name, size_t argc) {
  const std::vector<std::string_view> argv(argc, "2");
  std::vector<size_t> keys;
  ForEachKey(*FindCommand(name), argv, [&keys](size_t index) { keys.push_back(index); });
  return keys;
}

TEST(CommandTable, KnowsWhereTheKeysAre) {
  EXPECT_EQ(KeysOf("get", 2), (std::vector<size_t>{1}));
  EXPECT_EQ(KeysOf("set", 7), (std::vector<size_t>{1}));
  EXPECT_EQ(KeysOf("del", 4), (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(KeysOf("mset", 5), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(KeysOf("mset", 4), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(KeysOf("get", 3), (std::vector<size_t>{}));
  EXPECT_EQ(KeysOf("zunion", 5), (std::vector<size_t>{2, 3}));
  EXPECT_EQ(KeysOf("zunionstore", 6), (std::vector<size_t>{1, 3, 4}));
  EXPECT_EQ(KeysOf("bzpopmin", 4), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(KeysOf("bzmpop", 6), (std::vector<size_t>{3, 4}));
}

TEST(CommandTable, KeysBehindStoreCount) {
  const auto keys_of = [](std::vector<std::string_view> argv) {
    std::vector<size_t> keys;
    ForEachKey(*FindCommand(argv.front()), argv, [&keys](size_t at) { keys.push_back(at); });
    return keys;
  };
  using Keys = std::vector<size_t>;
  EXPECT_EQ(keys_of({"georadius", "a", "1", "2", "3", "m"}), Keys{1});
  EXPECT_EQ(keys_of({"georadius", "a", "1", "2", "3", "m", "store", "b"}), (Keys{1, 7}));
  EXPECT_EQ(
      keys_of({"georadius", "a", "1", "2", "3", "m", "STORE", "b", "STOREDIST", "c", "STORE"}),
      (Keys{1, 7, 9}));
  EXPECT_EQ(keys_of({"georadius", "a", "1", "2", "3", "m", "STORE", "STORE", "c"}), (Keys{1, 7}));
  EXPECT_EQ(keys_of({"georadiusbymember", "a", "b", "3", "m", "storedist", "c"}), (Keys{1, 6}));
}

TEST(CommandTable, FindsTheKeyThatSortStores) {
  const auto keys_of = [](const std::vector<std::string_view>& argv) {
    std::vector<size_t> keys;
    ForEachKey(*FindCommand(argv.front()), argv, [&keys](size_t at) { keys.push_back(at); });
    return keys;
  };
  using Keys = std::vector<size_t>;
  EXPECT_EQ(keys_of({"sort", "k"}), Keys{1});
  EXPECT_EQ(keys_of({"sort", "k", "store", "d"}), (Keys{1, 3}));
  EXPECT_EQ(keys_of({"sort", "k", "STORE", "d", "ALPHA", "STORE", "e"}), (Keys{1, 6}));
  EXPECT_EQ(keys_of({"sort", "k", "BY", "store", "GET", "STORE", "STORE", "d"}), (Keys{1, 7}));
  EXPECT_EQ(keys_of({"sort", "k", "LIMIT", "STORE", "a"}), Keys{1});
  EXPECT_EQ(keys_of({"sort", "k", "STORE"}), Keys{1});
  EXPECT_EQ(keys_of({"sort_ro", "k", "STORE", "d"}), Keys{1});
  EXPECT_FALSE(FindCommand("sort_ro")->has_one_key()) << "BY and GET make it read others";
  EXPECT_EQ(KeysOf("sintercard", 5), (std::vector<size_t>{2, 3}));
  EXPECT_EQ(KeysOf("sinterstore", 4), (std::vector<size_t>{1, 2, 3}));
}

TEST(CommandTable, CountsArgumentsAsRedisDoes) {
  EXPECT_TRUE(FindCommand("get")->AcceptsArgumentCount(2));
  EXPECT_FALSE(FindCommand("get")->AcceptsArgumentCount(3));
  EXPECT_FALSE(FindCommand("get")->AcceptsArgumentCount(1));
  EXPECT_TRUE(FindCommand("set")->AcceptsArgumentCount(9));
  EXPECT_FALSE(FindCommand("set")->AcceptsArgumentCount(2));
}

}  // namespace
}  // namespace onetrip
