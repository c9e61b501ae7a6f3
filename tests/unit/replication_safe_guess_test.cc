// Safe-Guess READ and WRITE: round trips of the fast path, every turn of the slow one.
#include <gtest/gtest.h>

#include "client_core/fabric/shm.h"
#include "client_core/replication/safe_guess.h"
#include "tests/support/register_fixture.h"

namespace onetrip {
namespace {

constexpr size_t kNodeBytes = size_t{64} * 1024;

class SafeGuessTest : public testing::Test {
 protected:
  SafeGuessTest()
      : cluster_(3, kNodeBytes),
        executor_(1),
        network_(executor_, cluster_.endpoints(), SimFabricOptions{}),
        ref_(cluster_.CreateRegister({}, /*incarnation=*/0,
                                     TicksOfNs(kClusterOffsetNs - 1'000'000))) {
    for (uint32_t id = 1; id <= 3; ++id) {
      workers_.push_back(
          std::make_unique<RegisterWorker>(executor_, network_, cluster_.master(), id));
      handles_.emplace_back(ref_, workers_.back()->guess_clock);
    }
  }

  // Stragglers end before what they use.
  void TearDown() override { EXPECT_TRUE(executor_.RunUntilIdle()); }

  RegisterWorker& worker(size_t index) { return *workers_[index]; }
  std::string Get(size_t index, uint32_t* round_trips = nullptr) {
    return worker(index).Get(handles_[index], round_trips);
  }
  WriteOutcome Set(size_t index, std::string_view value, uint32_t* round_trips = nullptr) {
    return worker(index).Set(handles_[index], cluster_.NewBuffers(ref_.shape), value, round_trips);
  }
  void Settle() { ASSERT_TRUE(executor_.RunUntilIdle()); }
  // Puts a guess of a writer that is not there on the replicas given.
  MetaWord PlantGuess(RegisterTime time, uint32_t worker_id, std::string_view value,
                      std::initializer_list<int> replicas) {
    const MetaWord word(time, cluster_.NewBuffer(ref_.shape).addr);
    for (const int replica : replicas) {
      EncodeBuffer(
          {ref_.birth.value + time}, {WorkerId{worker_id}, BytesOf(value)},
          cluster_.node(replica).base() + word.buffer(ref_.addr).offset() + kBufferBulkOffset);
      cluster_.Word(ref_.addr + ref_.shape.lane_offset(worker_id % 4), replica) = word.bits();
    }
    return word;
  }
  // As if its writer had put it on all replicas, and the copy in place with it.
  MetaWord PlantEverywhere(RegisterTime time, uint32_t worker_id, std::string_view value) {
    const MetaWord word = PlantGuess(time, worker_id, value, {0, 1, 2}).AsFirsthand();
    for (int replica = 0; replica < 3; ++replica) {
      cluster_.Word(ref_.addr + ref_.shape.lane_offset(worker_id % 4), replica) = word.bits();
    }
    EncodeInPlace(word, {WorkerId{worker_id}, BytesOf(value)},
                  cluster_.node(0).base() + ref_.addr.offset() + ref_.shape.in_place_offset());
    return word;
  }
  RegisterTime Now() {
    return static_cast<RegisterTime>(worker(0).guess_clock.Now().value - ref_.birth.value);
  }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterRef ref_;
  std::vector<std::unique_ptr<RegisterWorker>> workers_;
  std::vector<RegisterHandle> handles_;
};

TEST_F(SafeGuessTest, ReadsAndWritesTakeOneRoundTrip) {
  uint32_t round_trips = 0;
  EXPECT_EQ(Get(0, &round_trips), "(empty)");
  EXPECT_EQ(round_trips, 1U);
  for (int i = 0; i < 20; ++i) {
    const std::string value = "value " + std::to_string(i);
    const WriteOutcome outcome = Set(0, value, &round_trips);
    EXPECT_EQ(outcome.end, RegisterEnd::kDone);
    EXPECT_TRUE(outcome.rewrite.is_empty());
    EXPECT_EQ(round_trips, 1U) << i;
    Settle();
    EXPECT_EQ(Get(1, &round_trips), value);
    EXPECT_EQ(round_trips, 1U) << i;
  }
  EXPECT_EQ(worker(0).safe_guess.slow_writes(), 0U);
}

TEST_F(SafeGuessTest, WritersOfLanesOfTheirOwnTakeOneRoundTripEach) {
  uint32_t round_trips = 0;
  for (int i = 0; i < 30; ++i) {
    const size_t index = static_cast<size_t>(i) % 3;
    const std::string value = std::to_string(i);
    (void)Set(index, value, &round_trips);
    EXPECT_EQ(round_trips, 1U) << i;
    EXPECT_EQ(Get((index + 1) % 3), value);
    Settle();
  }
}

TEST_F(SafeGuessTest, EmptyAndLongestValuesAreValues) {
  (void)Set(0, "");
  Settle();
  uint32_t round_trips = 0;
  EXPECT_EQ(Get(1, &round_trips), "");
  EXPECT_EQ(round_trips, 1U);
  // Longer than the in-place area: out of place, always a second round trip.
  RegisterShape shape;
  shape.buffer_bytes = 1024;
  const RegisterRef large = cluster_.CreateRegister(shape, 0, ref_.birth);
  RegisterHandle writer(large, worker(0).guess_clock);
  RegisterHandle reader(large, worker(1).guess_clock);
  const std::string value(shape.value_bytes_max(), 'x');
  (void)worker(0).Set(writer, cluster_.NewBuffers(shape), value, &round_trips);
  EXPECT_EQ(round_trips, 1U);
  Settle();
  EXPECT_EQ(worker(1).Get(reader, &round_trips), value);
  EXPECT_EQ(round_trips, 2U);
}

// A guess that its writer never finishes: read twice, locked, returned, and verified for later
// readers.
TEST_F(SafeGuessTest, AReaderFinishesADeadWritersGuess) {
  const MetaWord guess = PlantGuess(Now(), 9, "orphan", {0, 1, 2});
  uint32_t round_trips = 0;
  EXPECT_EQ(Get(0, &round_trips), "orphan");
  EXPECT_EQ(round_trips, 4U) << "lanes, buffer, lanes, lock";
  Settle();
  EXPECT_TRUE(cluster_.Lane(ref_, 0, 1).verified());
  EXPECT_EQ(cluster_.Lane(ref_, 0, 1).AsGuess(), guess);
  EXPECT_EQ(Get(1, &round_trips), "orphan");
  EXPECT_EQ(round_trips, 1U);
}

// No writer has to be locked out of it. Only reads of a contended register look for it.
TEST_F(SafeGuessTest, AGuessThatIsEverywhereIsReadWithoutALock) {
  const MetaWord guess = PlantEverywhere(Now(), 9, "in flight");
  uint32_t round_trips = 0;
  EXPECT_EQ(Get(0, &round_trips), "in flight");
  EXPECT_EQ(round_trips, 2U) << "the lanes of two replicas, those of all";
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Get(0, &round_trips), "in flight");
    EXPECT_EQ(round_trips, 1U);
  }
  Settle();
  EXPECT_EQ(cluster_.Lane(ref_, 0, 1), guess) << "its writer is still to say what became of it";
  EXPECT_EQ(cluster_.Word(GlobalAddr(guess.buffer(ref_.addr)), 0), 0U) << "no lock";
}

