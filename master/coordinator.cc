// Lives, leases and requests of members.
#include "master/coordinator.h"

#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/placement.h"

namespace onetrip {
namespace {

constexpr uint64_t kUsPerMs = 1000;
// Of which it is remembered how far they came. A member would have to be away for as many starts.
constexpr size_t kLivesMax = 1000;

Status Refuse(StatusCode code, std::string* reason, std::string text) {
  *reason = std::move(text);
  return Status(code, "the master cannot start");
}

// What is wrong with `durable`; empty: nothing.
std::string WhatMakesNoSense(const DurableState& durable) {
  const ClusterRecord& cluster = durable.cluster;
  if (cluster.cluster == 0) return "a cluster without a name";
  if (cluster.replicas < 1 || cluster.replicas > kMaxReplicas || cluster.nodes < cluster.replicas) {
    return "its number of replicas or nodes";
  }
  if (cluster.epoch == 0) {
    const bool early = !durable.nodes.empty() || !durable.regions.empty() || !durable.seats.empty();
    return early ? "nodes, regions or workers without a map" : "";
  }
  if (durable.nodes.size() < cluster.nodes || durable.nodes.size() > UINT16_MAX ||
      durable.regions.empty()) {
    return "its cluster map";
  }
  std::set<std::pair<NodeId, uint64_t>> places;
  for (const RegionPlacement& region : durable.regions) {
    // Fewer than a majority where the loss of the others was accepted.
    if (region.missing >= cluster.replicas) {
      return "the number of a region's replicas";
    }
    for (int i = 0; i < cluster.replicas; ++i) {
      const uint16_t node = region.nodes[i].value;
      if (node >= durable.nodes.size() || region.base[i] % kRegionBytes != 0 ||
          durable.nodes[node].bytes < kRegionBytes ||
          region.base[i] > durable.nodes[node].bytes - kRegionBytes) {
        return "the place of a region";
      }
      if (!places.emplace(region.nodes[i], region.base[i]).second)
        return "two regions in one place";
      const auto* const end = region.nodes.begin() + i;
      if (std::find(region.nodes.begin(), end, region.nodes[i]) != end) {
        return "a region twice on one node";
      }
      if (durable.nodes[node].out && i < cluster.replicas - region.missing) {
        return "a region on a node that is out";
      }
    }
  }
  if (cluster.leaving != 0 && cluster.leaving >= durable.regions.size()) {
    return "the regions that are given up";
  }
  for (const auto& [index, seat] : durable.seats) {
    if (index >= cluster.worker_index_end || index >= kMaxWorkers ||
        seat.worker.value >= cluster.next_worker || !durable.agents.contains(seat.member)) {
      return "the seat of worker " + std::to_string(seat.worker.value);
    }
  }
  if (!durable.agents.empty() && durable.agents.rbegin()->first >= cluster.next_member) {
    return "an agent whose number was never given out";
  }
  return "";
}

View DurableView(const DurableState& durable) {
  View view;
  view.cluster = durable.cluster.cluster;
  view.epoch = Epoch{durable.cluster.epoch};
  view.replicas = durable.cluster.replicas;
  view.regions = durable.regions;
  view.keyspaces = durable.cluster.keyspaces;
  view.worker_index_end = durable.cluster.worker_index_end;
  view.records_only = durable.cluster.records_only;
  view.leaving = durable.cluster.leaving;
  view.directory = durable.cluster.directory;
  if (durable.cluster.epoch == 0) return view;
  // All that hold a region, and those between.
  view.node_count = durable.cluster.nodes;
  for (const RegionPlacement& region : durable.regions) {
    for (int i = 0; i < view.replicas; ++i) {
      view.node_count =
          std::max<uint16_t>(view.node_count, static_cast<uint16_t>(region.nodes[i].value + 1));
    }
  }
  // ... and those that are to hold some, or held some.
  for (uint16_t id = view.node_count; id < static_cast<uint16_t>(durable.nodes.size()); ++id) {
    const NodeRecord& node = durable.nodes[id];
    if (!node.out || node.wish != NodeWish::kNone) view.node_count = static_cast<uint16_t>(id + 1);
  }
  for (uint16_t id = 0; id < view.node_count; ++id) {
    const NodeRecord& node = durable.nodes[id];
    view.nodes.push_back({node.incarnation, node.address, node.out});
  }
  return view;
}

}  // namespace

Result<Coordinator> Coordinator::Create(const CoordinatorOptions& options,
                                        const DurableState& durable, uint64_t fresh_cluster,
                                        uint64_t fresh_life, uint64_t now_us, uint64_t unix_us,
                                        std::string* reason) {
  if (options.replicas < 1 || options.replicas > kMaxReplicas || options.nodes < options.replicas ||
      options.nodes > options.nodes_max) {
    return Refuse(StatusCode::kInvalidArgument, reason,
                  "there must be a memory node for every replica: " +
                      std::to_string(options.replicas) + " replicas (at most " +
                      std::to_string(kMaxReplicas) + ") on " + std::to_string(options.nodes) +
                      " nodes (at most " + std::to_string(options.nodes_max) + ")");
  }
  Coordinator made;
  made.options_ = options;
  made.record_ = durable.cluster;
  const bool is_new = durable.cluster.cluster == 0 && durable.cluster.epoch == 0 &&
                      durable.nodes.empty() && durable.regions.empty() && durable.seats.empty() &&
                      durable.agents.empty();
  if (!is_new) {
    const std::string nonsense = WhatMakesNoSense(durable);
    if (!nonsense.empty()) {
      return Refuse(StatusCode::kCorrupt, reason,
                    "the stored state makes no sense: " + nonsense + "; restore a copy of it");
    }
  }
  if (made.record_.cluster == 0) made.record_.cluster = fresh_cluster;
  if (made.record_.epoch == 0) {
    made.record_.replicas = options.replicas;
    made.record_.nodes = options.nodes;
  } else if (made.record_.replicas != options.replicas || made.record_.nodes != options.nodes) {
    made.Log(LogLevel::kWarning, "the cluster keeps its " + std::to_string(made.record_.replicas) +
                                     " replicas on " + std::to_string(made.record_.nodes) +
                                     " memory nodes, whatever the options say");
  }
  std::vector<Membership> seats;
  for (const auto& [index, seat] : durable.seats) {
    seats.push_back({seat.worker, WorkerIndex{index}});
  }
  View view = DurableView(durable);
  view.cluster = made.record_.cluster;
  view.replicas = made.record_.replicas;
  made.membership_ = MembershipState::Restore(std::move(view), seats, made.record_.next_worker,
                                              made.record_.next_keyspace);
  made.seats_ = durable.seats;
  made.former_ = durable.former;
  made.former_repairer_ = durable.cluster.repairer;
  made.take_over_due_ = made.record_.epoch != 0;
  made.CountMissing();
  for (const NodeRecord& record : durable.nodes) {
    Node& node = made.nodes_.emplace_back();
    node.record = record;
    node.lost_at_us = now_us + (options.lease_ms + options.grace_ms) * kUsPerMs;
  }
  for (const auto& [id, info] : durable.agents) {
    Member& member = made.members_[id];
    member.id = id;
    member.info = info;
    member.standing = Standing::kAway;
    member.lease_end_us = now_us + (options.lease_ms + options.grace_ms) * kUsPerMs;
  }
  for (const auto& [index, seat] : durable.seats) {
    Member& member = made.members_[seat.member];
    member.seats.insert(index);
    if (seat.expelled) member.standing = Standing::kExpelled;
  }
  made.StartLife(durable, fresh_life);
  // Every life of a master starts with a view of its own: it ends the holds of the life before.
  if (made.has_map() && !Planted(Bug::kRestartKeepsEpoch)) made.membership_.NextEpoch();
  made.view_ = std::make_shared<const View>(made.membership_.view());
  made.placement_epoch_ = made.view_->epoch.value;
  for (Node& node : made.nodes_) node.out_epoch = made.placement_epoch_;
  // An answer to an earlier life is none to this one.
  made.next_fence_ = made.next_repair_ = (made.placement_epoch_ << 24) + 1;
  made.StartTime(now_us, unix_us, durable.cluster.cluster == 0);
  made.last_tick_us_ = now_us;
  made.SaveCluster();
  return made;
}

// What the life before has told comes to an end here: a copy of the state from before that is known
// by it, however often it is started.
void Coordinator::StartLife(const DurableState& durable, uint64_t fresh_life) {
  auto lives = durable.lives;
  if (durable.cluster.cluster != 0) {
    lives[durable.cluster.life] = durable.cluster.epoch;
    effects_.change.lives[durable.cluster.life] = durable.cluster.epoch;
  }
  while (lives.size() > kLivesMax) {
    // Members of one that is not listed are judged by the entry of life 0.
    const auto oldest =
        std::min_element(std::next(lives.begin()), lives.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    effects_.change.lives[oldest->first] = std::nullopt;
    lives.erase(oldest);
  }
  lives_ = std::make_shared<const std::map<uint64_t, uint64_t>>(std::move(lives));
  record_.life = fresh_life;
}

uint64_t Coordinator::TickMs() const {
  const uint64_t tick_ms = std::clamp<uint64_t>(options_.lease_ms / 6, 10, 200);
  // Holds for copies are short, and so are the pauses between them and the time that a member has
  // to come back; what else a copy or a move waits for is told.
  const bool is_short = hold_.has_value()
                            ? IsOfRegion(hold_->work)
                            : last_tick_us_ < std::max(copy_not_before_us_, away_until_us_);
  return is_short ? std::min(tick_ms, std::max<uint64_t>(options_.copy_pause_ms, 10)) : tick_ms;
}

void Coordinator::Send(StreamId stream, MasterMessage message) {
  effects_.sends.push_back({stream, std::move(message)});
}

void Coordinator::Reply(StreamId stream, uint64_t request, StatusCode code, std::string reason) {
  Send(stream, ReplyMessage{request, code, std::move(reason), {}});
}

void Coordinator::Close(StreamId stream, std::string reason) {
  streams_.erase(stream);
  effects_.closes.push_back({stream, std::move(reason)});
}

void Coordinator::Log(LogLevel level, std::string text) {
  effects_.logs.push_back({level, std::move(text)});
}

void Coordinator::SaveCluster() {
  const View& view = membership_.view();
  record_.epoch = view.epoch.value;
  record_.keyspaces = view.keyspaces;
  record_.worker_index_end = view.worker_index_end;
  record_.next_worker = membership_.next_worker();
  record_.next_keyspace = membership_.next_keyspace();
  effects_.change.cluster = record_;
}

Coordinator::Member* Coordinator::MemberOn(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return nullptr;
  const auto member = members_.find(found->second);
  return member == members_.end() ? nullptr : &member->second;
}

void Coordinator::FreeUnclaimedSeats(const Member& member) {
  for (const Due& due : due_) {
    const auto* joined = std::get_if<WorkerJoined>(&due.reply.body);
    if (due.member != member.id || joined == nullptr) continue;
    Change change;
    change.kind = ChangeKind::kLeave;
    change.member = member.id;
    change.leave = {joined->worker, joined->index.value};
    EnqueueOwn(change);
  }
}

void Coordinator::DropRequests(const Member& member) {
  std::erase_if(queue_, [&](const Change& change) {
    return change.member == member.id && change.stream != 0;
  });
  std::erase_if(due_, [&](const Due& due) { return due.member == member.id; });
}

void Coordinator::OnMessage(uint64_t now_us, StreamId stream, const MemberMessage& message) {
  if (!streams_.contains(stream)) return;
  Member* const member = MemberOn(stream);
  if (const auto* request = std::get_if<RequestMessage>(&message)) {
    OnRequest(member, now_us, stream, *request);
  } else if (member == nullptr) {
    return;
  } else if (const auto* renew = std::get_if<RenewMessage>(&message)) {
    OnRenew(*member, now_us, *renew);
    return;
  } else if (const auto* held = std::get_if<ViewHeldMessage>(&message)) {
    if (hold_.has_value() && held->epoch.value == hold_->epoch) member->held = hold_->epoch;
  } else if (const auto* in_force = std::get_if<ViewInForceMessage>(&message)) {
    OnViewInForce(*member, now_us, in_force->epoch);
  } else if (const auto* fenced = std::get_if<FencedMessage>(&message)) {
    OnFenced(*member, now_us, *fenced);
  } else if (const auto* repaired = std::get_if<RepairedMessage>(&message)) {
    OnRepaired(*member, now_us, *repaired);
  } else if (const auto* reached = std::get_if<ReachedMessage>(&message)) {
    OnReached(*member, *reached);
  } else if (const auto* unreached = std::get_if<UnreachedMessage>(&message)) {
    OnUnreached(*member, now_us, *unreached);
  }
  Pump(now_us);
}

void Coordinator::OnRenew(Member& member, uint64_t now_us, const RenewMessage& message) {
  member.lease_end_us = now_us + options_.lease_ms * kUsPerMs;
  member.renewed_us = now_us;
  member.report = message.report;
  member.report.is_told = true;
  if (member.node.has_value()) {
    Node& node = nodes_[*member.node];
    node.report = member.report;
    // Stored with the next tick that stores the time.
    if (node.serving) node.mark = std::max(node.mark, message.report.mark);
  }
  // A time that the store does not cover, after this process stood still, must not be told; the
  // next tick makes it durable.
  if (message.quiet || TimeUs(now_us) > record_.time_us) return;
  RenewedMessage renewed{message.sequence, TimeUs(now_us)};
  if (member.node.has_value()) renewed.mark = nodes_[*member.node].record.mark;
  Send(member.stream, renewed);
}

void Coordinator::OnRequest(Member* member, uint64_t now_us, StreamId stream,
                            const RequestMessage& message) {
  if (std::holds_alternative<StatusRequest>(message.body)) {
    Send(stream, ReplyMessage{message.id, StatusCode::kOk, {}, Status(now_us)});
    return;
  }
  if (std::holds_alternative<LeaveRequest>(message.body)) {
    Reply(stream, message.id, StatusCode::kOk);
    if (member != nullptr) {
      OnLeave(*member, now_us);
    } else {
      Close(stream, "");
    }
    return;
  }
  if (member == nullptr && std::holds_alternative<MoveRegionsRequest>(message.body)) {
    return OnMoveRegions(stream, message.id, std::get<MoveRegionsRequest>(message.body));
  }
  if (member == nullptr && std::holds_alternative<AcceptLossRequest>(message.body)) {
    return OnAcceptLoss(stream, now_us, message.id, std::get<AcceptLossRequest>(message.body));
  }
  const bool agent = member != nullptr && member->kind == MemberKind::kAgent;
  const bool node = member != nullptr && member->kind == MemberKind::kMemoryNode;
  Change change;
  change.stream = stream;
  change.request = message.id;
  if (node && std::holds_alternative<JoinNodeRequest>(message.body)) {
    OnJoinNode(*member, now_us, message.id, std::get<JoinNodeRequest>(message.body));
  } else if (node && member->node.has_value() &&
             std::holds_alternative<NoteMarkRequest>(message.body)) {
    SaveMark(*member->node, std::get<NoteMarkRequest>(message.body).mark);
    Reply(stream, message.id, StatusCode::kOk);
  } else if (node && std::holds_alternative<ServeNodeRequest>(message.body)) {
    OnServeNode(*member, message.id, std::get<ServeNodeRequest>(message.body));
  } else if (agent && std::holds_alternative<JoinWorkerRequest>(message.body)) {
    change.kind = ChangeKind::kJoin;
    Enqueue(*member, now_us, change);
  } else if (agent && std::holds_alternative<LeaveWorkerRequest>(message.body)) {
    change.kind = ChangeKind::kLeave;
    change.leave = std::get<LeaveWorkerRequest>(message.body);
    Enqueue(*member, now_us, change);
  } else if (agent && std::holds_alternative<FlushRequest>(message.body)) {
    change.kind = ChangeKind::kFlush;
    change.database = std::get<FlushRequest>(message.body).database;
    Enqueue(*member, now_us, change);
  } else if (agent && std::holds_alternative<SwapRequest>(message.body)) {
    change.kind = ChangeKind::kSwap;
    change.swap = std::get<SwapRequest>(message.body);
    Enqueue(*member, now_us, change);
  } else {
    Reply(stream, message.id, StatusCode::kInvalidArgument,
          "that is no request that this kind of process may make, or this master does not know it");
  }
}

void Coordinator::OnLeave(Member& member, uint64_t now_us) {
  const StreamId stream = member.stream;
  member.stream = 0;
  Close(stream, "");
  if (member.kind == MemberKind::kMemoryNode) {
    NodeAway(member, now_us, "left", Away::kLeft);
  } else {
    member.left = true;
    Expel(member, "it left before its workers had");
  }
}

void Coordinator::OnStreamClosed(uint64_t now_us, StreamId stream, bool has_ended) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  Member* const member = MemberOn(stream);
  streams_.erase(found);
  if (member == nullptr) return;
  NoticeStall(now_us);
  member->stream = 0;
  has_ended |= Planted(Bug::kResetIsDeath);
  if (member->kind == MemberKind::kMemoryNode) {
    NodeAway(*member, now_us, has_ended ? "its process has ended" : "its stream ended",
             has_ended ? Away::kLost : Away::kMayReturn);
  } else if (has_ended) {
    Expel(*member, "its process has ended");
  } else {
    AgentAway(*member, now_us);
  }
  Pump(now_us);
}

uint64_t Coordinator::AwayUntil(uint64_t now_us) {
  const uint64_t until_us =
      std::max(stall_over_us_, now_us + options_.lease_ms * kUsPerMs / kAwayPerLease);
  away_until_us_ = std::max(away_until_us_, until_us);
  return until_us;
}

// It may live as well as before, on the other side of a connection that broke: then it is back at
// once, or when it hears of that with its next renewal.
void Coordinator::AgentAway(Member& member, uint64_t now_us) {
  FreeUnclaimedSeats(member);
  DropRequests(member);
  member.standing = Standing::kAway;
  member.lease_end_us = std::min(member.lease_end_us, AwayUntil(now_us));
  const uint64_t left_us = member.lease_end_us - std::min(now_us, member.lease_end_us);
  Log(LogLevel::kInfo, AgentText(member) + " is away: its stream ended; it has " +
                           std::to_string(left_us / kUsPerMs) + " ms to come back");
}

void Coordinator::NoticeStall(uint64_t now_us) {
  const uint64_t lease_us = options_.lease_ms * kUsPerMs;
  if (now_us - last_tick_us_ <= lease_us / 2) return;
  // Nobody's renewals can be judged by the clock, and connections may have broken unheard.
  for (auto& [id, member] : members_) {
    member.lease_end_us = std::max(member.lease_end_us, now_us + lease_us);
    if (member.late_since_us != 0) member.late_since_us = now_us;
  }
  last_tick_us_ = now_us;
  stall_over_us_ = now_us + lease_us;
}

void Coordinator::OnTick(uint64_t now_us) {
  NoticeStall(now_us);
  last_tick_us_ = now_us;
  std::vector<uint64_t> ids;
  ids.reserve(members_.size());
  for (const auto& [id, member] : members_) ids.push_back(id);
  for (const uint64_t id : ids) {
    const auto found = members_.find(id);
    if (found != members_.end()) OnMemberTick(found->second, now_us);
  }
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].fence_retry_us != 0 && now_us >= nodes_[node].fence_retry_us) {
      nodes_[node].fence_retry_us = 0;
      SendFences(static_cast<uint16_t>(node));
    }
  }
  if (!streams_.empty()) AdvanceDurableTime(now_us);
  if (!IsOutvoted()) JudgeWhoIsReached(now_us);
  TellUsage();
  Pump(now_us);
}

