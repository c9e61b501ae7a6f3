// The rules of READ and what they share with WRITE, for all that three replicas can answer.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "client_core/replication/read_rules.h"

namespace onetrip {
namespace {

using State = ReplicaSeen::State;
using ThreeSeen = std::array<ReplicaSeen, 3>;

constexpr int kMajority = 2;

MetaWord Guess(RegisterTime time) { return {time, GlobalAddr(0, 32ULL * time)}; }

// Two writes in their three forms, and nothing.
std::vector<MetaWord> AllWords() {
  std::vector<MetaWord> words{MetaWord()};
  for (const RegisterTime time : {1, 2}) {
    for (const MetaWord word : {Guess(time), Guess(time).AsFirsthand(), Guess(time).AsVerified()}) {
      words.push_back(word);
    }
  }
  return words;
}

std::vector<ReplicaSeen> AllSeen() {
  std::vector<ReplicaSeen> all;
  for (const State state : {State::kNotAsked, State::kPending, State::kFailed}) {
    all.emplace_back().state = state;
  }
  all.push_back(all.back());
  all.back().foreign = true;
  for (const MetaWord word : AllWords()) {
    for (const bool steady : {false, true}) {
      for (const State state : {State::kCounted, State::kSealed}) {
        ReplicaSeen seen;
        seen.state = state;
        seen.largest = word;
        seen.lane = static_cast<uint8_t>(word.time());
        seen.steady = steady;
        seen.seal = state == State::kSealed ? 7 : 0;
        all.push_back(seen);
      }
    }
  }
  return all;
}

template <typename Visit>
void ForEveryThree(Visit visit) {
  const std::vector<ReplicaSeen> all = AllSeen();
  for (const ReplicaSeen& a : all) {
    for (const ReplicaSeen& b : all) {
      for (const ReplicaSeen& c : all) visit(ThreeSeen{a, b, c});
    }
  }
}

template <typename Is>
int CountOf(const ThreeSeen& seen, Is is) {
  return static_cast<int>(std::count_if(seen.begin(), seen.end(), is));
}

TEST(ReplicaSeenTest, AStepIsDoneWhereEnoughCountWhateverTheOthersSay) {
  uint64_t done = 0;
  ForEveryThree([&](const ThreeSeen& seen) {
    const int counted =
        CountOf(seen, [](const ReplicaSeen& one) { return one.state == State::kCounted; });
    const bool is_foreign = CountOf(seen, [](const ReplicaSeen& one) { return one.foreign; }) > 0;
    const bool is_sealed =
        CountOf(seen, [](const ReplicaSeen& one) { return one.state == State::kSealed; }) > 0;
    const StepVerdict verdict = JudgeStep(seen, kMajority);
    auto expected = StepVerdict::End::kTooFew;
    if (is_sealed) expected = StepVerdict::End::kSealed;
    if (is_foreign) expected = StepVerdict::End::kForeign;
    if (counted >= kMajority) expected = StepVerdict::End::kDone;
    ASSERT_EQ(verdict.end, expected);
    ASSERT_EQ(verdict.seal, expected == StepVerdict::End::kSealed ? 7U : 0U);
    done += expected == StepVerdict::End::kDone ? 1 : 0;
  });
  EXPECT_GT(done, 0U);
}

// The intersection of majorities, on which all rests.
TEST(ReplicaSeenTest, WhatAMajorityHoldsNoOtherMajorityGoesBackBehind) {
  uint64_t compared = 0;
  for (const MetaWord a : AllWords()) {
    for (const MetaWord b : AllWords()) {
      for (const MetaWord c : AllWords()) {
        ThreeSeen seen;
        seen[0].largest = a;
        seen[1].largest = b;
        seen[2].largest = c;
        for (ReplicaSeen& one : seen) one.state = State::kCounted;
        for (const MetaWord held : AllWords()) {
          if (HoldersOf(seen, held) < kMajority) continue;
          for (size_t silent = 0; silent < 3; ++silent) {
            ThreeSeen two = seen;
            two[silent].state = State::kFailed;
            ASSERT_GE(LargestOf(two).word.AsGuess(), held.AsGuess());
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

TEST(ReplicaSeenTest, TheLargestIsOfOneThatCountsAndVerifiedIfAnyOfThemSaysSo) {
  ForEveryThree([](const ThreeSeen& seen) {
    const WordInLane largest = LargestOf(seen);
    int of_it = 0;
    for (const ReplicaSeen& one : seen) {
      if (one.state != State::kCounted) continue;
      ASSERT_LE(one.largest, largest.word);
      of_it += one.largest == largest.word && one.lane == largest.lane ? 1 : 0;
    }
    ASSERT_TRUE(of_it > 0 || largest.word.is_empty());
  });
}

TEST(ReadRulesTest, AReplicaCountsIfItIsTheRegisterReadableAndOpen) {
  for (int bits = 0; bits < 32; ++bits) {
    const ReadLook look{.is_of_register = (bits & 1) != 0,
                        .largest = (bits & 2) != 0 ? Guess(1) : MetaWord(),
                        .lane = 3,
                        .has_buffer = (bits & 4) != 0,
                        .steady = (bits & 8) != 0,
                        .seal = (bits & 16) != 0 ? 7U : 0U};
    const ReplicaSeen seen = SeeRead(look);
    EXPECT_EQ(seen.foreign, !look.is_of_register);
    const bool is_readable = look.is_of_register && (look.largest.is_empty() || look.has_buffer);
    auto expected = State::kFailed;
    if (is_readable) expected = look.seal == 0 ? State::kCounted : State::kSealed;
    EXPECT_EQ(seen.state, expected) << bits;
    if (!is_readable) continue;
    EXPECT_EQ(seen.largest, look.largest);
    EXPECT_EQ(seen.steady, look.steady);
    EXPECT_EQ(seen.seal, look.seal);
  }
}

TEST(ReadRulesTest, AGuessIsEverywhereIfAllReplicasShowItFirsthandTwice) {
  uint64_t everywhere = 0;
  ForEveryThree([&](const ThreeSeen& seen) {
    const MetaWord m = LargestOf(seen).word;
    const int show_it = CountOf(seen, [&](const ReplicaSeen& one) {
      return one.state == State::kCounted && one.largest == m && one.steady && m.firsthand();
    });
    ASSERT_EQ(IsEverywhere(seen, m, 3), show_it == 3);
    everywhere += show_it == 3 ? 1 : 0;
    // Nothing of a register that has a replica missing is everywhere.
    ASSERT_FALSE(IsEverywhere(seen, m, 4));
  });
  EXPECT_GT(everywhere, 0U);
}

TEST(ReadRulesTest, AReadReturnsWhatIsVerifiedOrEverywhere) {
  for (const MetaWord word : AllWords()) {
    for (const bool everywhere : {false, true}) {
      auto expected = ReadNext::kReadGuess;
      if (word.verified() || everywhere) expected = ReadNext::kReturn;
      if (word.is_empty()) expected = ReadNext::kEmpty;
      EXPECT_EQ(NextOfRead(word, everywhere), expected);
    }
  }
}

// All that a read of three writers can meet, one M.read() after the other.
class GuessSequences {
 public:
  // Returns the longest sequence there was.
  size_t Visit() {
    Extend();
    return longest_;
  }
  [[nodiscard]] uint64_t ends() const { return ends_; }

 private:
  static constexpr uint16_t kWriters = 3;

  void Extend() {
    longest_ = std::max(longest_, met_.size());
    // A failed lock changes nothing of what was met; here it fails once in a row at most.
    for (uint16_t writer = 1; writer <= kWriters; ++writer) {
      for (RegisterTime time = 1; time <= 2; ++time) {
        const GuessSeen m{Guess(10 * writer + time), WorkerId{writer}};
        Judge(m);
      }
    }
  }

  void Judge(const GuessSeen& m) {
    const GuessVerdict verdict = NextOfGuess(met_, m, /*everywhere=*/false);
    bool is_same_word = false;
    bool is_same_writer = false;
    for (const GuessSeen& t : met_) {
      is_same_word |= t.word == m.word;
      is_same_writer |= t.writer == m.writer;
    }
    if (is_same_word) {
      ASSERT_EQ(verdict.next, GuessNext::kLock);
    } else if (is_same_writer) {
      ASSERT_EQ(verdict.next, GuessNext::kReturnEarlier);
      ASSERT_EQ(met_[verdict.earlier].writer, m.writer);
      ASSERT_NE(met_[verdict.earlier].word, m.word);
    } else {
      ASSERT_EQ(verdict.next, GuessNext::kReadAgain);
      met_.push_back(m);
      Extend();
      met_.pop_back();
      return;
    }
    ++ends_;
  }

  std::vector<GuessSeen> met_;
  size_t longest_ = 0;
  uint64_t ends_ = 0;
};

// SWARM C.2: after a guess of every writer a read meets nothing that makes it read again.
TEST(ReadRulesTest, AReadMeetsEveryWriterOnceAtMostBeforeItLocksOrReturns) {
  GuessSequences sequences;
  EXPECT_EQ(sequences.Visit(), 3U);
  EXPECT_GT(sequences.ends(), 100U);
}

TEST(ReadRulesTest, AGuessThatIsVerifiedOrEverywhereMeanwhileIsReturnedWhateverWasMet) {
  const std::vector<GuessSeen> met{{Guess(1), WorkerId{1}}, {Guess(2), WorkerId{2}}};
  for (const uint16_t writer : {1, 2, 3}) {
    for (const RegisterTime time : {1, 2, 3}) {
      const GuessSeen verified{Guess(time).AsVerified(), WorkerId{writer}};
      EXPECT_EQ(NextOfGuess(met, verified, false).next, GuessNext::kReturn);
      const GuessSeen guess{Guess(time), WorkerId{writer}};
      EXPECT_EQ(NextOfGuess(met, guess, true).next, GuessNext::kReturn);
    }
  }
}

}  // namespace
}  // namespace onetrip
