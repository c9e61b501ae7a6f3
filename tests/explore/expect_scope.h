// A test expects one of these of a scope: nothing wrong, everything visited; or a violation, found,
// told and replayed.
#ifndef ONETRIP_TESTS_EXPLORE_EXPECT_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_EXPECT_SCOPE_H_

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/explore/explorer.h"
#include "tests/support/scale.h"

namespace onetrip {

// Under a sanitizer a search is cut short here: it looks for what the sanitizer finds.
inline constexpr uint64_t kStatesUnderSanitizer = 20'000;
inline constexpr uint64_t kStatesMax =
    kSlowdown == 1 ? ExploreOptions().states_max : kStatesUnderSanitizer;

inline std::string Story(const Scope& scope, const ExploreResult& result) {
  return scope.name() + ": " + result.violation + "\n" + result.timeline + "path: " + result.path;
}

inline void ExpectHolds(const Scope& scope, const ExploreResult& result) {
  EXPECT_TRUE(result.ok()) << Story(scope, result);
  if (kSlowdown == 1 && result.ok()) {
    EXPECT_TRUE(result.complete) << scope.name();
  }
}

// No schedule breaks the scope.
inline void ExpectHolds(const Scope& scope) {
  ExpectHolds(scope, Explore(scope, {.states_max = kStatesMax}));
}
// No schedule with at most `preemptions_max` preemptions does.
inline void ExpectHoldsWithin(const Scope& scope, int preemptions_max) {
  ExpectHolds(scope, ExploreBounds(scope, preemptions_max, kStatesMax));
}

// Some schedule with few preemptions breaks it in this way, and does so again when it is replayed.
inline void ExpectViolation(const Scope& scope, const std::string& what) {
  constexpr int kPreemptionsMax = 4;
  const ExploreResult result = ExploreBounds(scope, kPreemptionsMax);
  ASSERT_FALSE(result.ok()) << scope.name() << ": the bug was not found";
  EXPECT_NE(result.violation.find(what), std::string::npos) << Story(scope, result);
  const std::string again = TimelineOf(scope, result.path);
  EXPECT_EQ(again, result.timeline);
  EXPECT_NE(again.find("VIOLATION: " + result.violation), std::string::npos) << again;
  std::cout << again;
}

// Some schedule with at most `preemptions_max` preemptions shows the planted bug, within the first
// `states_max` states.
inline void ExpectFinds([[maybe_unused]] Bug bug, [[maybe_unused]] const Scope& scope,
                        [[maybe_unused]] int preemptions_max,
                        [[maybe_unused]] uint64_t states_max) {
#ifdef ONETRIP_PLANTED_BUGS
  TEST_planted_bug = bug;
  ExploreResult result;
  for (int bound = 0; result.ok() && bound <= preemptions_max; ++bound) {
    result = Explore(scope, {.preemptions_max = bound, .states_max = states_max});
  }
  TEST_planted_bug = Bug::kNone;
  EXPECT_FALSE(result.ok()) << scope.name();
  std::cout << result.violation << "\n" << result.timeline;
#else
  GTEST_SKIP() << "a build without planted bugs; take the preset tests";
#endif
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPECT_SCOPE_H_
