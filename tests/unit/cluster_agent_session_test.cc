// AgentSession, event by event; cluster_agent_session_orders_test.cc has every order of them.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client_core/cluster/agent_session.h"
#include "tests/unit/cluster_agent_effects.h"

namespace onetrip {
namespace {

using EffectLines = std::vector<std::string>;

constexpr WorkerId kFirst{1};
constexpr WorkerId kSecond{2};
constexpr NodeId kFarNode{4};
constexpr uint64_t kNsPerMs = 1'000'000;

std::shared_ptr<const View> SessionViewOf(uint64_t epoch, size_t regions = 1,
                                          uint16_t leaving = 0) {
  View view;
  view.epoch = Epoch{epoch};
  view.regions.resize(regions);
  view.leaving = leaving;
  view.node_count = 6;
  view.nodes.resize(6);
  return std::make_shared<const View>(view);
}

class AgentSessionTest : public testing::Test {
 protected:
  EffectLines Taken() { return EffectTexts(session_.TakeEffects()); }
  EffectLines Hold(uint64_t epoch, HoldKind kind = HoldKind::kAll) {
    session_.OnHold({Epoch{epoch}, kind, {}});
    return Taken();
  }
  EffectLines Use(uint64_t epoch) {
    session_.OnView(SessionViewOf(epoch));
    return Taken();
  }
  EffectLines Repair(uint64_t id, RepairKind kind = RepairKind::kCopyRegion) {
    session_.OnRepair({id, {kind, SessionViewOf(9)}});
    return Taken();
  }
  EffectLines CarriedOut(uint64_t ticket) {
    session_.OnCarriedOut(ticket);
    return Taken();
  }
  EffectLines Ended(uint64_t id, Status status = Status::Ok()) {
    session_.OnRepairEnded(id, status);
    return Taken();
  }

  AgentSession session_;
};

class AgentSessionWithWorkersTest : public AgentSessionTest {
 protected:
  AgentSessionWithWorkersTest() {
    session_.OnJoined(kFirst);
    session_.OnJoined(kSecond);
  }
};

// ---- Without workers ----

TEST_F(AgentSessionTest, WithoutWorkersEverythingIsAnsweredAtOnce) {
  EXPECT_EQ(Hold(7), EffectLines{"held 7"});
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "in force 7"}));
  session_.OnReach({3, kFarNode});
  EXPECT_EQ(Taken(), EffectLines{"reached 3"});
  EXPECT_EQ(Repair(5), EffectLines{"not repaired 5: no worker can do it"});
}

TEST_F(AgentSessionTest, WhoJoinsDuringAQuiesceStartsInIt) {
  Hold(7);
  session_.OnJoined(kFirst);
  EXPECT_EQ(Taken(), EffectLines{"1 starts quiesced"});
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "tell 1: view 7, go on (1)"}));
  session_.OnJoined(kSecond);
  EXPECT_EQ(Taken(), EffectLines{});
}

// ---- Quiesce ----

TEST_F(AgentSessionWithWorkersTest, AQuiesceIsAcknowledgedWhenAllHaveCarriedItOut) {
  session_.OnHold({Epoch{7}, HoldKind::kSlots, {kFarNode}});
  EXPECT_EQ(Taken(), EffectLines{"tell 1 2: quiesce slots, evict 4 (1)"});
  EXPECT_EQ(CarriedOut(1), EffectLines{"held 7"});
  EXPECT_EQ(CarriedOut(1), EffectLines{}) << "once";
}

TEST_F(AgentSessionWithWorkersTest, AQuiesceThatIsAskedForAgainCountsFromThen) {
  EXPECT_EQ(Hold(7), EffectLines{"tell 1 2: quiesce all (1)"});
  session_.OnWelcome(0);
  EXPECT_EQ(Hold(7), EffectLines{"tell 1 2: quiesce all (2)"});
  EXPECT_EQ(CarriedOut(1), EffectLines{}) << "its acknowledgement may be the end of it";
  EXPECT_EQ(CarriedOut(2), EffectLines{"held 7"});
}

TEST_F(AgentSessionWithWorkersTest, AQuiesceThatAViewHasEndedIsNotAcknowledged) {
  Hold(7);
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "tell 1 2: view 7, go on (2)"}));
  EXPECT_EQ(CarriedOut(1), EffectLines{});
  EXPECT_EQ(CarriedOut(2), EffectLines{"in force 7"});
}

