// ReplicaSeen: one replica as a step of a register protocol has seen it. Pure functions tell what
// all of them come to. Every driver of the steps shares these functions, the one by coroutines
// (QuorumCall) and the one where the fabric completes inline (SafeGuess's fast path).
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_REPLICA_SEEN_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_REPLICA_SEEN_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "client_core/layout/register_layout.h"

namespace onetrip {

struct ReplicaSeen {
  enum class State : uint8_t {
    kNotAsked,
    kPending,
    kCounted,  // the step took effect, and the seal read 0 after it
    kSealed,
    kFailed,  // the node was lost, or left the map, or what it holds is not what was asked for
  };
  State state = State::kNotAsked;
  uint8_t lane = 0;      // where `largest` is
  bool foreign = false;  // the header is another register's
  // A write that looks at the lanes: it put the word there itself, and when it looked, ahead of its
  // MAX, there was no seal and nothing larger.
  bool firsthand = false;
  // A read that looks twice: what is the largest was so still in a READ that began after the first.
  bool steady = false;
  uint64_t seal = 0;  // kSealed; of a step that seals, always
  MetaWord largest;   // the largest of all lanes that were looked at
  MetaWord own_lane;  // a write's lane, after it

  [[nodiscard]] bool counts() const { return state == State::kCounted; }
  [[nodiscard]] bool answered() const { return counts() || state == State::kSealed; }
  [[nodiscard]] bool Holds(MetaWord word) const {
    return counts() && largest.AsGuess() >= word.AsGuess();
  }
};

// One per replica, in the order of the view.
using Seen = std::span<const ReplicaSeen>;

inline int Counted(Seen seen) {
  return static_cast<int>(
      std::count_if(seen.begin(), seen.end(), [](const ReplicaSeen& one) { return one.counts(); }));
}

// How a step ended that counts at `needed` replicas. Where enough count, a seal that another one
// has met changes nothing.
struct StepVerdict {
  enum class End : uint8_t {
    kDone,
    kForeign,  // the memory is another register's by now
    kSealed,
    kTooFew,
  };
  End end = End::kDone;
  uint64_t seal = 0;  // kSealed
};

inline StepVerdict JudgeStep(Seen seen, int needed) {
  if (Counted(seen) >= needed) return {};
  StepVerdict verdict{StepVerdict::End::kTooFew, 0};
  for (const ReplicaSeen& one : seen) {
    if (one.foreign) return {StepVerdict::End::kForeign, 0};
    if (one.state == ReplicaSeen::State::kSealed) verdict = {StepVerdict::End::kSealed, one.seal};
  }
  return verdict;
}

struct WordInLane {
  MetaWord word;
  uint8_t lane = 0;
};

// The largest word among the replicas that count.
inline WordInLane LargestOf(Seen seen) {
  WordInLane largest;
  for (const ReplicaSeen& one : seen) {
    if (one.counts() && one.largest > largest.word) largest = {one.largest, one.lane};
  }
  return largest;
}

// How many replicas hold `word` or what is larger.
inline int HoldersOf(Seen seen, MetaWord word) {
  return static_cast<int>(std::count_if(seen.begin(), seen.end(),
                                        [&](const ReplicaSeen& one) { return one.Holds(word); }));
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_REPLICA_SEEN_H_
