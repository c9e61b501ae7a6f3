// Old state that is put back: an image of a memory node, or the master's own data.
#include <gmock/gmock.h>

#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

// With agents at work; node 1's memory has been seen with mark 10.
class MasterAgeTest : public MasterRepairTest {
 protected:
  MasterAgeTest() {
    const uint64_t request = bench.Ask(nodes[1], NoteMarkRequest{10});
    EXPECT_EQ(bench.ReplyTo(nodes[1], request)->code, StatusCode::kOk);
  }
  static JoinNodeRequest Image(uint64_t mark, uint64_t told) {
    JoinNodeRequest offer = MasterBench::Offer(101);
    offer.adopted = true;
    offer.owner_cluster = MasterBench::kCluster;
    offer.owner_node = 1;
    offer.mark = mark;
    offer.told = told;
    return offer;
  }
  const ReplyMessage* Join(const JoinNodeRequest& offer) {
    nodes[1] = bench.Attend(MemberKind::kMemoryNode);
    return bench.ReplyTo(nodes[1], request_ = bench.Ask(nodes[1], offer));
  }
  bool HasLogged(const std::string& text) const {
    return std::any_of(bench.log.begin(), bench.log.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  uint64_t request_ = 0;
};

TEST_F(MasterAgeTest, AMarkIsStoredBeforeTheNodeHearsOfIt) {
  EXPECT_EQ(bench.disk.nodes[1].mark, 10U);
  MemberReport report;
  report.mark = 12;
  bench.Say(nodes[1], RenewMessage{7, report, false});
  ASSERT_NE(bench.Last<RenewedMessage>(nodes[1]), nullptr);
  EXPECT_EQ(bench.Last<RenewedMessage>(nodes[1])->mark, 10U);
  EXPECT_EQ(bench.disk.nodes[1].mark, 10U);
  bench.Pass(1500, Everybody());
  EXPECT_EQ(bench.disk.nodes[1].mark, 12U);
  bench.Say(nodes[1], RenewMessage{8, report, false});
  EXPECT_EQ(bench.Last<RenewedMessage>(nodes[1])->mark, 12U);
}

TEST_F(MasterAgeTest, AnOlderImageIsOutUntilItsRegionsAreCopied) {
  bench.Break(nodes[1]);
  EXPECT_EQ(Join(Image(9, 9)), nullptr) << "agents still count on it";
  EXPECT_EQ(StateOf(1), "damaged");
  EXPECT_TRUE(
      HasLogged("it is an older copy of the node's memory (its mark is 9, but it was seen "
                "with 10): what was written later is missing"));
  AllHold();
  const ReplyMessage* reply = bench.ReplyTo(nodes[1], request_);
  ASSERT_NE(reply, nullptr);
  const auto& place = std::get<NodeJoined>(reply->body);
  EXPECT_THAT(place.outdated, HasSubstr("older copy"));
  EXPECT_EQ(place.mark, 10U);
  EXPECT_TRUE(place.view->IsOut(NodeId{1}));
}

TEST_F(MasterAgeTest, TheNewestImageIsTakenAsItIsAndSoIsOneThatTheMasterWasNotToldOf) {
  for (const uint64_t mark : {10U, 11U}) {
    bench.Break(nodes[1]);
    const ReplyMessage* reply = Join(Image(mark, 10));
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(std::get<NodeJoined>(reply->body).outdated, "");
    EXPECT_EQ(StateOf(1), "joining");
  }
}

TEST_F(MasterAgeTest, AMarkThatIsNotStoredYetCountsToo) {
  MemberReport report;
  report.mark = 12;
  bench.Say(nodes[1], RenewMessage{7, report, true});
  bench.Break(nodes[1]);
  EXPECT_EQ(Join(Image(11, 10)), nullptr);
}

TEST_F(MasterAgeTest, AMasterThatIsRestartedStillKnowsWhatIsOld) {
  bench.Start();
  nodes[0] = bench.JoinNode(100);
  EXPECT_EQ(Join(Image(9, 9)), nullptr);
  EXPECT_EQ(StateOf(1), "damaged");
}

TEST_F(MasterAgeTest, AllImagesTogetherMayBeAsOldAsTheMastersOwnState) {
  const DurableState backup = bench.disk;
  bench.Ask(nodes[1], NoteMarkRequest{20});
  bench.disk = backup;
  bench.Start();
  const ReplyMessage* reply = Join(Image(10, 10));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(std::get<NodeJoined>(reply->body).outdated, "");
}

TEST_F(MasterAgeTest, WhenTooManyAreOldTheyWaitAndWhatIsAcceptedServesAsItIs) {
  bench.Ask(nodes[0], NoteMarkRequest{10});
  bench.Start();
  EXPECT_EQ(Join(Image(9, 9)), nullptr);
  JoinNodeRequest other = Image(9, 9);
  other.incarnation = 100;
  other.owner_node = 0;
  nodes[0] = bench.Attend(MemberKind::kMemoryNode);
  EXPECT_EQ(bench.ReplyTo(nodes[0], bench.Ask(nodes[0], other)), nullptr);
  nodes[2] = bench.JoinNode(102);
  bench.Ask(nodes[2], MasterBench::Serve(7002));
  EXPECT_THAT(Status().waiting_for, HasSubstr("--accept-damaged yes"));
  bench.Break(nodes[0]);
  other.accepts_old = true;
  nodes[0] = bench.Attend(MemberKind::kMemoryNode);
  EXPECT_NE(bench.ReplyTo(nodes[0], bench.Ask(nodes[0], other)), nullptr);
  EXPECT_TRUE(bench.disk.cluster.resolve_due);
  EXPECT_TRUE(bench.disk.cluster.scrub_due);
}

TEST_F(MasterAgeTest, ANodeDoesNotJoinAMasterThatHasForgottenWhatItStored) {
  const DurableState backup = bench.disk;
  bench.Ask(nodes[1], NoteMarkRequest{20});
  bench.disk = backup;
  // However often it is started.
  for (int i = 0; i < 20; ++i) bench.Start();
  const ReplyMessage* reply = Join(Image(20, 20));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kInvalidArgument);
  EXPECT_THAT(reply->reason, HasSubstr("a master has stored mark 20 of its memory, but this one "
                                       "knows only 10"));
  EXPECT_THAT(reply->reason, HasSubstr("onetrip master rebuild"));
}

TEST_F(MasterAgeTest, NorOneThatDoesNotKnowTheMapThatItsMemoryWasUsedUnder) {
  JoinNodeRequest offer = Image(10, 10);
  offer.epoch = view().epoch.value + 1;
  bench.Break(nodes[1]);
  const ReplyMessage* reply = Join(offer);
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kInvalidArgument);
  EXPECT_THAT(reply->reason, HasSubstr("older copy"));
}

