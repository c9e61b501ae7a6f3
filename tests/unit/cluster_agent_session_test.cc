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

using Effects = std::vector<std::string>;

constexpr WorkerId kOne{1};
constexpr WorkerId kTwo{2};
constexpr NodeId kNode{4};
constexpr uint64_t kMs = 1'000'000;

std::shared_ptr<const View> ViewOf(uint64_t epoch, size_t regions = 1, uint16_t leaving = 0) {
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
  Effects Taken() { return EffectTexts(session_.TakeEffects()); }
  Effects Hold(uint64_t epoch, HoldKind kind = HoldKind::kAll) {
    session_.OnHold({Epoch{epoch}, kind, {}});
    return Taken();
  }
  Effects Use(uint64_t epoch) {
    session_.OnView(ViewOf(epoch));
    return Taken();
  }
  Effects Repair(uint64_t id, RepairKind kind = RepairKind::kCopyRegion) {
    session_.OnRepair({id, {kind, ViewOf(9)}});
    return Taken();
  }
  Effects CarriedOut(uint64_t ticket) {
    session_.OnCarriedOut(ticket);
    return Taken();
  }
  Effects Ended(uint64_t id, Status status = Status::Ok()) {
    session_.OnRepairEnded(id, status);
    return Taken();
  }

  AgentSession session_;
};

class AgentSessionWithWorkersTest : public AgentSessionTest {
 protected:
  AgentSessionWithWorkersTest() {
    session_.OnJoined(kOne);
    session_.OnJoined(kTwo);
  }
};

// ---- Without workers ----

TEST_F(AgentSessionTest, WithoutWorkersEverythingIsAnsweredAtOnce) {
  EXPECT_EQ(Hold(7), Effects{"held 7"});
  EXPECT_EQ(Use(7), (Effects{"use view 7", "in force 7"}));
  session_.OnReach({3, kNode});
  EXPECT_EQ(Taken(), Effects{"reached 3"});
  EXPECT_EQ(Repair(5), Effects{"not repaired 5: no worker can do it"});
}

TEST_F(AgentSessionTest, WhoJoinsDuringAQuiesceStartsInIt) {
  Hold(7);
  session_.OnJoined(kOne);
  EXPECT_EQ(Taken(), Effects{"1 starts quiesced"});
  EXPECT_EQ(Use(7), (Effects{"use view 7", "tell 1: view 7, go on (1)"}));
  session_.OnJoined(kTwo);
  EXPECT_EQ(Taken(), Effects{});
}

// ---- Quiesce ----

TEST_F(AgentSessionWithWorkersTest, AQuiesceIsAcknowledgedWhenAllHaveCarriedItOut) {
  session_.OnHold({Epoch{7}, HoldKind::kSlots, {kNode}});
  EXPECT_EQ(Taken(), Effects{"tell 1 2: quiesce slots, evict 4 (1)"});
  EXPECT_EQ(CarriedOut(1), Effects{"held 7"});
  EXPECT_EQ(CarriedOut(1), Effects{}) << "once";
}

TEST_F(AgentSessionWithWorkersTest, AQuiesceThatIsAskedForAgainCountsFromThen) {
  EXPECT_EQ(Hold(7), Effects{"tell 1 2: quiesce all (1)"});
  session_.OnWelcome(0);
  EXPECT_EQ(Hold(7), Effects{"tell 1 2: quiesce all (2)"});
  EXPECT_EQ(CarriedOut(1), Effects{}) << "its acknowledgement may be the end of it";
  EXPECT_EQ(CarriedOut(2), Effects{"held 7"});
}

TEST_F(AgentSessionWithWorkersTest, AQuiesceThatAViewHasEndedIsNotAcknowledged) {
  Hold(7);
  EXPECT_EQ(Use(7), (Effects{"use view 7", "tell 1 2: view 7, go on (2)"}));
  EXPECT_EQ(CarriedOut(1), Effects{});
  EXPECT_EQ(CarriedOut(2), Effects{"in force 7"});
}

TEST_F(AgentSessionWithWorkersTest, AnOlderViewEndsNoQuiesce) {
  Hold(7);
  EXPECT_EQ(Use(6), (Effects{"use view 6", "tell 1 2: view 6 (2)"}));
  EXPECT_EQ(CarriedOut(1), Effects{"held 7"});
  EXPECT_EQ(CarriedOut(2), Effects{"in force 6"});
  EXPECT_EQ(Use(8), (Effects{"use view 8", "tell 1 2: view 8, go on (3)"}));
}

