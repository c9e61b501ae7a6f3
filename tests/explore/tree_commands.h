// The commands of TreeScope's programs: which of them read, what a sequential object answers, and
// those that make a collection of elements a to f.
//
// Elements, values and scores are one letter or digit, so that the object is one word: a byte for
// each field or member, or for each element of a list.
#ifndef ONETRIP_TESTS_EXPLORE_TREE_COMMANDS_H_
#define ONETRIP_TESTS_EXPLORE_TREE_COMMANDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/explore/scope.h"

namespace onetrip {

enum class TreeKind : uint8_t { kHash, kList, kSortedSet };

bool ReadsOnly(std::string_view command);
// "TICK": no command, but a round of maintenance. "HGETALL & TICK 3": beside what reads, three of
// them.
std::string_view CommandIn(std::string_view command);
size_t TicksIn(std::string_view command);
std::vector<std::string_view> MakersCommands(TreeKind kind);
// They take memory of each class that commands need, on another key.
std::vector<std::string_view> WarmCommands(TreeKind kind);
// All of the collection.
std::string_view ReadingCommand(TreeKind kind);

// The result of a command: the object as it shows it, or a number.
uint64_t TreeResultOf(TreeKind kind, std::string_view command, const std::string& reply);
Scope::SpecStep TreeStepOf(std::string_view command, uint64_t value);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_TREE_COMMANDS_H_