// A memory node that has heard of nothing newer welcomes it, and would fence the agents it expels.
TEST_F(MasterAgeTest, AMasterWhoseStateMostNodesKnowToBeOldExpelsNobody) {
  const uint64_t epoch = view().epoch.value;
  const DurableState before = bench.disk;
  for (const int refusing : {1, 2}) {
    bench.disk = before;
    bench.Start();
    nodes[1] = bench.JoinNode(101);
    bench.Ask(nodes[1], MasterBench::Serve(7001));
    for (uint64_t member = 1; member <= 2; ++member) {
      const bool refused = member <= static_cast<uint64_t>(refusing);
      bench.Attend(MemberKind::kMemoryNode, member, refused ? epoch + 100 : epoch);
      EXPECT_EQ(bench.attendance.welcome, !refused);
    }
    bench.Pass(10000, {nodes[1]});
    EXPECT_EQ(bench.Last<FenceMessage>(nodes[1]) == nullptr, refusing == 2);
    EXPECT_EQ(HasLogged("more than half of the memory nodes know a newer state"), refusing == 2);
  }
}

TEST_F(MasterAgeTest, IdsThatANodeHasSeenAreNotGivenOutAgain) {
  JoinNodeRequest spare = MasterBench::Offer(200);
  spare.next_worker = 77;
  bench.Ask(bench.Attend(MemberKind::kMemoryNode), spare);
  EXPECT_EQ(bench.disk.cluster.next_worker, 77U);
  EXPECT_EQ(bench.AddWorker(a, {a, b}).worker, WorkerId{77});
}

TEST_F(MasterAgeTest, AnIdThatNoWorkerCanHaveUsesNoneUp) {
  JoinNodeRequest odd = MasterBench::Offer(200);
  odd.next_worker = UINT32_MAX;
  const uint32_t next = bench.disk.cluster.next_worker;
  bench.Ask(bench.Attend(MemberKind::kMemoryNode), odd);
  EXPECT_EQ(bench.disk.cluster.next_worker, next);
  EXPECT_EQ(bench.AddWorker(a, {a, b}).worker, WorkerId{next});
}

#ifdef ONETRIP_PLANTED_BUGS
class MasterAgePlantedTest : public MasterAgeTest {
 protected:
  ~MasterAgePlantedTest() override { TEST_planted_bug = Bug::kNone; }
};

TEST_F(MasterAgePlantedTest, OldImageBelievedIsFound) {
  TEST_planted_bug = Bug::kOldImageBelieved;
  bench.Break(nodes[1]);
  EXPECT_NE(Join(Image(9, 9)), nullptr);
  EXPECT_NE(StateOf(1), "damaged");
}

TEST_F(MasterAgePlantedTest, OlderMasterServesIsFound) {
  TEST_planted_bug = Bug::kOlderMasterServes;
  bench.Break(nodes[1]);
  const ReplyMessage* reply = Join(Image(20, 20));
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->code, StatusCode::kOk);
}

TEST_F(MasterAgePlantedTest, IdsStartOverIsFound) {
  TEST_planted_bug = Bug::kIdsStartOver;
  JoinNodeRequest spare = MasterBench::Offer(200);
  spare.next_worker = 77;
  bench.Ask(bench.Attend(MemberKind::kMemoryNode), spare);
  EXPECT_LT(bench.AddWorker(a, {a, b}).worker, WorkerId{77});
}
#endif

}  // namespace
}  // namespace onetrip
