// Explorer: all schedules of a scope, depth first, each state once.
//
// Without a bound it visits every state that the scope can reach, and, when no fault is in scope,
// makes sure that from each of them some schedule completes all operations. With a bound it visits
// every state that at most a given number of preemptions lead to. A violation comes with the
// choices that led to it, which TimelineOf() runs again on new production objects and tells step by
// step.
#ifndef ONETRIP_TESTS_EXPLORE_EXPLORER_H_
#define ONETRIP_TESTS_EXPLORE_EXPLORER_H_

#include <cstdint>
#include <set>
#include <string>

#include "tests/explore/scope.h"

namespace onetrip {

struct ExploreOptions {
  static constexpr int kNoBound = -1;
  int preemptions_max = kNoBound;
  // Ends, incomplete, when it has seen as many.
  uint64_t states_max = 100'000'000;
  // Off: every access, every start and every delivery is a step of its own. For tests of the
  // reductions.
  bool reduces = true;
  // Tells states apart by what operations returned, beyond what that says about the future: then
  // `endings` are complete.
  bool keeps_results = false;
};

struct ExploreResult {
  std::string violation;  // empty: none
  std::string path;       // to the violation
  std::string timeline;   // the path, step by step
  bool complete = false;  // everything within the scope and the bound was visited
  uint64_t states = 0;
  uint64_t transitions = 0;
  uint64_t depth = 0;
  uint64_t cut = 0;       // transitions that were not followed: Scope::answers_max
  uint64_t executed = 0;  // steps that production code took, the others being known from those
  // Memory when nothing was left to happen, with what operations returned (keeps_results), hashed.
  std::set<uint64_t> endings;
  double seconds = 0;

  [[nodiscard]] bool ok() const { return violation.empty(); }
};

// Prints one line about it.
ExploreResult Explore(const Scope& scope, const ExploreOptions& options);

// Bounds of 0, 1, ... `preemptions_max` preemptions in turn, so that a violation is found on a path
// with few. Prints one line for the last.
ExploreResult ExploreBounds(const Scope& scope, int preemptions_max,
                            uint64_t states_max = ExploreOptions().states_max);

// Runs `path` (ExploreResult::path) and returns what happened, one line a step, ending with the
// violation if there is one; says so if it is not a path of this scope.
std::string TimelineOf(const Scope& scope, const std::string& path);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_EXPLORER_H_