// ---- Views ----

TEST_F(AgentSessionWithWorkersTest, AViewThatIsKnownIsToldAgainAndNotUsedAgain) {
  EXPECT_EQ(Use(7), (Effects{"use view 7", "tell 1 2: view 7 (1)"}));
  session_.OnWelcome(0);
  EXPECT_EQ(Use(7), Effects{"tell 1 2: view 7 (2)"});
  EXPECT_EQ(CarriedOut(1), Effects{"in force 7"});
  EXPECT_EQ(CarriedOut(2), Effects{"in force 7"});
  EXPECT_EQ(Use(6), Effects{"tell 1 2: view 7 (3)"}) << "nothing goes back";
  EXPECT_EQ(CarriedOut(3), Effects{"in force 6"});
}

TEST_F(AgentSessionWithWorkersTest, NoRegionGoesAwayThatWasNotLeaving) {
  session_.OnView(ViewOf(2, 3, 1));
  Taken();
  session_.OnView(ViewOf(3, 1));
  EXPECT_EQ(Taken(), Effects{"complain"});
  session_.OnView(ViewOf(4, 2));
  EXPECT_EQ(Taken(), (Effects{"use view 4", "tell 1 2: view 4 (2)"}));
}

TEST_F(AgentSessionTest, WithoutWorkersAViewMayLackWhatIsNotInUse) {
  session_.OnView(ViewOf(2, 3));
  Taken();
  session_.OnView(ViewOf(5, 1));
  EXPECT_EQ(Taken(), (Effects{"use view 5", "in force 5"})) << "those between were missed";
}

// ---- Reach ----

TEST_F(AgentSessionWithWorkersTest, ANodeIsReachedWhenAllReachIt) {
  session_.OnReach({31, kNode});
  EXPECT_EQ(Taken(), Effects{"tell 1 2: reach 4 (1)"});
  // Whatever else is asked meanwhile.
  EXPECT_EQ(Hold(7), Effects{"tell 1 2: quiesce all (2)"});
  EXPECT_EQ(CarriedOut(2), Effects{"held 7"});
  EXPECT_EQ(CarriedOut(1), Effects{"reached 31"});
}

TEST_F(AgentSessionTest, NodesThatAreNotReachedAreToldAndToldAgainOnANewStream) {
  session_.OnProbed(kNode, false, 5 * kMs);
  EXPECT_EQ(Taken(), Effects{"unreached: 4 by 0 for 0 ms"});
  session_.OnJoined(kOne);
  session_.OnReachOf(kOne, NodeId{5}, false, 7 * kMs);
  EXPECT_EQ(Taken(), Effects{"unreached: 4 by 0 for 2 ms, 5 by 1 for 0 ms"});
  session_.OnReachOf(kOne, NodeId{5}, false, 8 * kMs);
  EXPECT_EQ(Taken(), Effects{}) << "nothing has changed";
  session_.OnWelcome(9 * kMs);
  EXPECT_EQ(Taken(), Effects{"unreached: 4 by 0 for 4 ms, 5 by 1 for 2 ms"});
  session_.OnLeft(kOne, 9 * kMs);
  EXPECT_EQ(Taken(), Effects{"unreached: 4 by 0 for 4 ms"}) << "who noticed is gone";
  session_.OnProbed(kNode, true, 9 * kMs);
  EXPECT_EQ(Taken(), Effects{"unreached:"});
  session_.OnWelcome(9 * kMs);
  EXPECT_EQ(Taken(), Effects{});
}

TEST_F(AgentSessionTest, NodesThatGoOutAreToBeProbed) {
  session_.OnJoined(kOne);
  session_.OnReachOf(kOne, kNode, false, 0);
  EXPECT_TRUE(session_.unreached().ToProbe().empty());
  View view = *ViewOf(3);
  view.nodes[kNode.value].out = true;
  session_.OnView(std::make_shared<const View>(view));
  EXPECT_EQ(session_.unreached().ToProbe(), std::vector<NodeId>{kNode});
}

// ---- Repairs ----

