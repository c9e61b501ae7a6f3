// Changes and reads of one collection, a tree, by Redis's commands through Kv, under every schedule
// of these programs.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/explore/expect_scope.h"
#include "tests/explore/tree_scope.h"

namespace onetrip {
namespace {

constexpr Scope::Faults kFaults[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
constexpr Scope::Faults kWorkerFaults[] = {{0, 0}, {1, 0}};

const TreeOptions kHash{TreeKind::kHash, {{"HSET g 2"}, {"HDEL b"}, {"HGETALL"}}};
const TreeOptions kList{TreeKind::kList, {{"LPUSH x"}, {"RPOP"}, {"LRANGE 0 -1"}}};
const TreeOptions kSortedSet{TreeKind::kSortedSet, {{"ZADD 3 g"}, {"ZRANGE 0 -1 WITHSCORES"}}};

TreeScope With(TreeOptions options, Scope::Faults faults) {
  options.faults = faults;
  return TreeScope(std::move(options));
}

TEST(ExploreTree, ACollectionHasLevelsAndAChangeDividesAPage) {
  EXPECT_GE(TreeScope(kHash).PagesBehind("HGETALL"), 4U);
  EXPECT_GE(TreeScope(kList).PagesBehind("LRANGE 0 -1"), 2U);
  const TreeScope set(kSortedSet);
  EXPECT_GT(set.PagesBehind("ZADD 3 g"), set.PagesBehind("ZRANGE 0 -1 WITHSCORES"));
}

TEST(ExploreTree, Hash) {
  for (const Scope::Faults faults : kFaults) ExpectHolds(With(kHash, faults));
}

TEST(ExploreTree, List) {
  for (const Scope::Faults faults : kFaults) ExpectHolds(With(kList, faults));
}

TEST(ExploreTree, SortedSetWithADividedPage) {
  for (const Scope::Faults faults : kFaults) ExpectHolds(With(kSortedSet, faults));
}

// Changes of one page, of pages side by side, and such as make a tree packed again or empty it.
TEST(ExploreTree, TwoWriters) {
  const TreeOptions several[] = {
      {TreeKind::kHash, {{"HSET b 2", "HGETALL"}, {"HDEL b", "HSET b 3"}}},
      {TreeKind::kHash, {{"HDEL a", "HDEL c"}, {"HDEL b", "HDEL d"}}},
      {TreeKind::kList, {{"LPUSH x", "RPOP"}, {"RPOP", "LPUSH y"}}},
      {TreeKind::kSortedSet, {{"ZADD 3 g"}, {"ZREM c", "ZRANGE 0 -1 WITHSCORES"}}}};
  for (const TreeOptions& options : several) {
    for (const Scope::Faults faults : kWorkerFaults) ExpectHolds(With(options, faults));
  }
}

TEST(ExploreTree, ThreeClients) {
  const TreeOptions several[] = {
      {TreeKind::kHash, {{"HSET b 2"}, {"HDEL b"}, {"HSET g 3"}}},
      {TreeKind::kList, {{"RPOP"}, {"RPOP"}, {"LPUSH x"}}},
      {TreeKind::kSortedSet, {{"ZADD 3 g"}, {"ZREM b"}, {"ZRANGE 0 -1 WITHSCORES"}}}};
  for (const TreeOptions& options : several) {
    for (const Scope::Faults faults : kWorkerFaults) ExpectHoldsWithin(With(options, faults), 1);
  }
}

struct TreeBug {
  Bug bug;
  const char* name;
  TreeOptions options;
};
void PrintTo(const TreeBug& bug, std::ostream* out) { *out << bug.name; }

class ExploreTreePlantedBug : public testing::TestWithParam<TreeBug> {};

TEST_P(ExploreTreePlantedBug, IsFound) {
  ExpectFinds(GetParam().bug, TreeScope(GetParam().options), /*preemptions_max=*/2,
              /*states_max=*/200'000);
}

const TreeOptions kPops{TreeKind::kList, {{"RPOP"}, {"RPOP"}}};

INSTANTIATE_TEST_SUITE_P(Bugs, ExploreTreePlantedBug,
                         testing::Values(TreeBug{Bug::kPagesFreedEarly, "pages_freed_early", kList},
                                         TreeBug{Bug::kLosersPagesKept, "losers_pages_kept", kPops},
                                         TreeBug{Bug::kPagesKept, "pages_kept", kList},
                                         TreeBug{Bug::kCountingLoserDone, "counting_loser_done",
                                                 kPops}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
