#include "client_core/cluster/node_session.h"

#include <utility>

namespace onetrip {

// ---- The place ----

void NodeSession::OnWelcome(const NodeAge& age) {
  in_place_ = false;
  JoinNodeRequest join;
  join.bytes = offer_.bytes;
  join.incarnation = offer_.incarnation;
  join.mark = age.mark;
  join.told = age.told;
  join.epoch = age.epoch;
  join.next_worker = age.next_worker;
  if (has_place()) {
    // The memory is that place's, which is given when no process counts on what was there.
    join.adopted = true;
    join.owner_cluster = cluster_;
    join.owner_node = node_->value;
  } else {
    join.adopted = offer_.adopted;
    join.owner_cluster = offer_.owner_cluster;
    join.owner_node = offer_.owner_node.value;
    join.damage = offer_.damage;
    join.accepted = offer_.accepted;
    join.accepts_old = offer_.accepts_old;
  }
  effects_.emplace_back(node_effect::AskForPlace{std::move(join)});
}

void NodeSession::OnPlace(NodePlace place) {
  if (has_place() && place.node != *node_) {
    return AskAgain("the master has given this node another number");
  }
  in_place_ = true;
  told_.clear();
  epoch_ = place.view.epoch.value;
  if (!has_place()) {
    node_ = place.node;
    cluster_ = place.cluster;
    effects_.emplace_back(node_effect::TakePlace{std::move(place)});
    return;
  }
  // The node refuses whom the master has expelled meanwhile before agents hear of it again.
  effects_.emplace_back(node_effect::TakePlaceAgain{
      std::make_shared<const View>(std::move(place.view)), std::move(place.expelled)});
}

void NodeSession::OnNoPlace(Status status, const std::string& why, bool attending) {
  if (!attending) return;
  if (has_place()) return AskAgain(why);
  effects_.emplace_back(node_effect::GiveUp{status, why});
}

void NodeSession::AskAgain(const std::string& why) {
  if (std::exchange(told_, why) != why) {
    effects_.emplace_back(
        node_effect::Complain{"the master refuses this node its place: " + why +
                              "; the node keeps its memory, serves as before and asks again"});
  }
  effects_.emplace_back(node_effect::OpenAnother{"it was refused its place"});
}

// ---- Serving ----

void NodeSession::OnServes(const NodeAddress& address) {
  address_ = address;
  AskToServe();
}

void NodeSession::AskToServe() {
  if (!in_place_ || !address_.has_value()) return;
  effects_.emplace_back(node_effect::AskToServe{*address_});
}

void NodeSession::OnServeAnswer(Status status, const std::string& why, bool attending) {
  if (!status.ok() && !attending) return;
  if (status.code() == StatusCode::kUnknownOutcome) return AskToServe();
  if (status.ok()) {
    serving_ = true;
    effects_.emplace_back(node_effect::Serve{});
  } else if (serving_) {
    AskAgain(why);
  } else {
    effects_.emplace_back(node_effect::GiveUp{status, why});
  }
}

// ---- Fences and views ----

void NodeSession::OnFence(FenceMessage fence) {
  effects_.emplace_back(node_effect::Fence{std::move(fence)});
}

void NodeSession::OnFenced(uint64_t id, Status status, const std::string& reason) {
  effects_.emplace_back(FencedMessage{id, status.ok(), reason});
}

void NodeSession::OnView(std::shared_ptr<const View> view) {
  epoch_ = view->epoch.value;
  effects_.emplace_back(node_effect::UseView{std::move(view)});
}

}  // namespace onetrip
