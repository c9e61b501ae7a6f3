// The master's state machine: which members may attend, how long a member whose stream ended is
// waited for, which engines work together, and what the cluster's time is.
#include <gtest/gtest.h>

#include "tests/unit/master_bench.h"

namespace onetrip {
namespace {

constexpr uint64_t kSecondUs = 1'000'000;

MemberHello AgentHello(const std::string& engine = "swarm") {
  MemberHello hello;
  hello.kind = MemberKind::kAgent;
  hello.engine = engine;
  return hello;
}

// ---- An old state ----

// A member of the life that the disk is in, with the newest view there is.
MemberHello KnowingAll(const MasterBench& bench, uint64_t member) {
  MemberHello hello = AgentHello();
  hello.cluster = MasterBench::kCluster;
  hello.member = member;
  hello.life = bench.coordinator.life();
  hello.epoch = bench.coordinator.view().epoch.value;
  return hello;
}

TEST(MasterOldStateTest, AnOldCopyIsNoticedHoweverOftenItIsStarted) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const DurableState copy = bench.disk;
  bench.AddWorker(a, {a});
  const MemberHello hello = KnowingAll(bench, member);
  const DurableState newest = bench.disk;
  ASSERT_EQ(newest.cluster.epoch, copy.cluster.epoch + 1);
  bench.disk = copy;
  // Every start begins a view of its own, so that the copy's epochs pass those that members know.
  for (int start = 0; start < 5; ++start) {
    bench.Start();
    bench.Attend(hello);
    EXPECT_FALSE(bench.attendance.welcome) << start;
    EXPECT_FALSE(bench.attendance.retry);
    EXPECT_FALSE(bench.attendance.expelled);
    EXPECT_NE(bench.attendance.reason.find("old copy"), std::string::npos);
  }
  EXPECT_GT(bench.coordinator.view().epoch.value, hello.epoch);
  bench.disk = newest;
  for (int start = 0; start < 3; ++start) bench.Start();
  bench.Attend(hello);
  EXPECT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
}

TEST(MasterOldStateTest, AStateOfBeforeLivesHadNamesIsJudgedByItsEpoch) {
  MasterBench bench;
  bench.Form();
  bench.AddAgent();
  const MemberHello hello = KnowingAll(bench, bench.attendance.member);
  bench.disk.cluster.life = 0;
  bench.disk.lives.clear();
  bench.Start();
  bench.Attend(hello);
  EXPECT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
  MemberHello newer = hello;
  newer.epoch += 1;
  bench.Attend(newer);
  EXPECT_FALSE(bench.attendance.welcome);
}

TEST(MasterOldStateTest, OnlyWhoWasTakenForDeadIsToldSo) {
  MasterBench bench;
  const std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  bench.AddWorker(a, {a});
  const MemberHello hello = KnowingAll(bench, member);
  bench.Break(a);
  bench.Attend(hello);
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_TRUE(bench.attendance.expelled);
  MemberHello unknown = hello;
  unknown.member = 4000;
  bench.Attend(unknown);
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_FALSE(bench.attendance.expelled) << "this master may be the one that does not know";
}

// ---- A stream that ends ----

TEST(MasterAwayTest, AnAgentWhoseStreamEndedComesBackAndNothingHappened) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  bench.AddWorker(a, {a});
  const MemberHello hello = KnowingAll(bench, member);
  bench.Reset(a);
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled == false);
  bench.Advance(400);
  const StreamId again = bench.Attend(hello);
  ASSERT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
  EXPECT_EQ(bench.attendance.member, member);
  EXPECT_EQ(bench.SentEpoch(again), hello.epoch) << "no view was made";
  EXPECT_EQ(bench.Last<ExpelledMessage>(again), nullptr);
  bench.TakeOver(again);
  bench.AddWorker(again, {again});
}

TEST(MasterAwayTest, AnAgentThatDoesNotComeBackIsExpelledWithinHalfALease) {
  MasterBench bench;
  const std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  bench.Reset(a);
  EXPECT_LE(bench.coordinator.TickMs(), 20U) << "it is looked at as soon as the time is over";
  bench.Advance(480);
  EXPECT_FALSE(bench.disk.seats.begin()->second.expelled);
  EXPECT_EQ(bench.Last<FenceMessage>(nodes[0]), nullptr);
  bench.Advance(30);
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled);
  EXPECT_NE(bench.Last<FenceMessage>(nodes[0]), nullptr);
}

