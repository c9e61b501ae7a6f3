// The rules of claims, by every way in which a few inserters may meet.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "client_core/index/claim_rules.h"

namespace onetrip {
namespace {

SlotWord Committed(uint64_t object) {
  return SlotWord::Make(SlotKind::kObject, 7, SizeClass(3),
                        GlobalAddr(0, 4096 + object * kObjectAlignBytes), object % 2 == 0);
}
SlotWord Claim(uint64_t object) { return SlotWord(ClaimOf(Committed(object).bits())); }

TEST(ClaimRulesTest, AClaimIsTheWordOfItsCommitUnderAnotherKind) {
  for (uint64_t object = 0; object < 4; ++object) {
    EXPECT_EQ(Claim(object).kind(), SlotKind::kTentative);
    EXPECT_EQ(Claim(object).addr(), Committed(object).addr());
    EXPECT_EQ(ExpectedOfPrimary(SlotStep::kCommit, 5, Committed(object).bits()),
              Claim(object).bits());
  }
  for (const SlotStep step : {SlotStep::kRound, SlotStep::kClaim, SlotStep::kWithdraw}) {
    EXPECT_EQ(ExpectedOfPrimary(step, 5, 6), 5U);
  }
}

// Every set of up to three backups, each with the commit, that of another claim, an EMPTY word, the
// claim itself, or the commit frozen.
TEST(ClaimRulesTest, AClaimIsDecidedOnceAllLiveBackupsHoldItsCommit) {
  const uint64_t commit = Committed(1).bits();
  const std::array<uint64_t, 5> words = {commit, Committed(3).bits(),
                                         SlotWord::Empty(WorkerId{1}, 2).bits(), Claim(1).bits(),
                                         Committed(1).WithKind(SlotKind::kFrozen).bits()};
  for (size_t count = 0; count <= 3; ++count) {
    const auto sets = static_cast<size_t>(std::pow(words.size(), count));
    for (size_t set = 0; set < sets; ++set) {
      std::vector<uint64_t> backups;
      for (size_t i = 0, rest = set; i < count; ++i, rest /= words.size()) {
        backups.push_back(words[rest % words.size()]);
      }
      const bool is_decided = count >= 1 && set == 0;
      EXPECT_EQ(IsDecided(Claim(1), backups), is_decided);
      EXPECT_EQ(SeenOfClaim(Claim(1), backups, Claim(1).bits()),
                is_decided ? ClaimSeen::kDecided : ClaimSeen::kUndecided);
      EXPECT_EQ(SeenOfClaim(Claim(1), backups, commit),
                is_decided ? ClaimSeen::kDecided : ClaimSeen::kChanged);
      // The resolution of slots and who meets a claim never differ about one that is decided.
      if (is_decided) {
        EXPECT_EQ(ResolvedClaim(Claim(1), backups, SlotWord()).bits(), commit);
      }
    }
  }
  EXPECT_TRUE(AnswersAheadOfPrimary(3));
  EXPECT_FALSE(AnswersAheadOfPrimary(2));
}

TEST(ClaimRulesTest, AnEntryOfTheKeyIsUsed) {
  for (const SlotKind kind : {SlotKind::kObject, SlotKind::kFrozen}) {
    EXPECT_EQ(NextOfClaim(Claim(1), Committed(0).WithKind(kind)), ClaimNext::kWithdraw);
    EXPECT_EQ(NextOfClaim(Claim(1), Committed(2).WithKind(kind)), ClaimNext::kWithdraw);
  }
}

TEST(ClaimRulesTest, OfTwoClaimsOneWaitsForTheOther) {
  for (uint64_t one = 0; one < 4; ++one) {
    for (uint64_t other = 0; other < 4; ++other) {
      if (one == other) continue;
      const bool waits = NextOfClaim(Claim(one), Claim(other)) == ClaimNext::kWait;
      EXPECT_NE(waits, NextOfClaim(Claim(other), Claim(one)) == ClaimNext::kWait);
    }
  }
}

// Inserters of one key, each with a slot of its own, by steps that are atomic at the primary.
class Inserters {
 public:
  static constexpr size_t kCount = 3;
  enum class At : uint8_t { kSearch, kClaimed, kMayCommit, kDone };

