// NodeSession: its place, serving, refusals, fences and views, stream after stream.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_core/cluster/node_session.h"

namespace onetrip {
namespace {

constexpr NodeId kNode{3};
constexpr Status kRefused(StatusCode::kInvalidArgument, "refused");
constexpr Status kBroke(StatusCode::kUnknownOutcome, "the stream broke");

NodeOffer Offer() {
  NodeOffer offer;
  offer.bytes = 1 << 24;
  offer.incarnation = 17;
  offer.damage = "a checksum is wrong";
  offer.accepted = true;
  offer.accepts_old = true;
  return offer;
}

NodePlace PlaceAt(uint64_t epoch, NodeId node = kNode) {
  NodePlace place;
  place.cluster = 0xc0ffee;
  place.node = node;
  place.view.epoch = Epoch{epoch};
  return place;
}

std::shared_ptr<const View> ViewAt(uint64_t epoch) {
  auto view = std::make_shared<View>();
  view->epoch = Epoch{epoch};
  return view;
}

class NodeSessionTest : public testing::Test {
 protected:
  // The only effect, which is of this kind.
  template <typename Effect>
  Effect Only() {
    std::vector<NodeEffect> effects = session_.TakeEffects();
    EXPECT_EQ(effects.size(), 1U);
    if (effects.size() != 1 || !std::holds_alternative<Effect>(effects[0])) {
      ADD_FAILURE() << "another effect";
      return {};
    }
    return std::get<Effect>(std::move(effects[0]));
  }
  void ExpectNothing() { EXPECT_TRUE(session_.TakeEffects().empty()); }

  // Its first place, and it serves.
  void BeServing() {
    session_.OnWelcome({});
    (void)Only<node_effect::AskForPlace>();
    session_.OnPlace(PlaceAt(5));
    (void)Only<node_effect::TakePlace>();
    session_.OnServes(address_);
    (void)Only<node_effect::AskToServe>();
    session_.OnServeAnswer(Status::Ok(), "", /*attending=*/true);
    (void)Only<node_effect::Serve>();
  }

  const NodeAddress address_{
      .tcp_host = "10.0.0.3", .tcp_port = 7003, .shm_path = {}, .host_id = {}};
  NodeSession session_{Offer()};
};

TEST_F(NodeSessionTest, TakesItsPlaceAndServesOnceItListens) {
  EXPECT_EQ(session_.epoch(), 0U);
  session_.OnWelcome({.mark = 1, .told = 2, .epoch = 3, .next_worker = 4});
  const JoinNodeRequest request = Only<node_effect::AskForPlace>().request;
  EXPECT_EQ(request.bytes, 1U << 24);
  EXPECT_EQ(request.incarnation, 17U);
  EXPECT_FALSE(request.adopted);
  EXPECT_EQ(request.damage, "a checksum is wrong");
  EXPECT_TRUE(request.accepted);
  EXPECT_TRUE(request.accepts_old);
  EXPECT_EQ(request.mark, 1U);
  EXPECT_EQ(request.told, 2U);
  EXPECT_EQ(request.epoch, 3U);
  EXPECT_EQ(request.next_worker, 4U);
  EXPECT_FALSE(session_.in_place());
  session_.OnPlace(PlaceAt(5));
  EXPECT_EQ(Only<node_effect::TakePlace>().place.node, kNode);
  EXPECT_TRUE(session_.in_place());
  EXPECT_EQ(session_.epoch(), 5U);
  session_.OnServes(address_);
  EXPECT_EQ(Only<node_effect::AskToServe>().address, address_);
  session_.OnServeAnswer(Status::Ok(), "", /*attending=*/true);
  (void)Only<node_effect::Serve>();
}

TEST_F(NodeSessionTest, OffersAdoptedMemoryAsWhoseItIs) {
  NodeOffer offer;
  offer.adopted = true;
  offer.owner_cluster = 9;
  offer.owner_node = NodeId{2};
  NodeSession session(offer);
  session.OnWelcome({});
  const std::vector<NodeEffect> effects = session.TakeEffects();
  ASSERT_EQ(effects.size(), 1U);
  const JoinNodeRequest& request = std::get<node_effect::AskForPlace>(effects[0]).request;
  EXPECT_TRUE(request.adopted);
  EXPECT_EQ(request.owner_cluster, 9U);
  EXPECT_EQ(request.owner_node, 2U);
}

TEST_F(NodeSessionTest, OnAnotherStreamItRefusesWhomTheMasterHasExpelledBeforeItServes) {
  BeServing();
  session_.OnWelcome({});
  const JoinNodeRequest request = Only<node_effect::AskForPlace>().request;
  EXPECT_TRUE(request.adopted) << "the memory is that place's";
  EXPECT_EQ(request.owner_cluster, 0xc0ffeeU);
  EXPECT_EQ(request.owner_node, kNode.value);
  EXPECT_EQ(request.damage, "") << "what was there is given up";
  EXPECT_FALSE(request.accepted);
  EXPECT_FALSE(request.accepts_old);
  NodePlace place = PlaceAt(8);
  place.expelled = {WorkerId{11}};
  session_.OnPlace(place);
  const auto again = Only<node_effect::TakePlaceAgain>();
  EXPECT_EQ(again.expelled, place.expelled);
  EXPECT_EQ(again.view->epoch, Epoch{8});
  EXPECT_EQ(session_.epoch(), 8U);
  session_.OnTakenUp();
  EXPECT_EQ(Only<node_effect::AskToServe>().address, address_);
}

TEST_F(NodeSessionTest, ThatItServesIsNotSaidOnAStreamOnWhichItHasNoPlace) {
  BeServing();
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(8));
  (void)Only<node_effect::TakePlaceAgain>();
  // That stream breaks before the place has been taken up.
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnTakenUp();
  ExpectNothing();
}

TEST_F(NodeSessionTest, AProcessThatDoesNotListenYetServesLater) {
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(5));
  (void)Only<node_effect::TakePlace>();
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnServes(address_);
  ExpectNothing();
  session_.OnPlace(PlaceAt(6));
  (void)Only<node_effect::TakePlaceAgain>();
  session_.OnTakenUp();
  EXPECT_EQ(Only<node_effect::AskToServe>().address, address_);
}