TEST(MasterAwayTest, AMemberOfWhichSomethingHasComeLivesALeaseLonger) {
  MasterBench bench;
  const std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  const auto pass = [&](int ms) {
    for (int passed = 0; passed < ms; passed += 100) {
      for (const StreamId node : nodes) bench.Say(node, RenewMessage{});
      bench.Advance(100);
    }
  };
  pass(900);
  bench.coordinator.OnHeard(bench.now_us, a);
  bench.coordinator.OnHeard(bench.now_us, /*stream=*/12345);
  bench.Settle();
  pass(900);
  EXPECT_FALSE(bench.disk.seats.begin()->second.expelled);
  pass(200);
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled);
  // It is dead, whatever comes of it.
  bench.coordinator.OnHeard(bench.now_us, a);
  bench.Settle();
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled);
}

TEST(MasterAwayTest, AHandshakeThatHasBegunIsWaitedForWithinBounds) {
  MasterBench bench;
  const std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  const uint64_t member = bench.attendance.member;
  bench.Reset(a);
  const auto pass = [&](int ms, bool in_handshake) {
    for (int passed = 0; passed < ms; passed += 100) {
      for (const StreamId node : nodes) bench.Say(node, RenewMessage{});
      if (in_handshake) bench.coordinator.OnHandshake(member);
      bench.coordinator.OnHandshake(/*member=*/12345);
      bench.Advance(100);
    }
  };
  pass(2400, /*in_handshake=*/true);
  EXPECT_FALSE(bench.disk.seats.begin()->second.expelled);
  pass(100, /*in_handshake=*/true);
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled) << "nothing was proved in two leases";
}

TEST(MasterAwayTest, AHandshakeThatHasEndedIsNotWaitedFor) {
  MasterBench bench;
  bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  const uint64_t member = bench.attendance.member;
  bench.Reset(a);
  bench.Advance(450);
  bench.coordinator.OnHandshake(member);
  bench.Advance(100);
  EXPECT_FALSE(bench.disk.seats.begin()->second.expelled);
  bench.Advance(20);
  EXPECT_TRUE(bench.disk.seats.begin()->second.expelled);
}

TEST(MasterAwayTest, AnAgentWhoseProcessHasEndedIsExpelledAtOnce) {
  MasterBench bench;
  const std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  bench.Break(a);
  EXPECT_NE(bench.Last<FenceMessage>(nodes[0]), nullptr);
}

TEST(MasterAwayTest, AMemoryNodeWhoseStreamEndedIsWaitedForBeforeItIsPutOut) {
  MasterBench bench;
  std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  const uint64_t epoch = bench.coordinator.view().epoch.value;
  bench.Reset(nodes[1]);
  bench.Pass(400, {nodes[0], nodes[2], a});
  EXPECT_EQ(bench.Last<HoldForViewMessage>(a), nullptr);
  nodes[1] = bench.JoinNode(101);
  bench.Ask(nodes[1], MasterBench::Serve(7001));
  bench.Pass(2000, {nodes[0], nodes[1], nodes[2], a});
  EXPECT_EQ(bench.Last<HoldForViewMessage>(a), nullptr);
  EXPECT_EQ(bench.coordinator.view().epoch.value, epoch) << "nothing happened";
  // One that does not come back goes out.
  bench.Reset(nodes[1]);
  bench.Pass(400, {nodes[0], nodes[2], a});
  EXPECT_EQ(bench.Last<HoldForViewMessage>(a), nullptr);
  bench.Pass(200, {nodes[0], nodes[2], a});
  EXPECT_NE(bench.Last<HoldForViewMessage>(a), nullptr);
}

TEST(MasterAwayTest, AMemoryNodeWhoseProcessHasEndedIsPutOutAtOnce) {
  MasterBench bench;
  std::vector<StreamId> nodes = bench.Form();
  const StreamId a = bench.AddAgent();
  bench.AddWorker(a, {a});
  bench.Break(nodes[1]);
  EXPECT_NE(bench.Last<HoldForViewMessage>(a), nullptr);
}

// ---- Engines ----

