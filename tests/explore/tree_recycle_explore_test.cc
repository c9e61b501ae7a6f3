// Pages of a collection's tree that are used again: beside a reader that keeps pages from earlier
// commands, under a reader that is slow, and under one that was expelled and that no fence stops.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "tests/explore/expect_scope.h"
#include "tests/explore/tree_scope.h"

namespace onetrip {
namespace {

constexpr Scope::Faults kRecycledFaults[] = {{0, 0}, {1, 0}};

TreeOptions Recycled(std::vector<std::string_view> writer, std::vector<std::string_view> reader,
                     TreeKind kind = TreeKind::kHash) {
  TreeOptions options{kind, {std::move(writer), std::move(reader)}};
  options.recycles = true;
  return options;
}

// The last ZADD takes the pages that the first one wrote, and the second one retired. ZRANGE reads
// a page once, as long as its worker keeps it.
constexpr std::string_view kReadAll = "ZRANGE 0 -1 WITHSCORES";
TreeOptions Kept() {
  return Recycled({"ZADD 7 b", "ZADD 8 b", "TICK", "TICK", "TICK", "TICK", "ZADD 9 b"},
                  {kReadAll, "TICK", "TICK", "TICK", kReadAll}, TreeKind::kSortedSet);
}
// In as many epochs nothing is used again.
TreeOptions KeptForGood() {
  return Recycled({"ZADD 7 b", "ZADD 8 b", "TICK", "TICK", "ZADD 9 b"},
                  {kReadAll, "TICK", "TICK", kReadAll}, TreeKind::kSortedSet);
}

TreeOptions KeptInnerPages() {
  return Recycled({"HSET b 2", "HSET b 3", "TICK", "TICK", "TICK", "TICK", "HSET b 4"},
                  {"HGETALL", "TICK", "TICK", "TICK", "HGETALL"});
}

TreeOptions Slow() {
  return Recycled({"HSET b 2", "HSET b 3", "TICK", "TICK", "TICK", "TICK", "HSET b 4"},
                  {"HGETALL & TICK 3"});
}

// The reader may be an epoch ahead of the worker that retires what it reads.
TreeOptions Ahead() {
  return Recycled({"HSET b 2", "HSET b 3", "TICK", "TICK", "TICK", "HSET b 4"},
                  {"TICK", "TICK", "HGETALL & TICK 2"});
}

// It may read one leaf before the last HSET, and another one behind it.
TreeOptions Expelled() {
  TreeOptions options =
      Recycled({"HSET b 2", "HSET b 3", "TICK", "TICK", "TICK", "HSET f 4"}, {"HGETALL"});
  options.expelled = 1;
  return options;
}

// A search that is cut short may not come that far.
void ExpectMet(uint64_t times) { EXPECT_TRUE(times > 0 || kSlowdown != 1); }

TEST(ExploreTreeRecycled, AReaderThatKeepsAPageReadsWhatHasTakenItsPlace) {
  const TreeScope scope(Kept());
  ExpectHolds(scope);
  ExpectMet(scope.met().taken_again);
  ExpectMet(scope.met().read_again);
  const TreeScope for_good(KeptForGood());
  ExpectHolds(for_good);
  EXPECT_EQ(for_good.met().taken_again, 0U);
  EXPECT_EQ(for_good.met().read_again, 0U);
  // The planted bug shows that its reader keeps some of them.
  const TreeScope inner_pages(KeptInnerPages());
  ExpectHolds(inner_pages);
  ExpectMet(inner_pages.met().taken_again);
}

TEST(ExploreTreeRecycled, ASlowReaderKeepsWhatItsRootNames) {
  TreeOptions with_crash = Ahead();
  with_crash.faults = {1, 0};
  for (const TreeOptions& options : {Slow(), Ahead(), with_crash}) {
    const TreeScope scope(options);
    ExpectHolds(scope);
    ExpectMet(scope.met().taken_again);
    ExpectMet(scope.met().read_behind);
  }
}

TEST(ExploreTreeRecycled, AnExpelledReaderBelievesNoPageThatWasUsedAgain) {
  for (const Scope::Faults faults : kRecycledFaults) {
    TreeOptions options = Expelled();
    options.faults = faults;
    const TreeScope scope(options);
    ExpectHolds(scope);
    ExpectMet(scope.met().taken_again);
    ExpectMet(scope.met().refused);
  }
}

struct RecycledBug {
  Bug bug;
  const char* name;
  TreeOptions (*options)();
};
void PrintTo(const RecycledBug& bug, std::ostream* out) { *out << bug.name; }

class ExploreTreeRecycledPlantedBug : public testing::TestWithParam<RecycledBug> {};

TEST_P(ExploreTreeRecycledPlantedBug, IsFound) {
  ExpectFinds(GetParam().bug, TreeScope(GetParam().options()), /*preemptions_max=*/4,
              /*states_max=*/200'000);
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, ExploreTreeRecycledPlantedBug,
    testing::Values(RecycledBug{Bug::kPageCachedByAddr, "page_cached_by_addr", Kept},
                    RecycledBug{Bug::kPageCachedByAddr, "page_cached_by_addr_inner",
                                KeptInnerPages},
                    RecycledBug{Bug::kPageUnchecked, "page_unchecked", Expelled},
                    RecycledBug{Bug::kRetiredAtOnce, "retired_at_once", Ahead},
                    RecycledBug{Bug::kPassedWhilePinned, "passed_while_pinned", Ahead},
                    RecycledBug{Bug::kEpochTooEarly, "epoch_too_early", Ahead}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