// Another has put it there: its writer may look at that replica later, and find something larger.
TEST_F(SafeGuessTest, AGuessThatAReaderHasSpreadIsLocked) {
  const MetaWord guess = PlantEverywhere(Now(), 9, "in flight");
  cluster_.Word(ref_.addr + ref_.shape.lane_offset(1), 2) = guess.AsGuess().bits();
  EXPECT_EQ(Get(0), "in flight");
  Settle();
  EXPECT_NE(cluster_.Word(GlobalAddr(guess.buffer(ref_.addr)), 0), 0U);
  EXPECT_TRUE(cluster_.Lane(ref_, 0, 1).verified());
}

TEST_F(SafeGuessTest, AGuessThatOneReplicaDoesNotAnswerForIsLocked) {
  const MetaWord guess = PlantEverywhere(Now(), 9, "in flight");
  cluster_.node(2).SetReachable(false);
  EXPECT_EQ(Get(0), "in flight");
  Settle();
  EXPECT_NE(cluster_.Word(GlobalAddr(guess.buffer(ref_.addr)), 0), 0U);
}

TEST_F(SafeGuessTest, AGuessThatItsWriterLockedIsNotReturned) {
  (void)Set(0, "fresh");
  Settle();
  const MetaWord guess = PlantGuess(Now() + 1000, 9, "locked out", {0, 1, 2});
  RegisterOperation operation;
  EXPECT_TRUE(BlockOn(executor_, worker(2).safe_guess.timestamp_lock().TryLock(
                                     operation, handles_[2], guess, LockMode::kWrite))
                  .value());
  // The writer's announcement, which comes before its lock.
  const MetaWord newer = PlantGuess(Now() + 2000, 10, "newer", {0, 1, 2});
  EXPECT_EQ(Get(0), "newer");
  Settle();
  EXPECT_EQ(cluster_.Lane(ref_, 0, 2).AsGuess(), newer);
}