TEST(MasterEngineTest, EnginesThatShareNoMemoryShareNoCluster) {
  CoordinatorOptions options;
  options.nodes = 1;
  options.replicas = 1;
  MasterBench bench(options);
  bench.Form(1);
  // Both may come as long as no agent has written.
  const StreamId swarm = bench.Attend(AgentHello("swarm"));
  const StreamId raw = bench.Attend(AgentHello("raw"));
  ASSERT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
  for (const StreamId agent : {swarm, raw}) bench.TakeOver(agent);
  bench.AddWorker(swarm, {swarm, raw});
  const uint64_t request = bench.Ask(raw, JoinWorkerRequest());
  for (const StreamId agent : {swarm, raw}) bench.TakeOver(agent);
  ASSERT_NE(bench.ReplyTo(raw, request), nullptr);
  EXPECT_EQ(bench.ReplyTo(raw, request)->code, StatusCode::kInvalidArgument);
  EXPECT_NE(bench.ReplyTo(raw, request)->reason.find("engine raw shares a cluster with no other"),
            std::string::npos);
  // Nor does it later, or under another master; the others do.
  for (int start = 0; start < 2; ++start) {
    bench.Attend(AgentHello("raw"));
    EXPECT_FALSE(bench.attendance.welcome);
    EXPECT_FALSE(bench.attendance.retry);
    for (const char* engine : {"swarm", "snapshot", "abd"}) {
      bench.Attend(AgentHello(engine));
      EXPECT_TRUE(bench.attendance.welcome) << engine;
    }
    bench.Start();
  }
}

TEST(MasterEngineTest, AClusterOfRawTakesNoOther) {
  CoordinatorOptions options;
  options.nodes = 1;
  options.replicas = 1;
  MasterBench bench(options);
  bench.Form(1);
  const StreamId raw = bench.Attend(AgentHello("raw"));
  bench.TakeOver(raw);
  bench.AddWorker(raw, {raw});
  bench.Attend(AgentHello("raw"));
  EXPECT_TRUE(bench.attendance.welcome);
  bench.Attend(AgentHello("swarm"));
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_NE(bench.attendance.reason.find("--engine raw"), std::string::npos);
}

TEST(MasterEngineTest, RawNeedsAClusterOfOneReplica) {
  MasterBench bench;
  bench.Form();
  bench.Attend(AgentHello("raw"));
  EXPECT_FALSE(bench.attendance.welcome);
  EXPECT_NE(bench.attendance.reason.find("3 replicas"), std::string::npos);
}

// ---- Time ----

class MasterTimeTest : public ::testing::Test {
 protected:
  uint64_t Time() const { return bench.coordinator.TimeUs(bench.now_us); }
  // The master dies, and is started again `seconds` later, by the steady clock of its host.
  void RestartAfter(uint64_t seconds) {
    bench.now_us += seconds * kSecondUs;
    bench.Start();
  }
  // The agent comes back, and has counted on from `time_us` since.
  void ComeBack(uint64_t member, uint64_t time_us) {
    MemberHello hello = KnowingAll(bench, member);
    hello.life = 0;
    hello.time_us = time_us;
    bench.Attend(hello);
    ASSERT_TRUE(bench.attendance.welcome) << bench.attendance.reason;
  }

  MasterBench bench;
};

TEST_F(MasterTimeTest, AMasterThatStoodStillTellsWhoComesNoTimeThatItsStoreDoesNotCover) {
  bench.Form();
  bench.now_us += 60 * kSecondUs;
  bench.AddAgent();
  EXPECT_EQ(bench.disk.cluster.time_us, bench.attendance.time_us_max);
  EXPECT_GE(bench.disk.cluster.time_us, Time());
}

