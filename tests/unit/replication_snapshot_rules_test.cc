// The rules of SNAPSHOT, for every vote pattern of 1 to 4 backups and up to 5 writers.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "client_core/replication/snapshot_rules.h"

namespace onetrip {
namespace {

constexpr size_t kMaxBackups = 4;
constexpr uint64_t kMaxWriters = 5;

// How a writer fares with these votes while the primary still holds v_old.
bool Wins(const std::vector<uint64_t>& votes, uint64_t v_new) {
  switch (EvaluateRules(votes, v_new)) {
    case Verdict::kWinAll:
    case Verdict::kWinMajority:
      return true;
    case Verdict::kAskMinimum:
      return WinsByMinimum(votes, v_new);
    case Verdict::kLose:
      return false;
  }
  return false;
}

// Calls `visit` with every way to fill `votes` with words of `words`.
template <typename Visit>
void ForEveryPattern(size_t backups, const std::vector<uint64_t>& words, Visit visit) {
  std::vector<size_t> digits(backups, 0);
  std::vector<uint64_t> votes(backups);
  while (true) {
    for (size_t i = 0; i < backups; ++i) votes[i] = words[digits[i]];
    visit(votes);
    size_t digit = 0;
    while (digit < backups && ++digits[digit] == words.size()) digits[digit++] = 0;
    if (digit == backups) return;
  }
}

std::vector<uint64_t> Writers(uint64_t count) {
  std::vector<uint64_t> writers;
  for (uint64_t i = 1; i <= count; ++i) writers.push_back(i * 100);
  return writers;
}

size_t CountWinners(const std::vector<uint64_t>& votes, const std::vector<uint64_t>& writers) {
  size_t winners = 0;
  for (const uint64_t writer : writers) winners += Wins(votes, writer);
  return winners;
}

// Every backup took the word of one of the writers: all patterns can happen, and since words are
// compared only with each other, all orders of the writers are among them.
TEST(SnapshotRulesTest, EveryPatternHasExactlyOneWinner) {
  size_t patterns = 0;
  for (size_t backups = 1; backups <= kMaxBackups; ++backups) {
    for (uint64_t count = 1; count <= kMaxWriters; ++count) {
      const std::vector<uint64_t> writers = Writers(count);
      ForEveryPattern(backups, writers, [&](const std::vector<uint64_t>& votes) {
        ASSERT_EQ(CountWinners(votes, writers), 1U) << testing::PrintToString(votes);
        ++patterns;
      });
    }
  }
  EXPECT_EQ(patterns, 15U + 55 + 225 + 979) << "sums of n, n^2, n^3, n^4 for n up to 5";
}

TEST(SnapshotRulesTest, WithoutBackupsTheWriterWins) {
  EXPECT_EQ(EvaluateRules({}, 7), Verdict::kWinAll);
}

TEST(SnapshotRulesTest, AWriterWithoutAVoteLoses) {
  for (size_t backups = 1; backups <= kMaxBackups; ++backups) {
    ForEveryPattern(backups, Writers(kMaxWriters), [&](const std::vector<uint64_t>& votes) {
      for (const uint64_t outsider : {uint64_t{1}, uint64_t{250}, uint64_t{10'000}}) {
        ASSERT_EQ(EvaluateRules(votes, outsider), Verdict::kLose);
      }
    });
  }
}

TEST(SnapshotRulesTest, EachRuleAppliesWhereItShould) {
  ForEveryPattern(kMaxBackups, Writers(3), [&](const std::vector<uint64_t>& votes) {
    for (const uint64_t writer : Writers(3)) {
      const auto own = static_cast<size_t>(std::count(votes.begin(), votes.end(), writer));
      size_t most = 0;
      for (const uint64_t vote : votes) {
        most = std::max(most, static_cast<size_t>(std::count(votes.begin(), votes.end(), vote)));
      }
      Verdict expected = Verdict::kLose;
      if (own == votes.size()) {
        expected = Verdict::kWinAll;
      } else if (2 * own > votes.size()) {
        expected = Verdict::kWinMajority;
      } else if (own > 0 && 2 * most <= votes.size()) {
        expected = Verdict::kAskMinimum;
      }
      ASSERT_EQ(EvaluateRules(votes, writer), expected) << testing::PrintToString(votes);
    }
  });
}

// A writer whose CAS comes late finds some backups already repaired by the winner, or even, if the
// round is over, words of later rounds. It must not believe that it has won; where rule 3 sends it
// to the primary, the primary has changed, unless all it saw is the winner's repair.
TEST(SnapshotRulesTest, ALateWriterNeverWinsAgainstTheWinner) {
  for (size_t backups = 1; backups <= kMaxBackups; ++backups) {
    const std::vector<uint64_t> writers = Writers(4);
    ForEveryPattern(backups, writers, [&](const std::vector<uint64_t>& votes) {
      uint64_t winner = 0;
      for (const uint64_t writer : writers) winner = Wins(votes, writer) ? writer : winner;
      for (const uint64_t late : writers) {
        if (late == winner) continue;
        // Each backup shows the late writer one of these: its own vote where it has one; else the
        // vote, the winner's repair (1), or a later round's word, below (2) or above (3) all
        // others.
        ForEveryPattern(backups, {0, 1, 2, 3}, [&](const std::vector<uint64_t>& shown) {
          std::vector<uint64_t> seen = votes;
          bool later_round = false;
          for (size_t i = 0; i < backups; ++i) {
            if (votes[i] == late || shown[i] == 0) continue;
            seen[i] = shown[i] == 1 ? winner : shown[i] == 2 ? 1 : 10'000;
            later_round |= shown[i] > 1;
          }
          const Verdict verdict = EvaluateRules(seen, late);
          ASSERT_NE(verdict, Verdict::kWinAll);
          ASSERT_NE(verdict, Verdict::kWinMajority);
          ASSERT_TRUE(later_round || !Wins(seen, late)) << testing::PrintToString(seen);
        });
      }
    });
  }
}

// Words that no writer of the round wrote, such as those of the dead: there may be no winner, but
// never two.
TEST(SnapshotRulesTest, NoPatternHasTwoWinners) {
  for (size_t backups = 1; backups <= kMaxBackups; ++backups) {
    const std::vector<uint64_t> writers = Writers(4);
    std::vector<uint64_t> words = writers;
    for (const uint64_t foreign : {uint64_t{0}, uint64_t{150}, ~uint64_t{0}}) {
      words.push_back(foreign);
    }
    ForEveryPattern(backups, words, [&](const std::vector<uint64_t>& votes) {
      ASSERT_LE(CountWinners(votes, writers), 1U) << testing::PrintToString(votes);
    });
  }
}

TEST(SnapshotRulesTest, OneWhoHasNotWonByTheVotesAloneAsksThePrimary) {
  for (const bool shared : {false, true}) {
    EXPECT_EQ(NextOfRound(Verdict::kWinAll, shared), RoundNext::kCommit);
    EXPECT_EQ(NextOfRound(Verdict::kAskMinimum, shared), RoundNext::kAskPrimary);
    EXPECT_EQ(NextOfRound(Verdict::kLose, shared), RoundNext::kAwaitChange);
  }
  EXPECT_EQ(NextOfRound(Verdict::kWinMajority, false), RoundNext::kFixBackups);
  // The votes for a word that others propose, too, may be of a round that it has won before.
  EXPECT_EQ(NextOfRound(Verdict::kWinMajority, true), RoundNext::kAskPrimary);
}

TEST(SnapshotRulesTest, WhereThePrimaryIsUnchangedTheMajorityOrTheMinimumHasWon) {
  for (size_t backups = 1; backups <= kMaxBackups; ++backups) {
    const std::vector<uint64_t> writers = Writers(3);
    ForEveryPattern(backups, writers, [&](const std::vector<uint64_t>& votes) {
      size_t winners = 0;
      for (const uint64_t v_new : writers) {
        const Verdict verdict = EvaluateRules(votes, v_new);
        RoundNext next = NextOfRound(verdict, /*shared=*/false);
        if (next == RoundNext::kAskPrimary) next = NextOfUnchanged(verdict, votes, v_new);
        ASSERT_NE(next, RoundNext::kAskPrimary);
        winners += next == RoundNext::kAwaitChange ? 0 : 1;
      }
      ASSERT_EQ(winners, 1U);
    });
  }
}

TEST(SnapshotRulesTest, AWinnersCasOfThePrimaryFailsOnlyWhereOthersMayDoIt) {
  for (const bool has_backups : {false, true}) {
    for (const bool shared : {false, true}) {
      EXPECT_EQ(JudgePrimary(1, 1, has_backups, shared), PrimaryVerdict::kWon);
      const bool is_corrupt = has_backups && !shared;
      EXPECT_EQ(JudgePrimary(2, 1, has_backups, shared),
                is_corrupt ? PrimaryVerdict::kCorrupt : PrimaryVerdict::kLost);
    }
  }
}

// A slot from v_old on: every way in which a few writers, deleters, inserters and a split may have
// gone on from there, and what a writer that was cut short then learns from the logs.
class SlotHistory {
 public:
  static SlotWord Object(uint64_t record, SlotKind kind = SlotKind::kObject) {
    return SlotWord::Make(kind, 1, SizeClass(0), GlobalAddr(0, 4096 + record * kObjectAlignBytes),
                          record % 2 == 0);
  }
  explicit SlotHistory(SlotWord v_old) : words_{v_old}, logs_(kRecords) {}
  // That of a slot that holds `claim`.
  SlotHistory(SlotWord empty, SlotWord claim) : words_{empty, claim}, logs_(kRecords) {}

  // Calls `visit` for this history and all that go on from it by at most `steps`.
  template <typename Visit>
  void ForEach(int steps, const Visit& visit) {
    visit(*this);
    if (steps == 0) return;
    const SlotWord now = words_.back();
    const auto go_on = [&](SlotWord next, bool logs) {
      SlotHistory longer = *this;
      longer.words_.push_back(next);
      if (NamesRecord(next) && next.kind() == SlotKind::kObject) {
        // A commit tells of the word that was claimed.
        const bool is_commit = now.kind() == SlotKind::kTentative;
        const SlotWord replaced = is_commit ? words_[words_.size() - 2] : now;
        longer.logs_[RecordOf(next)] = logs ? replaced.bits() | kLogCommitted : 0;
      }
      longer.ForEach(steps - 1, visit);
    };
    if (now.kind() == SlotKind::kTentative) {
      go_on(now.WithKind(SlotKind::kObject), true);
      go_on(words_[words_.size() - 2], false);
    } else if (now.is_empty()) {
      for (uint64_t record = 1; record < kRecords; ++record) {
        if (!Has(record)) go_on(Object(record, SlotKind::kTentative), false);
      }
    } else if (now.kind() == SlotKind::kObject) {
      for (uint64_t record = 1; record < kRecords; ++record) {
        if (!Has(record)) go_on(Object(record), true);
      }
      // A record that a recovery has put there may lack its log.
      if (!Has(kRecords - 1)) go_on(Object(kRecords - 1), false);
      go_on(now.WithKind(SlotKind::kFrozen), false);
    }
    if (!now.is_empty()) go_on(SlotWord::Empty(WorkerId{1}, words_.size()), false);
  }

  [[nodiscard]] bool Has(uint64_t record) const {
    return std::any_of(words_.begin(), words_.end(), [record](SlotWord word) {
      return NamesRecord(word) && RecordOf(word) == record;
    });
  }
  // True if each word but the first is of a record that says what it replaced.
  [[nodiscard]] bool IsLogged() const {
    return std::all_of(words_.begin() + 1, words_.end(), [this](SlotWord word) {
      return word.kind() == SlotKind::kFrozen ||
             (word.kind() == SlotKind::kObject && logs_[RecordOf(word)] != 0);
    });
  }
  [[nodiscard]] SlotWord now() const { return words_.back(); }
  [[nodiscard]] Fate Ask(uint64_t v_old, uint64_t v_new) const {
    SlotWord word = now();
    while (true) {
      const uint64_t log = NamesRecord(word) ? logs_[RecordOf(word)] : 0;
      const FateByLog judged = JudgeLog(word, log, v_old, v_new);
      if (judged.fate.has_value()) return *judged.fate;
      word = judged.before;
    }
  }
  static constexpr uint64_t kRecords = 6;  // 0: v_old's

 private:
  static uint64_t RecordOf(SlotWord word) {
    return (word.addr().offset() - 4096) / kObjectAlignBytes;
  }
  std::vector<SlotWord> words_;
  std::vector<uint64_t> logs_;
};

TEST(SnapshotRulesTest, LogsTellWhatBecameOfAWriteThatWasCutShort) {
  const SlotWord v_old = SlotHistory::Object(0);
  const SlotWord v_new = SlotHistory::Object(1);
  size_t histories = 0;
  size_t told = 0;
  SlotHistory(v_old).ForEach(5, [&](const SlotHistory& history) {
    if (history.now() == v_old || history.now() == v_new) return;
    const Fate fate = history.Ask(v_old.bits(), v_new.bits());
    ++histories;
    told += fate != Fate::kUnknown;
    const bool was_there = history.Has(1);
    if (fate != Fate::kUnknown) {
      EXPECT_EQ(fate == Fate::kWon, was_there);
    }
    EXPECT_FALSE(history.IsLogged() && fate == Fate::kUnknown);
  });
  EXPECT_GT(histories, 2000U);
  EXPECT_GT(told, 500U);
}

TEST(SnapshotRulesTest, WhoeverIsCutShortAmidACommitKnowsWhetherItWon) {
  const SlotWord empty = SlotWord::Empty(WorkerId{7}, 7);
  const SlotWord claim = SlotHistory::Object(1, SlotKind::kTentative);
  const uint64_t v_old = empty.bits();
  const uint64_t v_new = claim.WithKind(SlotKind::kObject).bits();
  size_t lost = 0;
  size_t asked = 0;
  SlotHistory(empty, claim).ForEach(4, [&](const SlotHistory& history) {
    const SlotWord now = history.now();
    const bool was_there = history.Has(1);
    for (const bool touched : {false, true}) {
      switch (NextOfCutShort(SlotStep::kCommit, now.bits(), v_old, v_new, touched)) {
        case CutShortNext::kWon:
          EXPECT_TRUE(was_there);
          break;
        case CutShortNext::kGoOn:
          EXPECT_EQ(now, claim);
          break;
        case CutShortNext::kLost:
          EXPECT_FALSE(touched);
          break;
        case CutShortNext::kTakeBack:
          EXPECT_TRUE(touched);
          // With the word that was claimed it is over; else the logs tell.
          if (now == empty) {
            EXPECT_FALSE(was_there);
            ++lost;
          } else if (history.Ask(v_old, v_new) != Fate::kUnknown) {
            EXPECT_EQ(history.Ask(v_old, v_new) == Fate::kWon, was_there);
            ++asked;
          }
          break;
        case CutShortNext::kAskLogs:
          FAIL() << "a commit asks no logs before its word is off the backups";
      }
    }
  });
  EXPECT_GT(lost, 0U);
  EXPECT_GT(asked, 20U);
}

TEST(SnapshotRulesTest, AClaimThatIsCutShortIsThereOrNot) {
  for (const SlotStep step : {SlotStep::kClaim, SlotStep::kWithdraw}) {
    for (const bool touched : {false, true}) {
      EXPECT_EQ(NextOfCutShort(step, 6, 5, 6, touched), CutShortNext::kWon);
      EXPECT_EQ(NextOfCutShort(step, 5, 5, 6, touched), CutShortNext::kGoOn);
      EXPECT_EQ(NextOfCutShort(step, 7, 5, 6, touched), CutShortNext::kLost);
    }
  }
}

}  // namespace
}  // namespace onetrip
