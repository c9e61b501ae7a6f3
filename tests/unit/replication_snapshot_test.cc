// SNAPSHOT on the sim fabric: writers that meet on one slot, over thousands of schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "client_core/coro/sync.h"
#include "client_core/layout/record.h"
#include "client_core/replication/snapshot.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"
#include "tests/support/write_slot.h"

namespace onetrip {
namespace {

// A slot and the log words of a few writers, in memory that nothing else uses.
constexpr GlobalAddr kSlot(0, 10 * kBlockBytes);
constexpr GlobalAddr LogOf(size_t writer) { return GlobalAddr(0, (11 + writer) * kBlockBytes); }
// Words stay below the operation log's mark.
constexpr uint64_t kWordMask = (1ULL << 62) - 1;

class SlotCluster {
 public:
  SlotCluster(int replicas, size_t writers, uint64_t seed)
      : executor_(seed),
        cluster_(executor_.clock(), {.nodes = static_cast<uint16_t>(replicas),
                                     .replicas = replicas,
                                     .node_bytes = kRegionBytes}) {
    for (size_t i = 0; i < writers; ++i) {
      // Some writers are near and some are far, so that rounds interleave in every way.
      const SimFabricOptions near{.latency_min_ns = 100, .latency_max_ns = 1500};
      const SimFabricOptions far{.latency_min_ns = 500, .latency_max_ns = 6000};
      auto fabric = std::make_unique<SimFabric>(executor_, cluster_.endpoints(),
                                                executor_.rng().Below(3) == 0 ? far : near);
      workers_.push_back(std::make_unique<TestWorkerBase>(cluster_, executor_, std::move(fabric)));
      engines_.push_back(std::make_unique<Snapshot>(workers_.back()->context()));
    }
  }

  SimExecutor& executor() { return executor_; }
  TestCluster& cluster() { return cluster_; }
  Engine& engine(size_t writer) { return *engines_[writer]; }
  WorkerContext& context(size_t writer) { return workers_[writer]->context(); }
  size_t writers() const { return workers_.size(); }
  int replicas() { return context(0).view().replicas; }

  // A replica's word, as it is now.
  uint64_t& Word(GlobalAddr addr, int replica) {
    const RemoteAddr at = context(0).view().Locate(addr, replica);
    return *reinterpret_cast<uint64_t*>(cluster_.node(at.node.value).base() + at.offset);
  }
  void SetAll(GlobalAddr addr, uint64_t word) {
    for (int replica = 0; replica < replicas(); ++replica) Word(addr, replica) = word;
  }
  bool AllAre(GlobalAddr addr, uint64_t word) {
    for (int replica = 0; replica < replicas(); ++replica) {
      if (Word(addr, replica) != word) return false;
    }
    return true;
  }
  uint64_t FreshWord() { return executor_.rng().Next() & kWordMask; }