TEST_F(AgentSessionWithWorkersTest, AnOlderViewEndsNoQuiesce) {
  Hold(7);
  EXPECT_EQ(Use(6), (EffectLines{"use view 6", "tell 1 2: view 6 (2)"}));
  EXPECT_EQ(CarriedOut(1), EffectLines{"held 7"});
  EXPECT_EQ(CarriedOut(2), EffectLines{"in force 6"});
  EXPECT_EQ(Use(8), (EffectLines{"use view 8", "tell 1 2: view 8, go on (3)"}));
}

// ---- Views ----

TEST_F(AgentSessionWithWorkersTest, AViewThatIsKnownIsToldAgainAndNotUsedAgain) {
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "tell 1 2: view 7 (1)"}));
  session_.OnWelcome(0);
  EXPECT_EQ(Use(7), EffectLines{"tell 1 2: view 7 (2)"});
  EXPECT_EQ(CarriedOut(1), EffectLines{"in force 7"});
  EXPECT_EQ(CarriedOut(2), EffectLines{"in force 7"});
  EXPECT_EQ(Use(6), EffectLines{"tell 1 2: view 7 (3)"}) << "nothing goes back";
  EXPECT_EQ(CarriedOut(3), EffectLines{"in force 6"});
}

TEST_F(AgentSessionWithWorkersTest, NoRegionGoesAwayThatWasNotLeaving) {
  session_.OnView(SessionViewOf(2, 3, 1));
  Taken();
  session_.OnView(SessionViewOf(3, 1));
  EXPECT_EQ(Taken(), EffectLines{"complain"});
  session_.OnView(SessionViewOf(4, 2));
  EXPECT_EQ(Taken(), (EffectLines{"use view 4", "tell 1 2: view 4 (2)"}));
}

TEST_F(AgentSessionTest, WithoutWorkersAViewMayLackWhatIsNotInUse) {
  session_.OnView(SessionViewOf(2, 3));
  Taken();
  session_.OnView(SessionViewOf(5, 1));
  EXPECT_EQ(Taken(), (EffectLines{"use view 5", "in force 5"})) << "those between were missed";
}

// ---- Reach ----

TEST_F(AgentSessionWithWorkersTest, ANodeIsReachedWhenAllReachIt) {
  session_.OnReach({31, kFarNode});
  EXPECT_EQ(Taken(), EffectLines{"tell 1 2: reach 4 (1)"});
  // Whatever else is asked meanwhile.
  EXPECT_EQ(Hold(7), EffectLines{"tell 1 2: quiesce all (2)"});
  EXPECT_EQ(CarriedOut(2), EffectLines{"held 7"});
  EXPECT_EQ(CarriedOut(1), EffectLines{"reached 31"});
}

TEST_F(AgentSessionTest, NodesThatAreNotReachedAreToldAndToldAgainOnANewStream) {
  session_.OnProbed(kFarNode, false, 5 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{"unreached: 4 by 0 for 0 ms"});
  session_.OnJoined(kFirst);
  session_.OnReachOf(kFirst, NodeId{5}, false, 7 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{"unreached: 4 by 0 for 2 ms, 5 by 1 for 0 ms"});
  session_.OnReachOf(kFirst, NodeId{5}, false, 8 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{}) << "nothing has changed";
  session_.OnWelcome(9 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{"unreached: 4 by 0 for 4 ms, 5 by 1 for 2 ms"});
  session_.OnLeft(kFirst, 9 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{"unreached: 4 by 0 for 4 ms"}) << "who noticed is gone";
  session_.OnProbed(kFarNode, true, 9 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{"unreached:"});
  session_.OnWelcome(9 * kNsPerMs);
  EXPECT_EQ(Taken(), EffectLines{});
}

TEST_F(AgentSessionTest, NodesThatGoOutAreToBeProbed) {
  session_.OnJoined(kFirst);
  session_.OnReachOf(kFirst, kFarNode, false, 0);
  EXPECT_TRUE(session_.unreached().ToProbe().empty());
  View view = *SessionViewOf(3);
  view.nodes[kFarNode.value].out = true;
  session_.OnView(std::make_shared<const View>(view));
  EXPECT_EQ(session_.unreached().ToProbe(), std::vector<NodeId>{kFarNode});
}

// ---- Repairs ----

