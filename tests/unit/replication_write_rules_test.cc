// The rules of WRITE, for all that a replica can show in a round trip of MAX.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "client_core/fabric/round_trip.h"
#include "client_core/replication/write_rules.h"

namespace onetrip {
namespace {

using State = ReplicaSeen::State;

MetaWord GuessOf(RegisterTime time) { return {time, GlobalAddr(0, 32ULL * time)}; }

// The write under test, and the words before and after it.
const MetaWord kWritten = GuessOf(2).AsFirsthand();

std::vector<MetaWord> Words() {
  std::vector<MetaWord> words{MetaWord()};
  for (const RegisterTime time : {1, 2, 3}) {
    words.push_back(GuessOf(time));
    words.push_back(GuessOf(time).AsFirsthand());
    words.push_back(GuessOf(time).AsVerified());
  }
  return words;
}

std::vector<EarlierLook> Earliers() {
  std::vector<EarlierLook> all{EarlierLook()};
  for (int bits = 0; bits < 16; ++bits) {
    for (const MetaWord largest : {MetaWord(), GuessOf(1).AsVerified(), GuessOf(3).AsVerified()}) {
      all.push_back({.posted = true,
                     .known = (bits & 1) != 0,
                     .took = (bits & 2) != 0,
                     .lost = (bits & 4) != 0,
                     .open = (bits & 8) != 0,
                     .lane = 1,
                     .largest = largest});
    }
  }
  return all;
}

// Calls `visit` with every look, with what was in the lanes ahead of it, and with every earlier
// batch.
template <typename Visit>
void ForEveryLook(Visit visit) {
  const std::vector<EarlierLook> earliers = Earliers();
  for (const MetaWord thought : Words()) {
    const MetaWord expected = ExpectedInLane(thought, kWritten);
    for (const MetaWord found : Words()) {
      for (const uint64_t seal : {uint64_t{0}, uint64_t{7}}) {
        for (const MetaWord largest : Words()) {
          for (const bool open : {false, true}) {
            const LanesLook lanes{largest, /*lane=*/1, open};
            const MaxLook by_cas{kWritten, found, found == expected, /*lane=*/0, seal};
            const MaxLook by_max{kWritten, found, TakesMax(found.bits(), kWritten.bits()),
                                 /*lane=*/0, seal};
            for (const EarlierLook& earlier : earliers) {
              visit(by_cas, lanes, earlier);
              visit(by_max, lanes, earlier);
            }
          }
        }
      }
    }
  }
}

TEST(WriteRulesTest, ACasNeverSetsALaneBack) {
  for (const MetaWord thought : Words()) {
    const MetaWord expected = ExpectedInLane(thought, kWritten);
    EXPECT_LT(expected.AsGuess(), kWritten.AsGuess());
    if (thought.AsGuess() < kWritten.AsGuess()) {
      EXPECT_EQ(expected, thought);
    }
  }
}

// The fabric's MAX does at once all that one CAS of the chain does after another.
TEST(WriteRulesTest, AMaxTakesALaneThatHoldsASmallerWordInWhateverForm) {
  for (const MetaWord found : Words()) {
    for (const MetaWord word : Words()) {
      if (word.is_empty()) continue;
      EXPECT_EQ(TakesMax(found.bits(), word.bits()), found.AsGuess() < word.AsGuess());
    }
  }
}

TEST(WriteRulesTest, MaxGoesOnUntilItsLaneHoldsTheWordOrALargerOne) {
  ForEveryLook([](const MaxLook& look, const LanesLook& lanes, const EarlierLook& earlier) {
    ReplicaSeen seen;
    const MaxNext next = SeeMax(look, &lanes, earlier, &seen);
    const bool took = look.took;
    const bool is_below = look.found.AsGuess() < kWritten.AsGuess();
    ASSERT_EQ(next == MaxNext::kAgain, !took && is_below);
    if (next != MaxNext::kReport) return;
    ASSERT_GE(seen.own_lane.AsGuess(), kWritten.AsGuess());
    ASSERT_GE(seen.largest.AsGuess(), kWritten.AsGuess());
    ASSERT_EQ(seen.state, look.seal == 0 ? State::kCounted : State::kSealed);
    ASSERT_EQ(seen.seal, look.seal);
  });
}

TEST(WriteRulesTest, AReplicaIsFirsthandIfTheWriterPutItsWordThereOverNothingLarger) {
  uint64_t firsthand = 0;
  ForEveryLook([&](const MaxLook& look, const LanesLook& lanes, const EarlierLook& earlier) {
    ReplicaSeen seen;
    if (SeeMax(look, &lanes, earlier, &seen) != MaxNext::kReport) return;
    const bool took = look.took;
    if (took) {
      ASSERT_EQ(seen.firsthand, lanes.open && lanes.largest < kWritten);
    } else if (seen.firsthand) {
      // Put there by the earlier batch.
      ASSERT_TRUE(earlier.posted && earlier.known && earlier.open);
      ASSERT_TRUE(earlier.took || look.found == kWritten);
      ASSERT_LT(earlier.largest, kWritten);
    }
    firsthand += seen.firsthand ? 1 : 0;
  });
  EXPECT_GT(firsthand, 0U);
}

// A word may be in its lane since an earlier batch of the same write, and have been read from
// there: what was larger then must be known.
TEST(WriteRulesTest, AnEarlierBatchOfWhichNothingIsKnownMakesAReplicaFail) {
  ForEveryLook([](const MaxLook& look, const LanesLook& lanes, const EarlierLook& earlier) {
    ReplicaSeen seen;
    const MaxNext next = SeeMax(look, &lanes, earlier, &seen);
    const bool took = look.took;
    if (took || next == MaxNext::kAgain) return;
    const bool put_there = earlier.took || (earlier.posted && look.found == kWritten);
    const bool is_unknown = put_there ? !earlier.known : earlier.lost;
    ASSERT_EQ(next == MaxNext::kFail, is_unknown);
  });
}

TEST(WriteRulesTest, WithoutALookAtTheLanesNothingIsFirsthand) {
  for (const MetaWord found : Words()) {
    ReplicaSeen seen;
    const MaxLook look{kWritten, found, found.is_empty(), 0, 0};
    if (SeeMax(look, nullptr, {}, &seen) != MaxNext::kReport) continue;
    EXPECT_FALSE(seen.firsthand);
  }
}

std::vector<ReplicaSeen> Answers() {
  std::vector<ReplicaSeen> all;
  for (const State state :
       {State::kNotAsked, State::kPending, State::kFailed, State::kCounted, State::kSealed}) {
    for (const bool firsthand : {false, true}) {
      for (const MetaWord largest : {kWritten, GuessOf(3).AsVerified()}) {
        ReplicaSeen seen;
        seen.state = state;
        seen.firsthand = firsthand && largest == kWritten;
        seen.largest = largest;
        all.push_back(seen);
      }
    }
  }
  return all;
}

// Tries all that a reader of all replicas may have seen: a guess is read without a lock only if
// every replica has shown it first-hand and as its largest.
TEST(WriteRulesTest, AGuessThatIsHinderedIsFirsthandEverywhereToNobody) {
  uint64_t fresh = 0;
  uint64_t hindered = 0;
  const std::vector<ReplicaSeen> answers = Answers();
  for (const ReplicaSeen& a : answers) {
    for (const ReplicaSeen& b : answers) {
      for (const ReplicaSeen& c : answers) {
        const std::array<ReplicaSeen, 3> seen{a, b, c};
        int shows_it = 0;
        int cannot_show_it = 0;
        for (const ReplicaSeen& one : seen) {
          const bool has_answered = one.state == State::kCounted || one.state == State::kSealed;
          shows_it += has_answered && one.firsthand ? 1 : 0;
          cannot_show_it += has_answered && !one.firsthand ? 1 : 0;
        }
        ASSERT_EQ(IsHindered(seen), cannot_show_it > 0);
        for (const bool is_whole : {false, true}) {
          for (const bool never_posted : {false, true}) {
            const GuessSpread spread = SpreadOf(seen, 2, is_whole, never_posted);
            if (shows_it >= 2) {
              ASSERT_EQ(spread, GuessSpread::kFresh);
            } else if (cannot_show_it > 0 || !is_whole || never_posted) {
              ASSERT_EQ(spread, GuessSpread::kHindered);
            } else {
              ASSERT_EQ(spread, GuessSpread::kUnknown);
            }
            fresh += spread == GuessSpread::kFresh ? 1 : 0;
            hindered += spread == GuessSpread::kHindered ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(fresh, 0U);
  EXPECT_GT(hindered, 0U);
}

// The driver that works inline is satisfied with less than it could know: whatever it takes for
// done, the other one takes for done, too, with the same end.
TEST(WriteRulesTest, AWriteThatIsFirsthandOnAllReplicasStands) {
  ReplicaSeen one;
  const MaxLook look{kWritten, MetaWord(), /*took=*/true, 0, 0};
  const LanesLook lanes{GuessOf(1).AsVerified(), 1, /*open=*/true};
  ASSERT_EQ(SeeMax(look, &lanes, {}, &one), MaxNext::kReport);
  ASSERT_TRUE(one.counts() && one.firsthand);
  const std::array<ReplicaSeen, 3> seen{one, one, one};
  EXPECT_EQ(JudgeStep(seen, 2).end, StepVerdict::End::kDone);
  EXPECT_TRUE(GuessStands(LargestOf(seen).word, GuessOf(2)));
  EXPECT_FALSE(IsHindered(seen));
}

TEST(WriteRulesTest, AGuessStandsUnlessAnotherWriteIsLarger) {
  for (const MetaWord largest : Words()) {
    EXPECT_EQ(GuessStands(largest, GuessOf(2)), largest.time() <= 2);
  }
}

}  // namespace
}  // namespace onetrip
