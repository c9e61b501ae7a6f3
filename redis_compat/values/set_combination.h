// SetCombination: the union, intersection or difference of sets, made a part at a time.
//
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_SET_COMBINATION_H_
#define ONETRIP_REDIS_COMPAT_VALUES_SET_COMBINATION_H_

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "redis_compat/values/set_value.h"

namespace onetrip {

enum class SetOperation : uint8_t { kIntersection, kUnion, kDifference };

class SetCombination {
 public:
  // `sets` are packed, and empty where there is none; they outlive it, and so they do what it
  // makes.
  SetCombination(SetOperation operation, const std::vector<std::string_view>& sets);

  // Looks at up to `members` more. False: it is done.
  bool Advance(uint64_t members);
  // The outcome, as Redis would hold it. REQUIRES: Advance() has returned false.
  [[nodiscard]] NewSet Finish(uint64_t integers_max) const;

 private:
  struct Candidate {
    std::string_view member;
    size_t met_in = 0;  // the last set that had it, of an intersection if all before had it, too
  };

  void Meet(std::string_view member);

  const SetOperation operation_;
  std::vector<PackedElements> sets_;
  size_t at_ = 0;
  std::vector<Candidate> candidates_;
  absl::flat_hash_map<std::string_view, size_t> places_;  // the candidates
  // Redis makes a difference by removing from the whole first set, which shows in what it becomes.
  bool removes_from_first_ = false;
};

// All of it at once.
inline NewSet CombineSets(SetOperation operation, const std::vector<std::string_view>& sets,
                          uint64_t integers_max) {
  SetCombination combination(operation, sets);
  combination.Advance(std::numeric_limits<uint64_t>::max());
  return combination.Finish(integers_max);
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_SET_COMBINATION_H_
