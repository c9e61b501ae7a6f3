// The rules of READ as pure functions: SWARM, Algorithm "read", and PROTOCOLS, "A guess that is
// everywhere".
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_READ_RULES_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_READ_RULES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/types.h"
#include "client_core/replication/replica_seen.h"

namespace onetrip {

// The reads of one replica: header and lanes, and then, by a READ of its own, the seal.
struct ReadLook {
  bool is_of_register = false;
  MetaWord largest;  // the largest of its lanes
  uint8_t lane = 0;
  bool has_buffer = false;  // the region of `largest`'s buffer, if not empty, lives on the node
  bool steady = false;      // the lanes, read once more after that, show the same
  uint64_t seal = 0;
};

inline ReplicaSeen SeeRead(const ReadLook& look) {
  ReplicaSeen seen;
  seen.state = ReplicaSeen::State::kFailed;
  seen.foreign = !look.is_of_register;
  if (seen.foreign) return seen;
  seen.largest = look.largest;
  seen.lane = look.lane;
  // A word whose buffer is still missing cannot be read, nor be overtaken.
  if (!look.largest.is_empty() && !look.has_buffer) return seen;
  seen.steady = look.steady;
  seen.seal = Planted(Bug::kSealNotRead) ? 0 : look.seal;
  seen.state = seen.seal == 0 ? ReplicaSeen::State::kCounted : ReplicaSeen::State::kSealed;
  return seen;
}

// True if all that have answered hold `m` first-hand and, looked at twice, as their largest.
inline bool AllHoldFirsthand(Seen seen, MetaWord m) {
  if (m.verified() || !(m.firsthand() || Planted(Bug::kSecondhandCounts))) return false;
  return std::all_of(seen.begin(), seen.end(), [&](const ReplicaSeen& one) {
    if (!one.counts()) return true;
    if (Planted(Bug::kSecondhandCounts)) return one.largest.AsGuess() == m.AsGuess() && one.steady;
    return one.largest == m && one.steady;
  });
}

// True if `m`, the largest, is everywhere; the register has `all` replicas if none is missing.
inline bool IsEverywhere(Seen seen, MetaWord m, int all) {
  return Counted(seen) >= all && AllHoldFirsthand(seen, m);
}

enum class ReadNext : uint8_t { kEmpty, kReturn, kReadGuess };

// After the first M.read().
inline ReadNext NextOfRead(MetaWord m, bool everywhere) {
  if (m.is_empty()) return ReadNext::kEmpty;
  return m.verified() || everywhere ? ReadNext::kReturn : ReadNext::kReadGuess;
}

// A guess that a read has met in one of its iterations.
struct GuessSeen {
  MetaWord word;
  WorkerId writer;
};

enum class GuessNext : uint8_t {
  kReturn,         // it
  kReturnEarlier,  // the same writer's tuple that the read has met before: seen[earlier]
  kLock,           // it, as a reader
  kReadAgain,
};

struct GuessVerdict {
  GuessNext next = GuessNext::kReadAgain;
  size_t earlier = 0;
};

// After an M.read() that has returned `m`; `seen` are the guesses of the iterations before, by
// different writers.
inline GuessVerdict NextOfGuess(std::span<const GuessSeen> seen, const GuessSeen& m,
                                bool everywhere) {
  if (m.word.verified() || everywhere) return {GuessNext::kReturn};
  if (Planted(Bug::kReadAwaitsVerified)) return {GuessNext::kReadAgain};
  const auto is_same_word = [&](const GuessSeen& t) {
    return t.word.AsGuess() == m.word.AsGuess();
  };
  // Read twice: its timestamp was fresh.
  if (Planted(Bug::kNoSecondRead) || std::any_of(seen.begin(), seen.end(), is_same_word)) {
    return {Planted(Bug::kNoReaderLock) ? GuessNext::kReturn : GuessNext::kLock};
  }
  const auto earlier = std::find_if(seen.begin(), seen.end(), [&](const GuessSeen& t) {
    return t.writer == m.writer || Planted(Bug::kSeenPerRegister);
  });
  if (earlier == seen.end()) return {GuessNext::kReadAgain};
  // The writer has moved on, so that write was complete; what is returned is that write.
  if (Planted(Bug::kSameWriterNewest)) return {GuessNext::kReturn};
  return {GuessNext::kReturnEarlier, static_cast<size_t>(earlier - seen.begin())};
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_READ_RULES_H_