void Coordinator::OnMemberTick(Member& member, uint64_t now_us) {
  const std::string lease = "its lease of " + std::to_string(options_.lease_ms) + " ms ran out";
  if (member.kind == MemberKind::kMemoryNode) {
    if (now_us < member.lease_end_us) return;
    Close(member.stream, lease);
    NodeAway(member, now_us, lease, Away::kLost);
    return;
  }
  if (IsOutvoted()) return;
  if (member.standing == Standing::kAway && now_us >= member.lease_end_us) {
    Expel(member, "it has lost its stream and did not come back in time");
  } else if (member.standing == Standing::kUp && now_us >= member.lease_end_us) {
    Expel(member, lease);
  } else if (member.standing == Standing::kUp && member.late_since_us != 0 &&
             now_us - member.late_since_us >= options_.ack_timeout_ms * kUsPerMs) {
    Expel(member, "it did not put the newest cluster map in force within " +
                      std::to_string(options_.ack_timeout_ms) + " ms");
  }
}

void Coordinator::OnStop(uint64_t now_us) {
  // Then nobody will come back who knows the time.
  record_.nobody_stayed =
      members_.empty() &&
      std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.left; });
  record_.time_us = TimeUs(now_us);
  SaveMarks();
  SaveCluster();
}

}  // namespace onetrip