TEST_F(SafeGuessTest, TheSameWritersSecondTupleCompletesTheFirst) {
  const MetaWord guess = PlantGuess(Now(), 9, "first", {0, 1, 2});
  RegisterOperation operation;
  // Not lockable, so that only the same-writer rule can end the read.
  EXPECT_TRUE(BlockOn(executor_, worker(2).safe_guess.timestamp_lock().TryLock(
                                     operation, handles_[2], guess, LockMode::kWrite))
                  .value());
  Task<Result<ReadOutcome>> read = worker(0).safe_guess.Read(operation, handles_[0]);
  operation.round_trips = 0;
  ASSERT_FALSE(read.Start());
  while (operation.round_trips < 2) ASSERT_TRUE(executor_.RunOnce());
  PlantGuess(Now() + 100, 9, "second", {0, 1, 2});
  while (!read.done()) ASSERT_TRUE(executor_.RunOnce());
  const Result<ReadOutcome> outcome = read.TakeResult();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(TextOf(outcome.value().tuple.value.bytes), "first");
  Settle();
}

TEST_F(SafeGuessTest, AStaleGuessIsWrittenAgainAboveWhatOvertookIt) {
  worker(0).wild_clock.Jump(500'000);
  (void)Set(0, "ahead");
  Settle();
  const RegisterTime ahead = cluster_.Lane(ref_, 0, 1).time();
  uint32_t round_trips = 0;
  const WriteOutcome outcome = Set(1, "behind", &round_trips);
  EXPECT_EQ(outcome.end, RegisterEnd::kDone);
  EXPECT_LT(outcome.guess.time(), ahead);
  EXPECT_GT(outcome.rewrite.time(), ahead);
  EXPECT_TRUE(outcome.rewrite.verified());
  EXPECT_EQ(round_trips, 3U) << "guess, lock, rewrite; what overtook it is at a majority";
  Settle();
  EXPECT_EQ(Get(2, &round_trips), "behind");
  EXPECT_EQ(round_trips, 1U);
  EXPECT_EQ(worker(1).guess_clock.resynchronised(), 1U);
  (void)Set(1, "in time", &round_trips);
  EXPECT_EQ(round_trips, 1U) << "the clock has caught up";
}

TEST_F(SafeGuessTest, AWriterAnnouncesWhatOvertookItBeforeItLocks) {
  const MetaWord overtaker = PlantGuess(Now() + 1000, 10, "overtaker", {0});
  network_.SetSlowness(NodeId{2}, 50);
  uint32_t round_trips = 0;
  const WriteOutcome outcome = Set(0, "mine", &round_trips);
  EXPECT_FALSE(outcome.rewrite.is_empty());
  EXPECT_EQ(round_trips, 5U) << "guess, buffer, write-back, lock, rewrite";
  EXPECT_EQ(cluster_.Lane(ref_, 1, 2), overtaker);
  network_.SetSlowness(NodeId{2}, 1);
  Settle();
  EXPECT_EQ(Get(1), "mine");
}

TEST_F(SafeGuessTest, AWriterThatLosesItsLockToAReaderIsDone) {
  PlantGuess(Now() + 1000, 9, "overtaker", {0, 1, 2});
  const WriteBuffers buffers = cluster_.NewBuffers(ref_.shape);
  RegisterOperation operation;
  WriteOutcome outcome;
  const std::string value = "mine";
  Task<Status> write =
      worker(0).safe_guess.Write(operation, handles_[0], buffers, BytesOf(value), &outcome);
  ASSERT_FALSE(write.Start());
  // A reader that saw the guess before it was overtaken locks it.
  RegisterOperation reading;
  EXPECT_TRUE(BlockOn(executor_, worker(1).safe_guess.timestamp_lock().TryLock(
                                     reading, handles_[1], outcome.guess, LockMode::kRead))
                  .value());
  while (!write.done()) ASSERT_TRUE(executor_.RunOnce());
  EXPECT_TRUE(write.TakeResult().ok());
  EXPECT_EQ(outcome.end, RegisterEnd::kDone);
  EXPECT_TRUE(outcome.rewrite.is_empty());
  Settle();
  EXPECT_EQ(Get(2), "overtaker");
}

TEST_F(SafeGuessTest, OneNodeLostChangesNothingForClients) {
  (void)Set(0, "before");
  Settle();
  for (int lost = 0; lost < 3; ++lost) {
    cluster_.node(lost).SetReachable(false);
    uint32_t round_trips = 0;
    (void)Set(1, "during " + std::to_string(lost), &round_trips);
    // A node that was away comes back with an old lane, which costs the MAX a second CAS.
    EXPECT_LE(round_trips, lost == 0 ? 1U : 2U);
    EXPECT_EQ(Get(2), "during " + std::to_string(lost));
    Settle();
    cluster_.node(lost).SetReachable(true);
  }
}

TEST_F(SafeGuessTest, AMissingInPlaceCopyIsMadeByAReaderThatMissesItTwice) {
  (void)Set(0, "value");
  Settle();
  cluster_.Word(ref_.addr + ref_.shape.in_place_offset(), 0) ^= 1;
  uint32_t round_trips = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Get(1, &round_trips), "value");
    EXPECT_EQ(round_trips, 2U);
    Settle();
  }
  EXPECT_EQ(Get(1, &round_trips), "value");
  EXPECT_EQ(round_trips, 1U);
}

