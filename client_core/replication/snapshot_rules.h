// The conflict resolution rules of SNAPSHOT as a pure function (FUSEE Algorithm 2).
//
// Every conflicting writer holds the same votes once all have CASed the backups, because each
// backup changes once a round. So each writer decides alone, and all decide alike.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_RULES_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_RULES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "client_core/layout/record.h"
#include "client_core/layout/slot.h"
#include "client_core/replication/slot_step.h"

namespace onetrip {

enum class Verdict : uint8_t {
  kWinAll,       // rule 1: every backup took v_new
  kWinMajority,  // rule 2: most backups took v_new
  kAskMinimum,   // no majority and v_new has a vote: rule 3 decides, if the primary is unchanged
  kLose,
};

// `votes`: per backup, the word it holds after the CAS round: v_new where the CAS succeeded, else
// what was found. No backup (r = 1): v_new wins by rule 1. Lines 2-11 of Algorithm 2.
inline Verdict EvaluateRules(std::span<const uint64_t> votes, uint64_t v_new) {
  uint64_t majority = v_new;
  size_t count = 0;
  for (const uint64_t vote : votes) {
    const auto same = static_cast<size_t>(std::count(votes.begin(), votes.end(), vote));
    if (same > count) {
      count = same;
      majority = vote;
    }
  }
  if (count == votes.size()) return majority == v_new ? Verdict::kWinAll : Verdict::kLose;
  if (2 * count > votes.size()) return majority == v_new ? Verdict::kWinMajority : Verdict::kLose;
  const bool has_vote = std::find(votes.begin(), votes.end(), v_new) != votes.end();
  return has_vote ? Verdict::kAskMinimum : Verdict::kLose;
}

// The writer's next step.
enum class RoundNext : uint8_t {
  kCommit,       // the log, then the primary: it has won, and the backups hold v_new
  kFixBackups,   // and then commit: it has won
  kAskPrimary,   // if it still holds v_old, without which the votes say nothing
  kAwaitChange,  // wait until the primary changes: another one has won
};

// After the CAS round. `shared`: others may propose v_new, too, and votes for it may be of an
// earlier round, which it has won.
constexpr RoundNext NextOfRound(Verdict verdict, bool shared) {
  switch (verdict) {
    case Verdict::kWinAll:
      return RoundNext::kCommit;
    case Verdict::kWinMajority:
      return shared ? RoundNext::kAskPrimary : RoundNext::kFixBackups;
    case Verdict::kAskMinimum:
      return RoundNext::kAskPrimary;
    case Verdict::kLose:
      break;
  }
  return RoundNext::kAwaitChange;
}

// Rule 3, after the primary was read and still holds v_old (lines 12-18).
inline bool WinsByMinimum(std::span<const uint64_t> votes, uint64_t v_new) {
  return *std::min_element(votes.begin(), votes.end()) == v_new;
}

// After kAskPrimary, where the primary still holds v_old.
inline RoundNext NextOfUnchanged(Verdict verdict, std::span<const uint64_t> votes, uint64_t v_new) {
  const bool has_won = verdict == Verdict::kWinMajority || WinsByMinimum(votes, v_new);
  return has_won ? RoundNext::kFixBackups : RoundNext::kAwaitChange;
}

enum class PrimaryVerdict : uint8_t { kWon, kLost, kCorrupt };

// Judges what the winner's CAS of the primary has `found`. There is one winner a round; without
// backups there are no votes, and this CAS is the decision.
constexpr PrimaryVerdict JudgePrimary(uint64_t found, uint64_t v_old, bool has_backups,
                                      bool shared) {
  if (found == v_old) return PrimaryVerdict::kWon;
  return has_backups && !shared ? PrimaryVerdict::kCorrupt : PrimaryVerdict::kLost;
}

// The fate of a write whose word may be in a backup, when the primary holds neither its v_old
// nor its v_new any more.
enum class Fate : uint8_t {
  kWon,   // v_new was in the primary
  kLost,  // another word took v_old's place, and v_new will not be in the primary
  kUnknown,
};

// The next step of a write that was cut short, when it looks at the primary again, behind all that
// it has sent there, and finds `now`.
enum class CutShortNext : uint8_t {
  kWon,
  kGoOn,  // from the beginning
  kLost,
  kAskLogs,   // others have gone on: from v_old, or from v_new
  kTakeBack,  // the claim is gone, and v_new may be in a backup: off with it, for the slot is free
};

// `touched`: v_new may be in a backup, or, of the primary alone, there.
constexpr CutShortNext NextOfCutShort(SlotStep step, uint64_t now, uint64_t v_old, uint64_t v_new,
                                      bool touched) {
  if (now == v_new) return CutShortNext::kWon;
  if (now == ExpectedOfPrimary(step, v_old, v_new)) return CutShortNext::kGoOn;
  if (!touched || IsOfPrimaryAlone(step)) return CutShortNext::kLost;
  return step == SlotStep::kCommit ? CutShortNext::kTakeBack : CutShortNext::kAskLogs;
}

constexpr bool NamesRecord(SlotWord word) {
  return word.kind() == SlotKind::kObject || word.kind() == SlotKind::kFrozen;
}

struct FateByLog {
  std::optional<Fate> fate;
  SlotWord before;  // no fate yet: the word that was in the primary before, to be judged next
};

// `word` was in the primary after v_old was, and `log` is the log word of the record that it names:
// what that record took the place of. A split freezes a word where it stands.
constexpr FateByLog JudgeLog(SlotWord word, uint64_t log, uint64_t v_old, uint64_t v_new) {
  const auto names = [](SlotWord one, uint64_t other) {
    const SlotWord record(other);
    return NamesRecord(one) && NamesRecord(record) && one.addr() == record.addr();
  };
  if (names(word, v_new)) return {Fate::kWon, {}};
  if (!NamesRecord(word) || names(word, v_old)) {
    return {NamesRecord(word) ? Fate::kLost : Fate::kUnknown, {}};
  }
  if ((log & kLogCommitted) == 0) return {Fate::kUnknown, {}};
  const uint64_t before = log & ~kLogCommitted;
  if (before == v_new || names(SlotWord(before), v_new)) return {Fate::kWon, {}};
  if (before == v_old || names(SlotWord(before), v_old)) return {Fate::kLost, {}};
  return {std::nullopt, SlotWord(before)};
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_RULES_H_