 private:
  SimExecutor executor_;
  TestCluster cluster_;
  std::vector<std::unique_ptr<TestWorkerBase>> workers_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

struct Attempt {
  uint64_t v_old = 0;
  uint64_t v_new = 0;
  Status status;
  SlotOutcome outcome;
  uint32_t round_trips = 0;
};

Task<void> WriteAfter(SlotCluster* cluster, size_t writer, uint64_t delay_ns, bool with_log,
                      Attempt* attempt) {
  co_await cluster->executor().SleepFor(delay_ns);
  Operation operation;
  const Result<SlotOutcome> outcome = co_await cluster->engine(writer).Write(
      operation, {kSlot, attempt->v_old, attempt->v_new, with_log ? LogOf(writer) : GlobalAddr()});
  attempt->status = outcome.status();
  if (outcome.ok()) attempt->outcome = outcome.value();
  attempt->round_trips = operation.round_trips;
}

// Looks at the memory as it is, between any two of its changes but those of one instant.
Task<void> WatchPrimary(SlotCluster* cluster, const std::vector<Attempt>* attempts, bool* stop) {
  const uint64_t before = cluster->Word(kSlot, 0);
  while (!*stop && cluster->Word(kSlot, 0) == before) co_await cluster->executor().SleepFor(3);
  const uint64_t now = cluster->Word(kSlot, 0);
  for (size_t writer = 0; writer < attempts->size(); ++writer) {
    const bool is_winner = (*attempts)[writer].v_new == now;
    if (is_winner) {
      EXPECT_TRUE(cluster->AllAre(LogOf(writer), before | kLogCommitted));
    }
    for (int backup = 1; is_winner && backup < cluster->replicas(); ++backup) {
      EXPECT_EQ(cluster->Word(kSlot, backup), now) << "backups are repaired before the primary";
    }
  }
}

Task<void> Round(SlotCluster* cluster, std::vector<Attempt>* attempts) {
  bool stop = false;
  Gate gate(cluster->executor());
  cluster->executor().Spawn(gate, WatchPrimary(cluster, attempts, &stop));
  std::vector<Task<void>> tasks;
  for (size_t writer = 0; writer < attempts->size(); ++writer) {
    const uint64_t delay_ns = cluster->executor().rng().Below(3000);
    tasks.push_back(WriteAfter(cluster, writer, delay_ns, true, &(*attempts)[writer]));
  }
  co_await WhenAll(std::move(tasks));
  stop = true;
  co_await gate.Close();
}

class SnapshotTest : public testing::TestWithParam<int> {};

TEST_P(SnapshotTest, OneWriterOfARoundWinsAndTheOthersSeeItsWord) {
  const int seeds = Scaled(40);
  constexpr int kRounds = 60;
  for (int seed = 0; seed < seeds; ++seed) {
    SlotCluster cluster(GetParam(), 2 + static_cast<size_t>(seed) % 3, static_cast<uint64_t>(seed));
    for (int round = 0; round < kRounds; ++round) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
      const uint64_t v_old = cluster.Word(kSlot, 0);
      ASSERT_TRUE(cluster.AllAre(kSlot, v_old));
      std::vector<Attempt> attempts(cluster.writers());
      for (size_t writer = 0; writer < attempts.size(); ++writer) {
        attempts[writer].v_old = v_old;
        attempts[writer].v_new = cluster.FreshWord();
        cluster.SetAll(LogOf(writer), 0);
      }
      BlockOn(cluster.executor(), Round(&cluster, &attempts));
      const auto won = [](const Attempt& attempt) { return attempt.outcome.won; };
      ASSERT_EQ(std::count_if(attempts.begin(), attempts.end(), won), 1);
      const uint64_t winner = std::find_if(attempts.begin(), attempts.end(), won)->v_new;
      EXPECT_TRUE(cluster.AllAre(kSlot, winner));
      for (size_t writer = 0; writer < attempts.size(); ++writer) {
        ASSERT_TRUE(attempts[writer].status.ok());
        EXPECT_EQ(attempts[writer].outcome.current, winner);
        // Losers, too, say what their record would have replaced.
        EXPECT_TRUE(cluster.AllAre(LogOf(writer), v_old | kLogCommitted));
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

Task<void> WriteOften(SlotCluster* cluster, size_t writer, int writes, std::vector<Attempt>* won) {
  WorkerContext& context = cluster->context(writer);
  for (int i = 0; i < writes; ++i) {
    RoundTripPtr rt = context.fabric.NewRoundTrip();
    const uint64_t* word = rt->ReadWord(context.view().Locate(kSlot, 0));
    EXPECT_TRUE((co_await context.fabric.Post(rt)).ok());
    Attempt attempt;
    attempt.v_old = *word;
    attempt.v_new = cluster->FreshWord();
    // Some come so late that others have finished whole rounds meanwhile.
    const uint64_t delay_ns =
        context.executor.rng().Below(2) == 0 ? 0 : context.executor.rng().Below(20'000);
    co_await WriteAfter(cluster, writer, delay_ns, i % 2 == 0, &attempt);
    EXPECT_TRUE(attempt.status.ok());
    EXPECT_NE(attempt.outcome.current, attempt.v_old);
    if (attempt.outcome.won) won->push_back(attempt);
  }
}

// Rounds overlap as they like; the writes that won form one chain from the first word to the last.
TEST_P(SnapshotTest, WritesThatWonAreCompareAndSwaps) {
  const int seeds = Scaled(60);
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SlotCluster cluster(GetParam(), 2 + static_cast<size_t>(seed) % 3,
                        1000 + static_cast<uint64_t>(seed));
    std::vector<Attempt> won;
    std::vector<Task<void>> tasks;
    for (size_t writer = 0; writer < cluster.writers(); ++writer) {
      tasks.push_back(WriteOften(&cluster, writer, 40, &won));
    }
    BlockOn(cluster.executor(), [](std::vector<Task<void>> all) -> Task<void> {
      co_await WhenAll(std::move(all));
    }(std::move(tasks)));

    std::map<uint64_t, uint64_t> next;
    for (const Attempt& attempt : won) {
      EXPECT_TRUE(next.emplace(attempt.v_old, attempt.v_new).second) << "a word was replaced twice";
    }
    uint64_t word = 0;
    size_t length = 0;
    for (auto at = next.find(word); at != next.end(); at = next.find(word)) {
      word = at->second;
      ++length;
    }
    EXPECT_EQ(length, won.size());
    EXPECT_TRUE(cluster.AllAre(kSlot, word));
    EXPECT_GT(won.size(), 20U);
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(SnapshotTest, AnUncontendedWriteTakesTwoRoundTripsWithALogAndWithout) {
  SlotCluster cluster(GetParam(), 1, 1);
  const uint32_t cas_backups = GetParam() > 1 ? 1 : 0;
  // The log goes with the votes, if there are any.
  const uint32_t logs = 1;
  Attempt attempt{.v_old = 0, .v_new = 5, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, /*with_log=*/true, &attempt));
  EXPECT_TRUE(attempt.outcome.won);
  EXPECT_EQ(attempt.round_trips, logs + 1);
  attempt = {.v_old = 5, .v_new = 6, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, /*with_log=*/false, &attempt));
  EXPECT_TRUE(attempt.outcome.won);
  EXPECT_EQ(attempt.round_trips, cas_backups + 1);
  EXPECT_TRUE(cluster.AllAre(kSlot, 6));
  // An expected word of the past loses at once.
  attempt = {.v_old = 5, .v_new = 7, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, /*with_log=*/true, &attempt));
  EXPECT_FALSE(attempt.outcome.won);
  EXPECT_EQ(attempt.outcome.current, 6U);
  EXPECT_EQ(attempt.round_trips, 2U);
  EXPECT_TRUE(cluster.AllAre(kSlot, 6));
}

INSTANTIATE_TEST_SUITE_P(Replicas, SnapshotTest, testing::Range(1, kMaxReplicas + 1));

Status StopEngine(SlotCluster& cluster) {
  const uint64_t until_ns = cluster.executor().NowNs() + 100'000'000;
  return BlockOn(cluster.executor(), cluster.engine(0).Stop(until_ns));
}

TEST(SnapshotFailureTest, ALostBackupLeavesThePrimaryAlone) {
  SlotCluster cluster(3, 1, 1);
  const NodeId backup = cluster.context(0).view().Locate(kSlot, 2).node;
  cluster.cluster().node(backup.value).SetReachable(false);
  Attempt attempt{.v_old = 0, .v_new = 5, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, true, &attempt));
  EXPECT_EQ(attempt.status.code(), StatusCode::kUnknownOutcome);
  EXPECT_EQ(cluster.Word(kSlot, 0), 0U);
  EXPECT_FALSE(StopEngine(cluster).ok());
}

// Else every writer of the slot would wait in vain for the one that has given up.
TEST(SnapshotFailureTest, ARoundThatItsWriterHasLeftIsFinishedWhenTheNodeIsBack) {
  SlotCluster cluster(3, 1, 1);
  const NodeId backup = cluster.context(0).view().Locate(kSlot, 2).node;
  cluster.cluster().node(backup.value).SetReachable(false);
  Attempt attempt{.v_old = 0, .v_new = 5, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, true, &attempt));
  ASSERT_EQ(attempt.status.code(), StatusCode::kUnknownOutcome);
  ASSERT_EQ(cluster.Word(kSlot, 1), 5U);
  cluster.cluster().node(backup.value).SetReachable(true);
  attempt = {.v_old = 0, .v_new = 7, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, true, &attempt));
  EXPECT_TRUE(attempt.status.ok()) << attempt.status.message();
  EXPECT_FALSE(attempt.outcome.won);
  EXPECT_TRUE(cluster.AllAre(kSlot, 5));
  EXPECT_TRUE(StopEngine(cluster).ok());
}

// A splitter's, for one, which has no pin: words of the directory never recur.
TEST(SnapshotFailureTest, AHoldOfAllWaitsForARoundThatItsWriterHasLeft) {
  SlotCluster cluster(3, 1, 1);
  const NodeId backup = cluster.context(0).view().Locate(kSlot, 2).node;
  cluster.cluster().node(backup.value).SetReachable(false);
  Attempt attempt{.v_old = 0, .v_new = 5, .status = {}, .outcome = {}, .round_trips = 0};
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, true, &attempt));
  ASSERT_EQ(attempt.status.code(), StatusCode::kUnknownOutcome);
  bool still = false;
  Quiesce& hold = cluster.context(0).quiesce;
  hold.Hold(HoldKind::kAll, [&still] { still = true; });
  const uint64_t later_ns = cluster.context(0).options.op_timeout_ms * 3'000'000;
  cluster.executor().RunUntil(cluster.executor().NowNs() + later_ns);
  EXPECT_FALSE(still);
  cluster.cluster().node(backup.value).SetReachable(true);
  cluster.executor().RunUntil(cluster.executor().NowNs() + later_ns);
  EXPECT_TRUE(still);
  EXPECT_TRUE(cluster.AllAre(kSlot, 5));
  hold.Release();
  EXPECT_TRUE(StopEngine(cluster).ok());
}