TEST_F(NodeSessionTest, AQuestionWhoseStreamBrokeIsPutOnTheNextOne) {
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnNoPlace(kBroke, "it broke", /*attending=*/false);
  ExpectNothing();
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(5));
  (void)Only<node_effect::TakePlace>();
  session_.OnServes(address_);
  (void)Only<node_effect::AskToServe>();
  session_.OnServeAnswer(kBroke, "it broke", /*attending=*/false);
  ExpectNothing();
}

TEST_F(NodeSessionTest, AskedInTimeAndNotAnsweredItAsksToServeAgain) {
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(5));
  (void)Only<node_effect::TakePlace>();
  session_.OnServes(address_);
  (void)Only<node_effect::AskToServe>();
  session_.OnServeAnswer(kBroke, "no answer in time", /*attending=*/true);
  (void)Only<node_effect::AskToServe>();
}

TEST_F(NodeSessionTest, RefusedBeforeItHasAPlaceItGivesUp) {
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnNoPlace(kRefused, "no room", /*attending=*/true);
  const auto end = Only<node_effect::GiveUp>();
  EXPECT_EQ(end.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(end.reason, "no room");
}

TEST_F(NodeSessionTest, RefusedBeforeItServesItGivesUp) {
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(5));
  (void)Only<node_effect::TakePlace>();
  session_.OnServes(address_);
  (void)Only<node_effect::AskToServe>();
  session_.OnServeAnswer(kRefused, "no such address", /*attending=*/true);
  EXPECT_EQ(Only<node_effect::GiveUp>().reason, "no such address");
}

// Memory that is given up does not come back; a master that is wrong may mend.
TEST_F(NodeSessionTest, RefusedItsPlaceItServesOnAndAsksAgainAndSaysSoOnce) {
  BeServing();
  const auto effects_of_refusal = [&](const std::string& why) {
    session_.OnWelcome({});
    (void)Only<node_effect::AskForPlace>();
    session_.OnNoPlace(kRefused, why, /*attending=*/true);
    return session_.TakeEffects();
  };
  std::vector<NodeEffect> effects = effects_of_refusal("an older copy");
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_NE(std::get<node_effect::Complain>(effects[0]).text.find("an older copy"),
            std::string::npos);
  EXPECT_TRUE(std::holds_alternative<node_effect::OpenAnother>(effects[1]));
  effects = effects_of_refusal("an older copy");
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<node_effect::OpenAnother>(effects[0]));
  EXPECT_EQ(effects_of_refusal("another reason").size(), 2U);
  // With a place all is well, and the next refusal is told.
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(9));
  (void)Only<node_effect::TakePlaceAgain>();
  session_.OnTakenUp();
  (void)Only<node_effect::AskToServe>();
  session_.OnServeAnswer(kRefused, "another reason", /*attending=*/true);
  EXPECT_EQ(session_.TakeEffects().size(), 2U);
}

TEST_F(NodeSessionTest, AnotherNumberIsRefused) {
  BeServing();
  session_.OnWelcome({});
  (void)Only<node_effect::AskForPlace>();
  session_.OnPlace(PlaceAt(9, NodeId{4}));
  EXPECT_EQ(session_.TakeEffects().size(), 2U);
  EXPECT_FALSE(session_.in_place());
  EXPECT_EQ(session_.epoch(), 5U);
}

TEST_F(NodeSessionTest, FencesAreDoneInTheirOrderAndAnswered) {
  BeServing();
  session_.OnFence({.id = 1, .epoch = Epoch{5}, .workers = {WorkerId{11}}});
  session_.OnView(ViewAt(6));
  EXPECT_EQ(session_.epoch(), 6U);
  const std::vector<NodeEffect> effects = session_.TakeEffects();
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_EQ(std::get<node_effect::Fence>(effects[0]).fence.workers,
            std::vector<WorkerId>{WorkerId{11}});
  EXPECT_EQ(std::get<node_effect::UseView>(effects[1]).view->epoch, Epoch{6});
  session_.OnFenced(1, kRefused, "a channel hangs");
  FencedMessage fenced = Only<FencedMessage>();
  EXPECT_EQ(fenced.id, 1U);
  EXPECT_FALSE(fenced.done);
  EXPECT_EQ(fenced.reason, "a channel hangs");
  session_.OnFenced(1, Status::Ok(), "");
  EXPECT_TRUE(Only<FencedMessage>().done);
}

}  // namespace
}  // namespace onetrip