TEST_F(SafeGuessTest, ASealInterruptsReadsAndWrites) {
  (void)Set(0, "value");
  Settle();
  cluster_.Seal(ref_, 0) = 5;
  cluster_.Seal(ref_, 1) = 5;
  EXPECT_EQ(Get(1), "(sealed 5)");
  const WriteOutcome outcome = Set(0, "too late");
  EXPECT_EQ(outcome.end, RegisterEnd::kInterrupted);
  EXPECT_EQ(outcome.seal, 5U);
  EXPECT_FALSE(outcome.guess.is_empty());
  EXPECT_EQ(outcome.spread, GuessSpread::kHindered) << "the seals were there before it";
}

TEST_F(SafeGuessTest, AWriteThatMayHaveHappenedIsOfUnknownOutcome) {
  cluster_.node(1).SetReachable(false);
  cluster_.node(2).SetReachable(false);
  RegisterOperation operation;
  WriteOutcome outcome;
  const WriteBuffers buffers = cluster_.NewBuffers(ref_.shape);
  EXPECT_EQ(BlockOn(executor_, worker(0).safe_guess.Write(operation, handles_[0], buffers,
                                                          BytesOf("x"), &outcome))
                .code(),
            StatusCode::kUnknownOutcome);
  RegisterOperation reading;
  EXPECT_EQ(BlockOn(executor_, worker(0).safe_guess.Read(reading, handles_[0])).status().code(),
            StatusCode::kUnavailable);
}

// PROTOCOLS, "Memory": the lease is looked at after a batch completes, before the answer.
TEST_F(SafeGuessTest, ALeaseThatRunsOutMeanwhileTakesTheAnswerBack) {
  worker(0).fabric->set_lease({executor_.NowNs() + 100, Epoch{1}});
  RegisterOperation operation;
  WriteOutcome outcome;
  const WriteBuffers buffers = cluster_.NewBuffers(ref_.shape);
  EXPECT_EQ(BlockOn(executor_, worker(0).safe_guess.Write(operation, handles_[0], buffers,
                                                          BytesOf("x"), &outcome))
                .code(),
            StatusCode::kUnknownOutcome);
  worker(1).fabric->set_lease({executor_.NowNs() + 100, Epoch{1}});
  RegisterOperation reading;
  EXPECT_EQ(BlockOn(executor_, worker(1).safe_guess.Read(reading, handles_[1])).status().code(),
            StatusCode::kFenced);
}

TEST_F(SafeGuessTest, ARegisterWhoseTimestampsEndRefusesWritesAndIsReadOn) {
  // Its birth is so long ago that time is nearly up.
  const Ticks now = worker(0).guess_clock.Now();
  const RegisterRef old =
      cluster_.CreateRegister({}, 0, Ticks{now.value - kRegisterTimeEnd + 1000});
  RegisterHandle first(old, worker(0).guess_clock);
  RegisterHandle second(old, worker(1).guess_clock);
  EXPECT_EQ(worker(0).Set(first, cluster_.NewBuffers(old.shape), "in time").end,
            RegisterEnd::kDone);
  Settle();
  worker(1).wild_clock.Jump(1000 << kTickShift);
  const uint64_t applied = network_.applied_ops();
  const WriteOutcome late = worker(1).Set(second, cluster_.NewBuffers(old.shape), "too late");
  EXPECT_EQ(late.end, RegisterEnd::kExhausted);
  EXPECT_TRUE(late.guess.is_empty());
  EXPECT_EQ(network_.applied_ops(), applied) << "nothing was posted";
  EXPECT_EQ(worker(1).Get(second), "in time");
}