// A dead writer's words hold both backups and no writer will ever change the primary.
TEST(SnapshotFailureTest, TheWaitForADeadWinnerIsBounded) {
  SlotCluster cluster(3, 1, 1);
  cluster.Word(kSlot, 1) = cluster.Word(kSlot, 2) = 99;
  Attempt attempt{.v_old = 0, .v_new = 5, .status = {}, .outcome = {}, .round_trips = 0};
  const uint64_t start_ns = cluster.executor().NowNs();
  BlockOn(cluster.executor(), WriteAfter(&cluster, 0, 0, true, &attempt));
  // Its own word is nowhere.
  EXPECT_EQ(attempt.status.code(), StatusCode::kUnavailable);
  const DataPathOptions& options = cluster.context(0).options;
  const uint64_t waited_ms = (cluster.executor().NowNs() - start_ns) / 1'000'000;
  EXPECT_GE(waited_ms, options.op_timeout_ms);
  EXPECT_LE(waited_ms, options.op_timeout_ms + 5);
  // Polls first, then timers that double up to the largest.
  const uint64_t timers = options.op_timeout_ms * 1000 / (options.wait_timer_max_us / 2);
  EXPECT_LT(attempt.round_trips, options.wait_polls_max + timers + 30);
  EXPECT_EQ(cluster.Word(kSlot, 0), 0U);
}