TEST_F(MasterTimeTest, AWallClockThatIsAheadOrBehindMovesNothing) {
  bench.Form();
  for (const int64_t wrong_s : {600, -600}) {
    bench.AddAgent();
    const uint64_t member = bench.attendance.member;
    const uint64_t told_us = Time();
    bench.unix_us += static_cast<uint64_t>(wrong_s) * kSecondUs;
    RestartAfter(1);
    ComeBack(member, told_us + kSecondUs);
    // The stored time runs ahead by 2 s at most: a member knows better.
    EXPECT_EQ(Time(), told_us + kSecondUs);
    bench.Advance(100);
    EXPECT_EQ(Time(), told_us + kSecondUs + 100'000) << "it goes on";
  }
}

TEST_F(MasterTimeTest, TimeGoesOnFromWhatMembersKnowHoweverLongTheMasterWasAway) {
  bench.Form();
  bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const uint64_t told_us = Time();
  bench.unix_us -= 50'000 * kSecondUs;
  RestartAfter(3600);
  EXPECT_LE(Time(), told_us + 2 * kSecondUs);
  ComeBack(member, told_us + 3600 * kSecondUs);
  EXPECT_EQ(Time(), told_us + 3600 * kSecondUs);
  // Another one knows a little more; one that knows less changes nothing.
  ComeBack(member, told_us + 3600 * kSecondUs + 5000);
  EXPECT_EQ(Time(), told_us + 3600 * kSecondUs + 5000);
  ComeBack(member, told_us + 3000 * kSecondUs);
  bench.Advance(100);
  EXPECT_EQ(Time(), told_us + 3600 * kSecondUs + 105'000);
}

TEST_F(MasterTimeTest, TheWallClockDecidesOnlyWhenNobodyIsLeftWhoCouldKnow) {
  bench.Form();
  bench.AddAgent();
  const uint64_t told_us = Time();
  // All lose their power for an hour.
  RestartAfter(3600);
  for (uint64_t node = 0; node < 3; ++node) bench.JoinNode(100 + node);
  MemberHello fresh = AgentHello();
  fresh.wall_us = bench.unix_us + bench.now_us - 7 * kSecondUs;  // its clock is 7 s behind
  const StreamId a = bench.Attend(fresh);
  EXPECT_LE(Time(), told_us + 2 * kSecondUs);
  bench.Ask(a, JoinWorkerRequest());
  for (int i = 0; i < 29; ++i) bench.Pass(100, {a});
  EXPECT_LE(Time(), told_us + 5 * kSecondUs) << "somebody may still come";
  bench.Pass(200, {a});
  // The least of all clocks that there are.
  EXPECT_EQ(Time(), bench.unix_us + bench.now_us - 7 * kSecondUs);
}

TEST_F(MasterTimeTest, AWallClockThatIsBehindNeverTurnsTimeBack) {
  bench.Form();
  const uint64_t told_us = Time();
  bench.unix_us -= 3600 * kSecondUs;
  RestartAfter(10);
  const StreamId a = bench.Attend(AgentHello());
  bench.Ask(a, JoinWorkerRequest());
  for (int i = 0; i < 40; ++i) bench.Pass(100, {a});
  EXPECT_GE(Time(), told_us);
  EXPECT_LE(Time(), told_us + 7 * kSecondUs);
}

TEST_F(MasterTimeTest, AfterAnEndInOrderOfEverybodyNobodyIsWaitedFor) {
  const std::vector<StreamId> nodes = bench.Form();
  for (const StreamId node : nodes) bench.Ask(node, LeaveRequest());
  bench.coordinator.OnStop(bench.now_us);
  bench.Settle();
  EXPECT_TRUE(bench.disk.cluster.nobody_stayed);
  RestartAfter(3600);
  EXPECT_FALSE(bench.disk.cluster.nobody_stayed) << "of this life nothing is known yet";
  bench.Ask(bench.Attend(AgentHello()), JoinWorkerRequest());
  EXPECT_EQ(Time(), bench.unix_us + bench.now_us);
}

TEST_F(MasterTimeTest, WhoJoinsAfterAMasterHasDiedIsNotAheadOfThoseThatStayed) {
  const std::vector<StreamId> nodes = bench.Form();
  bench.AddAgent();
  const uint64_t member = bench.attendance.member;
  const uint64_t told_us = Time();
  RestartAfter(1);
  for (uint64_t node = 0; node < 3; ++node) bench.JoinNode(100 + node);
  bench.Attend(AgentHello());
  EXPECT_EQ(bench.attendance.time_us_max, 0U) << "no member has said it yet";
  ComeBack(member, told_us + kSecondUs);
  EXPECT_EQ(Time(), told_us + kSecondUs);
  // A member that heard nothing for long does not turn the time back by more than the lead.
  RestartAfter(1);
  ComeBack(member, told_us - 1000 * kSecondUs);
  EXPECT_GE(Time(), told_us - 2 * kSecondUs);
}

TEST_F(MasterTimeTest, WhoJoinsIsToldTheTime) {
  bench.Form();
  const StreamId a = bench.AddAgent();
  const WorkerJoined joined = bench.AddWorker(a, {a});
  EXPECT_EQ(joined.time_us, Time());
}

}  // namespace
}  // namespace onetrip