TEST_F(SafeGuessTest, AWriteOvertakenAtTheEndOfTimeStillRewrites) {
  const Ticks now = worker(0).guess_clock.Now();
  const RegisterRef old = cluster_.CreateRegister({}, 0, Ticks{now.value - kRegisterTimeEnd + 100});
  RegisterHandle first(old, worker(0).guess_clock);
  RegisterHandle second(old, worker(1).guess_clock);
  worker(0).wild_clock.Jump(90 << kTickShift);
  ASSERT_EQ(worker(0).Set(first, cluster_.NewBuffers(old.shape), "last").end, RegisterEnd::kDone);
  Settle();
  WriteOutcome outcome = worker(1).Set(second, cluster_.NewBuffers(old.shape), "beyond");
  EXPECT_EQ(outcome.end, RegisterEnd::kDone);
  EXPECT_GT(outcome.rewrite, outcome.guess);
  Settle();
  EXPECT_EQ(worker(0).Get(first), "beyond");
  // A writer that goes on meets the end before long, and not in the middle of a write.
  int writes = 0;
  while (outcome.end == RegisterEnd::kDone && writes < 100) {
    outcome = worker(1).Set(second, cluster_.NewBuffers(old.shape), "more");
    ++writes;
    Settle();
  }
  EXPECT_EQ(outcome.end, RegisterEnd::kExhausted);
  EXPECT_TRUE(outcome.guess.is_empty());
  EXPECT_EQ(worker(0).Get(first), writes > 1 ? "more" : "beyond");
}