class SnapshotClaimTest : public testing::Test {
 protected:
  SnapshotClaimTest() { cluster_.SetAll(kSlot, kEmpty); }

  Result<SlotOutcome> Write(SlotStep step, uint64_t v_old, uint64_t v_new) {
    Operation operation;
    const SlotWrite write{
        .slot = kSlot, .v_old = v_old, .v_new = v_new, .log = GlobalAddr(), .step = step};
    const Result<SlotOutcome> outcome =
        BlockOn(cluster_.executor(), WriteSlot(&cluster_.engine(0), &operation, write));
    round_trips_ = operation.round_trips;
    return outcome;
  }
  void SetReachable(int replica, bool reachable) {
    const NodeId node = cluster_.context(0).view().Locate(kSlot, replica).node;
    cluster_.cluster().node(node.value).SetReachable(reachable);
  }
  void WaitForOperations() {
    const uint64_t later_ns = cluster_.context(0).options.op_timeout_ms * 3'000'000;
    cluster_.executor().RunUntil(cluster_.executor().NowNs() + later_ns);
  }

  // The node of a backup is away amid a commit, and meanwhile the primary's word becomes what it
  // was claimed from, as a backup has it that became the primary.
  void LoseAClaimAmidItsCommit() {
    EXPECT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
    SetReachable(1, false);
    EXPECT_FALSE(Write(SlotStep::kCommit, kEmpty, kCommitted).ok());
    EXPECT_EQ(cluster_.Word(kSlot, 2), kCommitted);
    cluster_.Word(kSlot, 0) = kEmpty;
    SetReachable(1, true);
    WaitForOperations();
  }
  // True if slots are not still while a CAS of the commit may yet arrive at a backup.
  bool QuiesceWaitsForTheCommit() {
    EXPECT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
    Quiesce& hold = cluster_.context(0).quiesce;
    Operation operation;
    operation.in_flight = Quiesce::InFlightGuard(hold);
    EXPECT_TRUE(operation.in_flight.TryEnterSlots());
    const SlotWrite write{.slot = kSlot,
                          .v_old = kEmpty,
                          .v_new = kCommitted,
                          .log = GlobalAddr(),
                          .step = SlotStep::kCommit};
    Result<SlotOutcome> outcome = Status(StatusCode::kUnavailable, "not yet");
    Gate gate(cluster_.executor());
    cluster_.executor().Spawn(gate,
                              [](Engine* engine, Operation* with, SlotWrite what,
                                 Result<SlotOutcome>* result) -> Task<void> {
                                *result = co_await WriteSlot(engine, with, what);
                              }(&cluster_.engine(0), &operation, write, &outcome));
    // The requests are on their way, and may take effect at any time from now on.
    cluster_.executor().RunUntil(cluster_.executor().NowNs() + 50);
    auto& fabric = static_cast<SimFabric&>(cluster_.context(0).fabric);
    const NodeId backup = cluster_.context(0).view().Locate(kSlot, 1).node;
    fabric.SetCut(backup, true);
    bool still = false;
    hold.Hold(HoldKind::kSlots, [&still] { still = true; });
    cluster_.executor().RunUntil(cluster_.executor().NowNs() + 100'000'000);
    const bool waits = !still;
    fabric.SetCut(backup, false);
    cluster_.executor().RunUntil(cluster_.executor().NowNs() + 100'000'000);
    EXPECT_TRUE(still);
    hold.Release();
    while (gate.inside() > 0) WaitForOperations();
    EXPECT_TRUE(outcome.ok() && outcome->won);
    EXPECT_TRUE(cluster_.AllAre(kSlot, kCommitted));
    operation.in_flight = Quiesce::InFlightGuard();
    return waits;
  }