TEST_F(AgentSessionWithWorkersTest, OneWorkerRepairsAndTheMasterHearsTheEnd) {
  EXPECT_EQ(Repair(5), Effects{"1 repairs 5"});
  EXPECT_EQ(Ended(5), Effects{"repaired 5"});
  EXPECT_EQ(Repair(6), Effects{"1 repairs 6"});
  EXPECT_EQ(Ended(6, Status(StatusCode::kUnavailable, "no channel")),
            Effects{"not repaired 6: no channel"});
}

TEST_F(AgentSessionWithWorkersTest, ARepairThatIsAskedForAgainIsDoneOnce) {
  EXPECT_EQ(Repair(5), Effects{"1 repairs 5"});
  session_.OnWelcome(0);
  EXPECT_EQ(Repair(5), Effects{});
  EXPECT_EQ(Ended(5), Effects{"repaired 5"});
  session_.OnWelcome(0);
  EXPECT_EQ(Repair(5), Effects{"repaired 5"}) << "the answer may have been lost with the stream";
}

TEST_F(AgentSessionWithWorkersTest, TheEndOfRegistersIsEachWorkersTurn) {
  EXPECT_EQ(Repair(5, RepairKind::kEndRegisters), Effects{"1 repairs 5"});
  Ended(5);
  EXPECT_EQ(Repair(6, RepairKind::kEndRegisters), Effects{"2 repairs 6"});
  Ended(6);
  EXPECT_EQ(Repair(7, RepairKind::kScrubRegisters), Effects{"1 repairs 7"});
  Ended(7);
  EXPECT_EQ(Repair(8, RepairKind::kEndRegisters), Effects{"1 repairs 8"});
  session_.OnLeft(kOne, 0);
  Ended(8);
  EXPECT_EQ(Repair(9, RepairKind::kEndRegisters), Effects{"2 repairs 9"});
}

TEST_F(AgentSessionWithWorkersTest, AnOrderThatMakesNoSenseIsNotDone) {
  session_.OnRepair({5, {RepairKind::kCopyRegion, nullptr}});
  EXPECT_EQ(Taken(), Effects{"not repaired 5: no worker can do it"});
}

TEST_F(AgentSessionWithWorkersTest, AViewWaitsForARepairForWhichOthersQuiesce) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), Effects{});
  EXPECT_EQ(Use(8), Effects{}) << "the newest counts";
  EXPECT_EQ(session_.view()->epoch.value, 0U);
  EXPECT_EQ(Ended(5), (Effects{"repaired 5", "use view 8", "tell 1 2: view 8, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, AViewDoesNotWaitForAnotherRepair) {
  Repair(5, RepairKind::kTakeOverBlocks);
  EXPECT_EQ(Use(7), (Effects{"use view 7", "tell 1 2: view 7 (1)"}));
  EXPECT_EQ(Ended(5), Effects{"repaired 5"});
}

TEST_F(AgentSessionWithWorkersTest, AViewWaitsForEveryRepairForWhichOthersQuiesce) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), Effects{});
  // The master has given up the first one; it still runs here.
  EXPECT_EQ(Repair(6, RepairKind::kScrubRegisters), Effects{"1 repairs 6"});
  EXPECT_EQ(Ended(6), Effects{"repaired 6"});
  EXPECT_EQ(Use(8), Effects{});
  EXPECT_EQ(Ended(5), (Effects{"use view 8", "tell 1 2: view 8, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, ANewRepairDropsNoViewThatWaits) {
  Hold(7);
  CarriedOut(1);
  Repair(5);
  EXPECT_EQ(Use(7), Effects{});
  Repair(6);
  EXPECT_EQ(Ended(5), Effects{});
  EXPECT_EQ(Ended(6), (Effects{"repaired 6", "use view 7", "tell 1 2: view 7, go on (2)"}));
}

TEST_F(AgentSessionWithWorkersTest, TheEndOfAnOlderRepairIsNotTold) {
  Repair(5);
  Repair(6);
  EXPECT_EQ(Ended(5), Effects{});
  EXPECT_EQ(Ended(6), Effects{"repaired 6"});
}

// ---- Workers that go ----

TEST_F(AgentSessionWithWorkersTest, WhoHasLeftIsToldNothing) {
  session_.OnLeft(kOne, 0);
  EXPECT_EQ(Hold(7), Effects{"tell 2: quiesce all (1)"});
  session_.OnLeft(kTwo, 0);
  EXPECT_EQ(CarriedOut(1), Effects{"held 7"});
  EXPECT_EQ(Use(7), (Effects{"use view 7", "in force 7"}));
}

}  // namespace
}  // namespace onetrip
