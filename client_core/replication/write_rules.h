// The rules of WRITE as pure functions: SWARM, Algorithm "write" and 4.4, "MAX", and PROTOCOLS, "A
// guess that is everywhere".
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_WRITE_RULES_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_WRITE_RULES_H_

#include <algorithm>
#include <cstdint>

#include "client_core/base/planted_bug.h"
#include "client_core/replication/replica_seen.h"

namespace onetrip {

// The word that the CAS of a lane expects that is thought to hold `thought`: one from a larger word
// would set the lane back.
constexpr MetaWord ExpectedInLane(MetaWord thought, MetaWord word) {
  return thought.AsGuess() < word.AsGuess() ? thought : MetaWord();
}

// Tells what an earlier batch of the same write did at a replica, and found there ahead of that.
struct EarlierLook {
  bool posted = false;
  bool known = false;  // the rest, but for `lost`
  bool took = false;   // the word was put there
  bool lost = false;   // it is not known if it was
  bool open = false;   // no seal
  uint8_t lane = 0;
  MetaWord largest;
};

// One look at a replica's lanes, ahead of the MAX.
struct LanesLook {
  MetaWord largest;
  uint8_t lane = 0;
  bool open = false;  // no seal
};

// One round trip of MAX: of `lane` to `word`, which it found to hold `found`, by the fabric's MAX
// or by a CAS, then READ of the seal.
struct MaxLook {
  MetaWord word;
  MetaWord found;
  bool took = false;  // `word` is there in its place
  uint8_t lane = 0;
  uint64_t seal = 0;
};

enum class MaxNext : uint8_t {
  kReport,  // the replica counts, or is sealed
  kAgain,   // a CAS expected another word: again, with `found` as expected
  kFail,    // it is not known what the replica holds of the write
};

// `lanes`, if not null: looked at in the first round trip. `*seen` is what is reported; it keeps
// what it says of other things.
inline MaxNext SeeMax(const MaxLook& look, const LanesLook* lanes, const EarlierLook& earlier,
                      ReplicaSeen* seen) {
  const bool took = look.took;
  if (!took && look.found.AsGuess() < look.word.AsGuess()) return MaxNext::kAgain;
  // Put there by this very write, perhaps overtaken in its lane since: what has come after it is
  // not to be looked at.
  const bool took_earlier = !took && (earlier.took || (earlier.posted && look.found == look.word));
  bool untouched = lanes != nullptr && lanes->open && lanes->largest < look.word;
  if (lanes != nullptr && lanes->largest > seen->largest) {
    seen->largest = lanes->largest;
    seen->lane = lanes->lane;
  }
  if (took_earlier) {
    if (!earlier.known) return MaxNext::kFail;
    seen->largest = earlier.largest;
    seen->lane = earlier.lane;
    untouched = earlier.open && earlier.largest < look.word;
  } else if (!took && earlier.lost) {
    return MaxNext::kFail;
  }
  seen->firsthand = untouched && (took || took_earlier);
  seen->own_lane = took ? look.word : look.found;
  const MetaWord in_lane = took_earlier ? look.word : seen->own_lane;
  if (in_lane > seen->largest) {
    seen->largest = in_lane;
    seen->lane = look.lane;
  }
  seen->seal = Planted(Bug::kSealNotRead) ? 0 : look.seal;
  seen->state = seen->seal == 0 ? ReplicaSeen::State::kCounted : ReplicaSeen::State::kSealed;
  return MaxNext::kReport;
}

// Returns true if the guess `w` stands: its M.write, which counts at a majority, has met nothing
// larger there. Else it was overtaken.
inline bool GuessStands(MetaWord largest, MetaWord w) { return largest.AsGuess() <= w.AsGuess(); }

// Returns true if a replica has answered the guess's M.write that cannot show it to readers
// first-hand and as its largest.
inline bool IsHindered(Seen seen) {
  return std::any_of(seen.begin(), seen.end(),
                     [](const ReplicaSeen& one) { return one.answered() && !one.firsthand; });
}

// Tells if a guess may have been read without a lock, by readers that saw it everywhere. A writer
// whose guess was overtaken need not ask: what overtook it has hindered it.
enum class GuessSpread : uint8_t {
  kHindered,  // no reader has, nor will: some replica cannot show it first-hand and as its largest
  kFresh,     // perhaps; at a majority there was no seal, and nothing larger, when the write came
  kUnknown,
};

// Tells what the answers to the guess's M.write say. `is_whole`: all replicas that the register is
// to have were live when the write's first batch was posted; `never_posted`: to one of them nothing
// of the write was.
inline GuessSpread SpreadOf(Seen seen, int majority, bool is_whole, bool never_posted) {
  const auto fresh = std::count_if(seen.begin(), seen.end(), [](const ReplicaSeen& one) {
    return one.answered() && one.firsthand;
  });
  if (fresh >= majority) return GuessSpread::kFresh;
  return IsHindered(seen) || !is_whole || never_posted ? GuessSpread::kHindered
                                                       : GuessSpread::kUnknown;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_WRITE_RULES_H_