  const uint64_t kEmpty = SlotWord::Empty(WorkerId{1}, 5).bits();
  const uint64_t kCommitted =
      SlotWord::Make(SlotKind::kObject, 7, SizeClass(3), GlobalAddr(0, 9 * kBlockBytes), true)
          .bits();
  const uint64_t kClaim = ClaimOf(kCommitted);
  SlotCluster cluster_{3, 1, 1};
  uint32_t round_trips_ = 0;
};

TEST_F(SnapshotClaimTest, AClaimIsOfThePrimaryAloneAndItsCommitOfAll) {
  EXPECT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
  EXPECT_EQ(round_trips_, 1U);
  EXPECT_EQ(cluster_.Word(kSlot, 0), kClaim);
  EXPECT_EQ(cluster_.Word(kSlot, 1), kEmpty);
  EXPECT_TRUE(Write(SlotStep::kCommit, kEmpty, kCommitted)->won);
  EXPECT_EQ(round_trips_, 1U);
  EXPECT_EQ(cluster_.Word(kSlot, 0), kClaim);
  for (int backup = 1; backup < 3; ++backup) EXPECT_EQ(cluster_.Word(kSlot, backup), kCommitted);
  WaitForOperations();
  EXPECT_TRUE(cluster_.AllAre(kSlot, kCommitted));
}

