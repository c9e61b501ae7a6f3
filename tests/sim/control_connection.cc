#include "tests/sim/control_connection.h"

#include <algorithm>

namespace onetrip {

template <typename Message>
void ControlConnection::Put(Way<Message>& way, void (*arrive)(void*), Message message,
                            uint64_t most_ns) {
  const uint64_t least_ns = std::min(settings_.latency_min_ns, most_ns);
  const uint64_t arrival_ns = std::max(
      way.last_arrival_ns, world_.NowNs() + least_ns + world_.rng().Below(most_ns - least_ns + 1));
  way.last_arrival_ns = arrival_ns;
  way.items.push_back({arrival_ns, std::move(message)});
  world_.At(arrival_ns, arrive, this);
}

template <typename Message>
void ControlConnection::Cut(Way<Message>& way) {
  if (way.items.empty()) return;
  way.items.resize(world_.rng().Below(way.items.size() + 1));
  way.last_arrival_ns = way.items.empty() ? 0 : way.items.back().arrival_ns;
}

void ControlConnection::SendToMaster(FromMemberMessage message) {
  if (member_ == nullptr || to_master_.ended) return;
  Put(to_master_, ArriveAtMaster, std::move(message), settings_.latency_max_ns);
}

void ControlConnection::SendToMember(FromMasterMessage message) {
  if (master_ == nullptr || to_member_.ended) return;
  Put(to_member_, ArriveAtMember, std::move(message), settings_.latency_max_ns);
}

void ControlConnection::CloseMember(const std::string& reason, bool has_ended) {
  SendToMaster(ConnectionEnd{reason, has_ended});
  to_master_.ended = true;
  member_ = nullptr;
}

void ControlConnection::CloseMaster(const std::string& reason) {
  SendToMember(ConnectionEnd{reason, false});
  to_member_.ended = true;
  master_ = nullptr;
}

void ControlConnection::KillMaster() {
  if (master_ == nullptr) return;
  if (!to_member_.ended) Cut(to_member_);
  CloseMaster("the master is gone");
}

void ControlConnection::Break() {
  if (!std::exchange(to_master_.ended, true)) {
    Cut(to_master_);
    Put<FromMemberMessage>(to_master_, ArriveAtMaster, ConnectionEnd{"the connection broke", false},
                           settings_.notice_ns_max);
  }
  if (!std::exchange(to_member_.ended, true)) {
    Cut(to_member_);
    Put<FromMasterMessage>(to_member_, ArriveAtMember, ConnectionEnd{"the connection broke", false},
                           settings_.notice_ns_max);
  }
}

void ControlConnection::ArriveAtMaster(void* arg) {
  auto& connection = *static_cast<ControlConnection*>(arg);
  auto& items = connection.to_master_.items;
  // A message that was cut off leaves its event behind.
  while (!items.empty() && items.front().arrival_ns <= connection.world_.NowNs()) {
    FromMemberMessage message = std::move(items.front().message);
    items.pop_front();
    MasterEnd* const end = connection.master_;
    if (end != nullptr) end->Heard(connection, std::move(message));
  }
}

void ControlConnection::ArriveAtMember(void* arg) {
  auto& connection = *static_cast<ControlConnection*>(arg);
  auto& items = connection.to_member_.items;
  while (!items.empty() && items.front().arrival_ns <= connection.world_.NowNs()) {
    FromMasterMessage message = std::move(items.front().message);
    items.pop_front();
    MemberEnd* const end = connection.member_;
    if (end != nullptr) end->Heard(connection, std::move(message));
  }
}

}  // namespace onetrip