TEST(GuessClockTest, GuessesIncreaseWhateverTheClockDoes) {
  WildClock clock;
  const std::atomic<int64_t> offset_us{0};
  GuessClock guesses(clock, offset_us);
  RegisterTimes times = guesses.Times(TicksOfNs(kClusterOffsetNs));
  Rng rng(1);
  RegisterTime last = 0;
  for (int i = 0; i < 10'000; ++i) {
    clock.Jump(static_cast<int64_t>(rng.Below(20'000)) - 9'900);
    const auto guess = guesses.Guess(times, {});
    ASSERT_TRUE(guess.has_value());
    EXPECT_GT(*guess, last);
    last = *guess;
  }
}

TEST(GuessClockTest, GuessesAreAboveWhatTheBufferWasUsedWith) {
  WildClock clock;
  const std::atomic<int64_t> offset_us{0};
  GuessClock guesses(clock, offset_us);
  const Ticks birth = TicksOfNs(kClusterOffsetNs);
  RegisterTimes times = guesses.Times(birth);
  EXPECT_EQ(guesses.Guess(times, {birth.value + 500}), 501U);
  EXPECT_EQ(GuessClock::Above(times, 600, {birth.value + 500}), 601U);
  EXPECT_EQ(GuessClock::Above(times, 600, {birth.value + 900}), 901U);
}

TEST(GuessClockTest, AForgottenRegistersTimesAreNotGuessedAgain) {
  WildClock clock;
  const std::atomic<int64_t> offset_us{0};
  GuessClock guesses(clock, offset_us);
  const Ticks birth = TicksOfNs(kClusterOffsetNs);
  RegisterTimes times = guesses.Times(birth);
  clock.Jump(1'000'000);
  const auto before = guesses.Guess(times, {});
  guesses.Forget(times);
  clock.Jump(-2'000'000);
  RegisterTimes again = guesses.Times(birth);
  EXPECT_GT(guesses.Guess(again, {}), before);
  EXPECT_GE(guesses.Birth({}).value, birth.value + *before);
  // A buffer from a worker whose clock is far ahead does not wear out a register at birth.
  const Ticks used{guesses.Now().value + 2 * uint64_t{kRegisterTimeEnd}};
  RegisterTimes born = guesses.Times(guesses.Birth(used));
  EXPECT_TRUE(guesses.Guess(born, used).has_value());
}

TEST(GuessClockTest, StaleGuessesMoveTheClockByBoundedSteps) {
  WildClock clock;
  const std::atomic<int64_t> offset_us{0};
  GuessClock guesses(clock, offset_us, /*jump_max=*/1000);
  const Ticks before = guesses.Now();
  guesses.Resynchronise(10, 510);
  EXPECT_EQ(guesses.Now().value, before.value + 500);
  guesses.Resynchronise(10, 1'000'000);
  EXPECT_EQ(guesses.Now().value, before.value + 1500);
  EXPECT_EQ(guesses.resynchronised(), 2U);
  EXPECT_EQ(guesses.capped(), 1U);
  guesses.Resynchronise(10, 5);
  EXPECT_EQ(guesses.Now().value, before.value + 1500);
}

// On shared memory every operation completes inside the call.
TEST(SafeGuessOnShm, NothingSuspendsOnTheFastPath) {
  LittleCluster cluster(3, kNodeBytes);
  SimExecutor executor(1);
  RegisterWorker worker(executor,
                        std::make_unique<ShmFabric>(executor.clock(), cluster.endpoints()),
                        cluster.master(), 1);
  const RegisterRef ref = cluster.CreateRegister({}, 1, TicksOfNs(kClusterOffsetNs));
  RegisterHandle handle(ref, worker.guess_clock);
  for (int i = 0; i < 20; ++i) {
    const std::string value = std::to_string(i);
    RegisterOperation operation;
    WriteOutcome outcome;
    Task<Status> write = worker.safe_guess.Write(operation, handle, cluster.NewBuffers(ref.shape),
                                                 BytesOf(value), &outcome);
    ASSERT_TRUE(write.Start());
    EXPECT_TRUE(write.TakeResult().ok());
    EXPECT_EQ(operation.round_trips, 1U);
    RegisterOperation reading;
    Task<Result<ReadOutcome>> read = worker.safe_guess.Read(reading, handle);
    ASSERT_TRUE(read.Start());
    const Result<ReadOutcome> outcome_read = read.TakeResult();
    ASSERT_TRUE(outcome_read.ok());
    EXPECT_EQ(TextOf(outcome_read.value().tuple.value.bytes), value);
    EXPECT_EQ(reading.round_trips, 1U);
  }
}

// Between the two batches of a write readers may return its guess, and others go beyond it: what
// they wrote must not make it look overtaken. `lane` is where they do.
void OvertakeBetweenBatches(uint32_t lane) {
  LittleCluster cluster(3, kNodeBytes);
  SimExecutor executor(1);
  RegisterWorker worker(executor,
                        std::make_unique<ShmFabric>(executor.clock(), cluster.endpoints()),
                        cluster.master(), 1);
  const RegisterRef ref = cluster.CreateRegister({}, 1, TicksOfNs(kClusterOffsetNs - 1'000'000));
  RegisterHandle handle(ref, worker.guess_clock);
  const auto plant = [&](int replica, uint32_t at_lane, MetaWord word, std::string_view value) {
    EncodeBuffer({ref.birth.value + word.time()}, {WorkerId{5}, BytesOf(value)},
                 cluster.node(replica).base() + word.buffer(ref.addr).offset() + kBufferBulkOffset);
    cluster.Word(ref.addr + ref.shape.lane_offset(at_lane), replica) = word.bits();
  };
  // One replica is sealed, so the write gives up after its guess is at the others.
  cluster.Seal(ref, 2) = SealWord::Frozen().bits();
  const WriteBuffers buffers = cluster.NewBuffers(ref.shape);
  WriteOutcome outcome;
  ASSERT_FALSE(worker.safe_guess.WriteFast(handle, buffers.guess, BytesOf("mine"), &outcome));
  ASSERT_TRUE(outcome.begun);
  const MetaWord newer(outcome.guess.time() + 1000, cluster.NewBuffer(ref.shape).addr);
  for (const int replica : {0, 1}) plant(replica, lane, newer, "newer");

  RegisterOperation operation;
  Task<Status> write =
      worker.safe_guess.Write(operation, handle, buffers, BytesOf("mine"), &outcome);
  ASSERT_TRUE(write.Start());
  EXPECT_TRUE(write.TakeResult().ok());
  EXPECT_TRUE(outcome.rewrite.is_empty());
  EXPECT_EQ(cluster.Word(buffers.guess.addr, 0), 0U) << "readers were not locked out";
}

TEST(SafeGuessOnShm, AWriteThatIsPostedTwiceBelievesItsFirstLook) { OvertakeBetweenBatches(2); }

TEST(SafeGuessOnShm, AWriteThatIsPostedTwiceBelievesItsFirstLookInItsOwnLaneToo) {
  OvertakeBetweenBatches(1);
}

}  // namespace
}  // namespace onetrip