// The round trips of a commit over `replicas`.
uint32_t RoundTripsOfCommit(int replicas) {
  SlotCluster cluster(replicas, 1, 1);
  const uint64_t empty = SlotWord::Empty(WorkerId{1}, 5).bits();
  const uint64_t committed =
      SlotWord::Make(SlotKind::kObject, 7, SizeClass(3), GlobalAddr(0, 9 * kBlockBytes), true)
          .bits();
  cluster.SetAll(kSlot, empty);
  cluster.Word(kSlot, 0) = ClaimOf(committed);
  Operation operation;
  const SlotWrite write{.slot = kSlot,
                        .v_old = empty,
                        .v_new = committed,
                        .log = GlobalAddr(),
                        .step = SlotStep::kCommit};
  EXPECT_TRUE(BlockOn(cluster.executor(), WriteSlot(&cluster.engine(0), &operation, write))->won);
  cluster.executor().RunUntil(cluster.executor().NowNs() + 1'000'000);
  EXPECT_TRUE(cluster.AllAre(kSlot, committed));
  return operation.round_trips;
}

TEST(SnapshotCommitTest, AnswersAheadOfThePrimaryWhereOneBackupMayBeLost) {
  EXPECT_EQ(RoundTripsOfCommit(1), 1U);
  EXPECT_EQ(RoundTripsOfCommit(2), 2U);
  EXPECT_EQ(RoundTripsOfCommit(3), 1U);
}

#ifdef ONETRIP_PLANTED_BUGS
TEST(SnapshotCommitTest, PlantedBugAnswersByOneBackupIsFound) {
  TEST_planted_bug = Bug::kAnswersByOneBackup;
  EXPECT_EQ(RoundTripsOfCommit(2), 1U);
  TEST_planted_bug = Bug::kNone;
}
#endif

TEST_F(SnapshotClaimTest, AnAnsweredCommitIsFinishedWhenThePrimarysNodeIsBack) {
  EXPECT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
  EXPECT_TRUE(Write(SlotStep::kCommit, kEmpty, kCommitted)->won);
  SetReachable(0, false);
  WaitForOperations();
  EXPECT_EQ(cluster_.Word(kSlot, 0), kClaim);
  SetReachable(0, true);
  // The next write of the slot by this worker does not wait for that.
  const uint64_t next = cluster_.FreshWord();
  EXPECT_TRUE(Write(SlotStep::kRound, kCommitted, next)->won);
  WaitForOperations();
  EXPECT_TRUE(cluster_.AllAre(kSlot, next));
}

TEST_F(SnapshotClaimTest, AClaimThatIsWithdrawnLeavesTheSlotAsItWas) {
  EXPECT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
  EXPECT_TRUE(Write(SlotStep::kWithdraw, kClaim, kEmpty)->won);
  EXPECT_TRUE(cluster_.AllAre(kSlot, kEmpty));
  EXPECT_FALSE(Write(SlotStep::kClaim, kEmpty + 1, kClaim)->won);
  EXPECT_TRUE(cluster_.AllAre(kSlot, kEmpty));
}

TEST_F(SnapshotClaimTest, AClaimThatItsWriterHasLeftIsWithdrawnWhenTheNodeIsBack) {
  SetReachable(0, false);
  EXPECT_EQ(Write(SlotStep::kClaim, kEmpty, kClaim).status().code(), StatusCode::kUnknownOutcome);
  // It had arrived.
  cluster_.Word(kSlot, 0) = kClaim;
  SetReachable(0, true);
  WaitForOperations();
  EXPECT_TRUE(cluster_.AllAre(kSlot, kEmpty));
  EXPECT_TRUE(StopEngine(cluster_).ok());
}