TEST_F(AgentSessionWithWorkersTest, OneWorkerRepairsAndTheMasterHearsTheEnd) {
  EXPECT_EQ(Repair(5), EffectLines{"1 repairs 5"});
  EXPECT_EQ(Ended(5), EffectLines{"repaired 5"});
  EXPECT_EQ(Repair(6), EffectLines{"1 repairs 6"});
  EXPECT_EQ(Ended(6, Status(StatusCode::kUnavailable, "no channel")),
            EffectLines{"not repaired 6: no channel"});
}

TEST_F(AgentSessionWithWorkersTest, ARepairThatIsAskedForAgainIsDoneOnce) {
  EXPECT_EQ(Repair(5), EffectLines{"1 repairs 5"});
  session_.OnWelcome(0);
  EXPECT_EQ(Repair(5), EffectLines{});
  EXPECT_EQ(Ended(5), EffectLines{"repaired 5"});
  session_.OnWelcome(0);
  EXPECT_EQ(Repair(5), EffectLines{"repaired 5"})
      << "the answer may have been lost with the stream";
}

TEST_F(AgentSessionWithWorkersTest, TheEndOfRegistersIsEachWorkersTurn) {
  EXPECT_EQ(Repair(5, RepairKind::kEndRegisters), EffectLines{"1 repairs 5"});
  Ended(5);
  EXPECT_EQ(Repair(6, RepairKind::kEndRegisters), EffectLines{"2 repairs 6"});
  Ended(6);
  EXPECT_EQ(Repair(7, RepairKind::kScrubRegisters), EffectLines{"1 repairs 7"});
  Ended(7);
  EXPECT_EQ(Repair(8, RepairKind::kEndRegisters), EffectLines{"1 repairs 8"});
  session_.OnLeft(kFirst, 0);
  Ended(8);
  EXPECT_EQ(Repair(9, RepairKind::kEndRegisters), EffectLines{"2 repairs 9"});
}

TEST_F(AgentSessionWithWorkersTest, AnOrderThatMakesNoSenseIsNotDone) {
  session_.OnRepair({5, {RepairKind::kCopyRegion, nullptr}});
  EXPECT_EQ(Taken(), EffectLines{"not repaired 5: no worker can do it"});
}

TEST_F(AgentSessionWithWorkersTest, AViewWaitsForARepairForWhichOthersQuiesce) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), EffectLines{});
  EXPECT_EQ(Use(8), EffectLines{}) << "the newest counts";
  EXPECT_EQ(session_.view()->epoch.value, 0U);
  EXPECT_EQ(Ended(5), (EffectLines{"repaired 5", "use view 8", "tell 1 2: view 8, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, AViewDoesNotWaitForAnotherRepair) {
  Repair(5, RepairKind::kTakeOverBlocks);
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "tell 1 2: view 7 (1)"}));
  EXPECT_EQ(Ended(5), EffectLines{"repaired 5"});
}

TEST_F(AgentSessionWithWorkersTest, AViewWaitsForEveryRepairForWhichOthersQuiesce) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), EffectLines{});
  // The master has given up the first one; it still runs here.
  EXPECT_EQ(Repair(6, RepairKind::kScrubRegisters), EffectLines{"1 repairs 6"});
  EXPECT_EQ(Ended(6), EffectLines{"repaired 6"});
  EXPECT_EQ(Use(8), EffectLines{});
  EXPECT_EQ(Ended(5), (EffectLines{"use view 8", "tell 1 2: view 8, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, ANewRepairDropsNoViewThatWaits) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), EffectLines{});
  Repair(6);
  EXPECT_EQ(Ended(5), EffectLines{});
  EXPECT_EQ(Ended(6), (EffectLines{"repaired 6", "use view 7", "tell 1 2: view 7, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, TheEndOfAnOlderRepairIsNotTold) {
  Repair(5);
  Repair(6);
  EXPECT_EQ(Ended(5), EffectLines{});
  EXPECT_EQ(Ended(6), EffectLines{"repaired 6"});
}

// ---- Workers that go ----

TEST_F(AgentSessionWithWorkersTest, WhoHasLeftIsToldNothing) {
  session_.OnLeft(kFirst, 0);
  EXPECT_EQ(Hold(7), EffectLines{"tell 2: quiesce all (1)"});
  session_.OnLeft(kSecond, 0);
  EXPECT_EQ(CarriedOut(1), EffectLines{"held 7"});
  EXPECT_EQ(Use(7), (EffectLines{"use view 7", "in force 7"}));
}

}  // namespace
}  // namespace onetrip
