// ABD READ and WRITE: what they cost, what they leave behind, and beside Safe-Guess.
#include <gtest/gtest.h>

#include "client_core/replication/abd.h"
#include "tests/support/register_fixture.h"

namespace onetrip {
namespace {

constexpr size_t kNodeBytes = size_t{64} * 1024;

class AbdTest : public testing::Test {
 protected:
  AbdTest()
      : cluster_(3, kNodeBytes),
        executor_(1),
        network_(executor_, cluster_.endpoints(), SimFabricOptions{}),
        ref_(cluster_.CreateRegister({.lanes = 1}, /*incarnation=*/0,
                                     TicksOfNs(kClusterOffsetNs - 1'000'000))) {
    for (uint32_t id = 1; id <= 3; ++id) {
      workers_.push_back(std::make_unique<RegisterWorker>(
          executor_, network_, cluster_.master(), id, RegisterOptions{.in_place = id == 3}));
      handles_.emplace_back(ref_, workers_.back()->guess_clock);
    }
  }
  // Stragglers end before what they use.
  void TearDown() override { EXPECT_TRUE(executor_.RunUntilIdle()); }

  // Workers 0 and 1 are of ABD, 2 is of Safe-Guess.
  RegisterWorker& worker(size_t index) { return *workers_[index]; }
  std::string Get(size_t index, uint32_t* round_trips = nullptr) {
    RegisterOperation operation;
    const Result<ReadOutcome> outcome =
        BlockOn(executor_, worker(index).abd.Read(operation, handles_[index]));
    if (round_trips != nullptr) *round_trips = operation.round_trips;
    if (!outcome.ok()) return std::string("(") + outcome.status().message() + ")";
    if (outcome->end == RegisterEnd::kInterrupted) return "(sealed)";
    if (outcome->end == RegisterEnd::kEmpty) return "(empty)";
    return TextOf(outcome->tuple.value.bytes);
  }
  Status Set(size_t index, std::string_view value, WriteOutcome* outcome,
             uint32_t* round_trips = nullptr) {
    RegisterOperation operation;
    const Status status =
        BlockOn(executor_,
                worker(index).abd.Write(operation, handles_[index], cluster_.NewBuffers(ref_.shape),
                                        BytesOf(value), outcome));
    if (round_trips != nullptr) *round_trips = operation.round_trips;
    return status;
  }
  MetaWord Set(size_t index, std::string_view value, uint32_t* round_trips = nullptr) {
    WriteOutcome outcome;
    EXPECT_TRUE(Set(index, value, &outcome, round_trips).ok());
    EXPECT_EQ(outcome.end, RegisterEnd::kDone);
    EXPECT_TRUE(outcome.guess.is_empty());
    return outcome.rewrite;
  }
  void Settle() { ASSERT_TRUE(executor_.RunUntilIdle()); }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterRef ref_;
  std::vector<std::unique_ptr<RegisterWorker>> workers_;
  std::vector<RegisterHandle> handles_;
};

TEST_F(AbdTest, ReadsAndWritesTakeTwoRoundTrips) {
  uint32_t round_trips = 0;
  EXPECT_EQ(Get(0, &round_trips), "(empty)");
  EXPECT_EQ(round_trips, 1U);
  for (size_t i = 0; i < 20; ++i) {
    const std::string value = "value " + std::to_string(i);
    const MetaWord word = Set(i % 2, value, &round_trips);
    EXPECT_TRUE(word.verified());
    EXPECT_EQ(round_trips, 2U) << i;
    Settle();
    for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(cluster_.Lane(ref_, replica, 0), word);
    EXPECT_EQ(Get((i + 1) % 2, &round_trips), value);
    EXPECT_EQ(round_trips, 2U) << i;
  }
}

TEST_F(AbdTest, AWriteGoesOneTickAboveWhatIsThereWhateverTheClockSays) {
  worker(0).wild_clock.Jump(3'600'000'000'000);
  worker(1).wild_clock.Jump(-400'000);
  RegisterTime last = 0;
  for (size_t i = 0; i < 6; ++i) {
    const MetaWord word = Set(i % 2, std::to_string(i));
    EXPECT_EQ(word.time(), last + 1);
    last = word.time();
  }
}

TEST_F(AbdTest, EmptyAndLongestValuesAreValues) {
  (void)Set(0, "");
  EXPECT_EQ(Get(1), "");
  const std::string longest(ref_.shape.value_bytes_max(), 'x');
  (void)Set(0, longest);
  EXPECT_EQ(Get(1), longest);
}

TEST_F(AbdTest, BothGoOnWithoutOneNodeAndSaySoWithoutTwo) {
  (void)Set(0, "a");
  Settle();
  cluster_.node(0).SetReachable(false);
  (void)Set(1, "b");
  EXPECT_EQ(Get(0), "b");
  cluster_.node(1).SetReachable(false);
  WriteOutcome outcome;
  EXPECT_EQ(Set(0, "c", &outcome).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(outcome.rewrite.is_empty()) << "no word was posted";
  EXPECT_EQ(Get(1), "(too few replicas of a register answered)");
}

// A replica that missed the value gets it with the word.
TEST_F(AbdTest, AReplicaThatCountsHasTheBytes) {
  RegisterOperation operation;
  WriteOutcome outcome;
  const std::string value = "whole";
  Task<Status> write = worker(0).abd.Write(operation, handles_[0], cluster_.NewBuffers(ref_.shape),
                                           BytesOf(value), &outcome);
  // The messages on their way to node 1 are lost, and node 2 is then lost altogether.
  write.Start();
  worker(0).sim_fabric->BreakChannel(NodeId{1});
  while (outcome.rewrite.is_empty()) ASSERT_TRUE(executor_.RunOnce());
  cluster_.node(2).SetReachable(false);
  while (!write.done()) ASSERT_TRUE(executor_.RunOnce());
  ASSERT_TRUE(write.TakeResult().ok());
  Settle();
  cluster_.node(0).SetReachable(false);
  cluster_.node(2).SetReachable(true);
  EXPECT_EQ(Get(1), value);
}

TEST_F(AbdTest, SealsInterruptBothAndNoWordIsPostedAfterOne) {
  (void)Set(0, "a");
  Settle();
  for (int replica = 0; replica < 3; ++replica) {
    cluster_.Seal(ref_, replica) = SealWord::Frozen().bits();
  }
  EXPECT_EQ(Get(1), "(sealed)");
  WriteOutcome outcome;
  EXPECT_TRUE(Set(1, "b", &outcome).ok());
  EXPECT_EQ(outcome.end, RegisterEnd::kInterrupted);
  EXPECT_EQ(SealWord(outcome.seal), SealWord::Frozen());
  EXPECT_TRUE(outcome.rewrite.is_empty());
}

TEST_F(AbdTest, ARegisterAtTheEndOfItsTimesIsExhausted) {
  const MetaWord last(kRegisterTimeEnd - 1, cluster_.NewBuffer(ref_.shape).addr);
  for (int replica = 0; replica < 3; ++replica) {
    cluster_.Word(ref_.addr + ref_.shape.lane_offset(0), replica) = last.AsVerified().bits();
  }
  WriteOutcome outcome;
  EXPECT_TRUE(Set(0, "late", &outcome).ok());
  EXPECT_EQ(outcome.end, RegisterEnd::kExhausted);
  EXPECT_TRUE(outcome.rewrite.is_empty());
  EXPECT_EQ(cluster_.Lane(ref_, 0, 0), last.AsVerified());
}

TEST_F(AbdTest, ReadsAndOverwritesWhatSafeGuessHasWritten) {
  uint32_t round_trips = 0;
  const auto by_safe_guess = [this](std::string_view value) {
    return worker(2).Set(handles_[2], cluster_.NewBuffers(ref_.shape), value);
  };
  (void)by_safe_guess("guessed");
  EXPECT_EQ(Get(0), "guessed");
  Settle();
  (void)Set(0, "above");
  Settle();
  EXPECT_EQ(worker(2).Get(handles_[2], &round_trips), "above");
  EXPECT_EQ(round_trips, 2U) << "there is no copy in place";
  const WriteOutcome outcome = by_safe_guess("again");
  EXPECT_EQ(outcome.end, RegisterEnd::kDone);
  EXPECT_EQ(Get(1), "again");
}

}  // namespace
}  // namespace onetrip