TEST_F(SnapshotClaimTest, ACommitThatItsWriterHasLeftIsFinishedWhenTheNodeIsBack) {
  ASSERT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
  SetReachable(1, false);
  EXPECT_EQ(Write(SlotStep::kCommit, kEmpty, kCommitted).status().code(),
            StatusCode::kUnknownOutcome);
  EXPECT_EQ(cluster_.Word(kSlot, 2), kCommitted);
  EXPECT_EQ(cluster_.Word(kSlot, 0), kClaim);
  SetReachable(1, true);
  WaitForOperations();
  EXPECT_TRUE(cluster_.AllAre(kSlot, kCommitted));
  EXPECT_TRUE(StopEngine(cluster_).ok());
}

TEST_F(SnapshotClaimTest, ACommitWhoseClaimIsGoneTakesItsWordOffTheBackups) {
  LoseAClaimAmidItsCommit();
  EXPECT_TRUE(cluster_.AllAre(kSlot, kEmpty));
  EXPECT_TRUE(StopEngine(cluster_).ok());
}

// Else the CAS might come to a backup that a view has made the primary meanwhile.
TEST_F(SnapshotClaimTest, AQuiesceOfSlotsWaitsForWhatMayStillTakeEffect) {
  EXPECT_TRUE(QuiesceWaitsForTheCommit());
}

// It holds the word of a claim before this one, whose owner, or a resolution, takes it away.
TEST_F(SnapshotClaimTest, ACommitWaitsForABackupThatIsNotFree) {
  ASSERT_TRUE(Write(SlotStep::kClaim, kEmpty, kClaim)->won);
  cluster_.Word(kSlot, 1) = kCommitted + 1;
  Gate gate(cluster_.executor());
  cluster_.executor().Spawn(gate,
                            [](SlotCluster* cluster, uint64_t* word, uint64_t empty) -> Task<void> {
                              co_await cluster->executor().SleepFor(3'000'000);
                              *word = empty;
                            }(&cluster_, &cluster_.Word(kSlot, 1), kEmpty));
  EXPECT_TRUE(Write(SlotStep::kCommit, kEmpty, kCommitted)->won);
  WaitForOperations();
  while (gate.inside() > 0) WaitForOperations();
  EXPECT_TRUE(cluster_.AllAre(kSlot, kCommitted));
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(SnapshotClaimTest, PlantedBugCommitNotTakenBackIsFound) {
  TEST_planted_bug = Bug::kCommitNotTakenBack;
  LoseAClaimAmidItsCommit();
  EXPECT_EQ(cluster_.Word(kSlot, 2), kCommitted);
  TEST_planted_bug = Bug::kNone;
}

TEST_F(SnapshotClaimTest, PlantedBugSlotsLeftUnsettledIsFound) {
  TEST_planted_bug = Bug::kSlotsLeftUnsettled;
  EXPECT_FALSE(QuiesceWaitsForTheCommit());
  TEST_planted_bug = Bug::kNone;
}
#endif

TEST(RawEngineTest, AWriteIsOneCasOnThePrimary) {
  SlotCluster cluster(3, 1, 1);
  const auto engine = MakeEngine(EngineKind::kRaw, cluster.context(0));
  EXPECT_EQ(engine->Replicas(cluster.context(0).view(), kSlot), 1);
  Operation operation;
  auto outcome =
      BlockOn(cluster.executor(), WriteSlot(engine.get(), &operation, {kSlot, 0, 5, GlobalAddr()}));
  EXPECT_TRUE(outcome->won);
  outcome =
      BlockOn(cluster.executor(), WriteSlot(engine.get(), &operation, {kSlot, 0, 6, GlobalAddr()}));
  EXPECT_FALSE(outcome->won);
  EXPECT_EQ(outcome->current, 5U);
  EXPECT_EQ(operation.round_trips, 2U);
  EXPECT_EQ(cluster.Word(kSlot, 0), 5U);
  EXPECT_EQ(cluster.Word(kSlot, 1), 0U);
}

}  // namespace
}  // namespace onetrip