  // Goes on from here by every step of every inserter.
  void Explore() {
    if (!seen_.insert(State()).second) return;
    bool all_done = true;
    for (size_t who = 0; who < kCount; ++who) {
      all_done = all_done && at_[who] == At::kDone;
      const Inserters before = *this;
      Step(who);
      ASSERT_LE(Entries(), 1U);
      if (!(*this == before)) Explore();
      at_ = before.at_;
      has_inserted_ = before.has_inserted_;
      if (testing::Test::HasFailure()) return;
    }
    if (!all_done) return;
    ++ends_;
    EXPECT_EQ(Entries(), 1U);
  }
  [[nodiscard]] size_t states() const { return seen_.size(); }
  [[nodiscard]] size_t ends() const { return ends_; }

 private:
  bool operator==(const Inserters& other) const {
    return at_ == other.at_ && has_inserted_ == other.has_inserted_;
  }
  [[nodiscard]] std::tuple<std::array<At, kCount>, std::array<bool, kCount>> State() const {
    return {at_, has_inserted_};
  }
  [[nodiscard]] size_t Entries() const {
    return static_cast<size_t>(has_inserted_[0]) + has_inserted_[1] + has_inserted_[2];
  }
  // The primary's word of the slot of `who`.
  [[nodiscard]] SlotWord Word(size_t who) const {
    if (has_inserted_[who]) return Committed(who);
    const bool is_claimed = at_[who] == At::kClaimed || at_[who] == At::kMayCommit;
    return is_claimed ? Claim(who) : SlotWord::Empty(WorkerId{1}, who);
  }

  void Step(size_t who) {
    switch (at_[who]) {
      case At::kSearch:
        at_[who] = Entries() > 0 ? At::kDone : At::kClaimed;
        break;
      case At::kClaimed: {
        ClaimNext next = ClaimNext::kCommit;
        for (size_t other = 0; other < kCount; ++other) {
          if (other == who || Word(other).is_empty()) continue;
          next = std::max(next, NextOfClaim(Word(who), Word(other)));
        }
        if (next == ClaimNext::kWait) break;
        at_[who] = next == ClaimNext::kCommit ? At::kMayCommit : At::kSearch;
        break;
      }
      case At::kMayCommit:
        has_inserted_[who] = true;
        at_[who] = At::kDone;
        break;
      case At::kDone:
        break;
    }
  }

  std::array<At, kCount> at_{};
  std::array<bool, kCount> has_inserted_{};
  std::set<std::tuple<std::array<At, kCount>, std::array<bool, kCount>>> seen_;
  size_t ends_ = 0;
};

TEST(ClaimRulesTest, OfInsertersOfOneKeyOneInserts) {
  Inserters inserters;
  inserters.Explore();
  EXPECT_GT(inserters.states(), 30U);
  EXPECT_EQ(inserters.ends(), Inserters::kCount) << "one end for each that may be the first";
}

TEST(ClaimRulesTest, AResolutionGivesAClaimBackOrCommitsIt) {
  const SlotWord claim = Claim(1);
  const SlotWord committed = Committed(1);
  const SlotWord empty = SlotWord::Empty(WorkerId{3}, 4);
  const SlotWord fresh = SlotWord::Empty(WorkerId{9}, 9);
  const std::vector<SlotWord> words{claim, committed, empty, Committed(2)};
  EXPECT_EQ(ResolvedClaim(claim, {}, fresh), fresh);
  for (const SlotWord first : words) {
    const std::array<uint64_t, 1> one{first.bits()};
    const SlotWord of_one = ResolvedClaim(claim, one, fresh);
    EXPECT_EQ(of_one, first == empty || first == committed ? first : fresh);
    for (const SlotWord second : words) {
      const std::array<uint64_t, 2> two{first.bits(), second.bits()};
      const SlotWord word = ResolvedClaim(claim, two, fresh);
      const bool is_free = first == empty || second == empty;
      const bool is_everywhere = first == committed && second == committed;
      EXPECT_EQ(word, is_free ? empty : is_everywhere ? committed : fresh);
    }
  }
}

}  // namespace
}  // namespace onetrip
