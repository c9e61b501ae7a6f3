// Memory nodes: who holds which number, the map, expulsion and fences.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

// Of what a node says of its memory.
constexpr size_t kDamageBytesMax = 500;

std::string NodeText(size_t node) { return "memory node " + std::to_string(node); }

}  // namespace

std::optional<uint16_t> Coordinator::FindNode(uint64_t incarnation) const {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].record.incarnation == incarnation) return static_cast<uint16_t>(node);
  }
  return std::nullopt;
}

bool Coordinator::IsGoneForGood(uint16_t id, uint64_t now_us) const {
  const Node& node = nodes_[id];
  return node.member == 0 && node.record.out && !HoldsRegion(NodeId{id}) &&
         now_us >= node.lost_at_us + kForgetNodeAfterUs;
}

// Numbers of nodes that hold nothing are kept for them for a while, in case they come back, and as
// long as there are others.
std::optional<uint16_t> Coordinator::FreeNumber(uint64_t now_us) const {
  std::optional<uint16_t> longest;
  for (uint16_t id = 0; id < static_cast<uint16_t>(nodes_.size()); ++id) {
    const Node& node = nodes_[id];
    if (!node.record.out || node.member != 0 || HoldsRegion(NodeId{id})) continue;
    if (!longest.has_value() || node.lost_at_us < nodes_[*longest].lost_at_us) longest = id;
  }
  const bool forgotten = longest.has_value() && IsGoneForGood(*longest, now_us);
  if (forgotten || nodes_.size() >= options_.nodes_max) return longest;
  return static_cast<uint16_t>(nodes_.size());
}

std::optional<std::string> Coordinator::RefuseOwner(const JoinNodeRequest& offer) const {
  if (!offer.adopted || offer.owner_cluster == 0) return std::nullopt;
  const std::string claimed = NodeText(offer.owner_node);
  if (offer.owner_cluster != record_.cluster) {
    return "its memory belongs to " + claimed + " of another cluster (" +
           ClusterText(offer.owner_cluster) + ", this one is " + ClusterText(record_.cluster) +
           "); check the master's address, or take another backing file";
  }
  if (!has_map()) {
    return "its memory belongs to " + claimed +
           " of this cluster, whose map this master has never made: the master's data directory is "
           "an old copy; restore the newest one";
  }
  const std::optional<uint16_t> node = FindNode(offer.incarnation);
  if (node.has_value() && *node == offer.owner_node) return std::nullopt;
  if (node.has_value() || offer.owner_node >= nodes_.size()) {
    return "its memory claims to be that of " + claimed + ", which is not so; take another file";
  }
  return "the memory of " + claimed + " was lost: this is another incarnation of it; bring the " +
         "right backing file, or offer fresh memory as a spare";
}

std::optional<std::string> Coordinator::RefuseNode(const Member& member, uint64_t now_us,
                                                   const JoinNodeRequest& offer,
                                                   StatusCode* code) const {
  *code = StatusCode::kInvalidArgument;
  if (member.node.has_value() || member.join_request.has_value()) {
    return "this stream's memory node has joined already";
  }
  if (offer.bytes < kRegionBytes) {
    return "it offers " + std::to_string(offer.bytes) +
           " bytes; a memory node needs at least one " + "region of 16 MiB";
  }
  if (offer.incarnation == 0) return "its memory has no incarnation";
  if (auto refusal = RefuseOwner(offer)) return refusal;
  if (auto refusal = RefuseOlderState(offer)) return refusal;
  for (const uint64_t waiting : forming_) {
    const Member& other = members_.at(waiting);
    if (other.offer.incarnation != offer.incarnation) continue;
    return "the same memory is offered by process " + std::to_string(other.info.pid) + " on " +
           other.info.host + " already";
  }
  const std::optional<uint16_t> found = FindNode(offer.incarnation);
  if (!found.has_value()) {
    if (has_map() && !FreeNumber(now_us).has_value()) {
      return "the cluster has given out " + std::to_string(nodes_.size()) +
             " numbers of memory nodes, as many as can be, and none is free";
    }
    return std::nullopt;
  }
  const Node& node = nodes_[*found];
  if (offer.bytes < node.record.bytes) {
    return NodeText(*found) + " had " + std::to_string(node.record.bytes) +
           " bytes and comes back " + "with " + std::to_string(offer.bytes) +
           "; give it the memory that it had";
  }
  if (node.member != 0 && node.member != member.id) {
    // A process that has not renewed for half a lease may be dead already.
    const Member& other = members_.at(node.member);
    if (now_us - other.renewed_us > options_.lease_ms * 1000 / 2) *code = StatusCode::kUnavailable;
    return NodeText(*found) + " is served by process " + std::to_string(other.info.pid) + " on " +
           other.info.host + " already; stop that one first";
  }
  return std::nullopt;
}

void Coordinator::OnJoinNode(Member& member, uint64_t now_us, uint64_t request,
                             const JoinNodeRequest& offer) {
  StatusCode code = StatusCode::kOk;
  if (const auto refusal = RefuseNode(member, now_us, offer, &code)) {
    Log(LogLevel::kWarning, "refused a memory node, process " + std::to_string(member.info.pid) +
                                " on " + member.info.host + ": " + *refusal);
    Reply(member.stream, request, code, *refusal);
    return;
  }
  member.offer = offer;
  if (has_map()) RaiseIds(offer);
  if (!has_map()) {
    member.join_request = request;
    forming_.push_back(member.id);
    Log(LogLevel::kInfo, "a memory node of " + std::to_string(offer.bytes >> 20) +
                             " MiB has come, " + std::to_string(forming_.size()) + " of " +
                             std::to_string(record_.nodes));
    TryMakeMap();
    return;
  }
  const std::optional<uint16_t> known = FindNode(offer.incarnation);
  if (known.has_value()) {
    const std::string outdated = WhyOutdated(*known, offer);
    const bool accepted = offer.accepted || (offer.accepts_old && !outdated.empty());
    if (accepted && !nodes_[*known].record.out) RepairAll(NodeText(*known));
    if (!offer.accepts_old && !outdated.empty()) {
      member.offer.damage = member.offer.outdated = outdated;
    }
    // Of one that is out nobody counts on what the memory holds.
    if (member.offer.damage.empty() || nodes_[*known].record.out) {
      PlaceNode(member, *known, request);
    } else {
      AwaitOut(member, now_us, *known, request);
    }
    return;
  }
  const uint16_t spare = *FreeNumber(now_us);
  if (spare == nodes_.size()) nodes_.emplace_back();
  Node fresh;
  fresh.record = {offer.incarnation, offer.bytes, {}, /*out=*/true};
  fresh.out_epoch = nodes_[spare].out_epoch;
  nodes_[spare] = std::move(fresh);
  effects_.change.nodes[spare] = nodes_[spare].record;
  Log(LogLevel::kInfo, NodeText(spare) + " has joined as a spare, without regions");
  PlaceNode(member, spare, request);
}

void Coordinator::TryMakeMap() {
  if (forming_.size() < record_.nodes) return;
  std::vector<uint64_t> node_bytes;
  View view;
  view.cluster = record_.cluster;
  view.replicas = record_.replicas;
  view.node_count = record_.nodes;
  for (const uint64_t id : forming_) {
    const JoinNodeRequest& offer = members_.at(id).offer;
    const auto node = static_cast<uint16_t>(nodes_.size());
    nodes_.emplace_back().record = {offer.incarnation, offer.bytes, {}, /*out=*/false};
    effects_.change.nodes[node] = nodes_[node].record;
    node_bytes.push_back(offer.bytes);
    view.nodes.push_back({offer.incarnation, {}});
  }
  view.regions = PlaceRegions(node_bytes, record_.replicas);
  // Each node has room for a region, and there is one for every replica.
  CHECK(!view.regions.empty());
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    effects_.change.regions[region] = view.regions[region];
  }
  membership_ =
      MembershipState::Restore(std::move(view), {}, record_.next_worker, record_.next_keyspace);
  const ::onetrip::Status fresh = membership_.FlushKeyspaces(std::nullopt);
  CHECK(fresh.ok());
  view_ = std::make_shared<const View>(membership_.view());
  placement_epoch_ = view_->epoch.value;
  CountMissing();
  SaveCluster();
  Log(LogLevel::kInfo, "the cluster has its map: " + std::to_string(view_->regions.size()) +
                           " regions of 16 MiB, each on " + std::to_string(record_.replicas) +
                           " of " + std::to_string(record_.nodes) + " memory nodes");
  const std::vector<uint64_t> joined = std::exchange(forming_, {});
  for (size_t node = 0; node < joined.size(); ++node) {
    Member& member = members_.at(joined[node]);
    PlaceNode(member, static_cast<uint16_t>(node), *std::exchange(member.join_request, {}));
  }
}

void Coordinator::PlaceNode(Member& member, uint16_t node, uint64_t request) {
  nodes_[node].member = member.id;
  nodes_[node].info = member.info;
  nodes_[node].serving = false;
  member.node = node;
  Send(member.stream, ReplyMessage{request,
                                   StatusCode::kOk,
                                   {},
                                   NodeJoined{NodeId{node}, view_, ExpelledWorkers(),
                                              std::max(nodes_[node].record.mark, nodes_[node].mark),
                                              member.offer.outdated}});
}

void Coordinator::AwaitOut(Member& member, uint64_t now_us, uint16_t id, uint64_t request) {
  Node& node = nodes_[id];
  node.member = member.id;
  node.info = member.info;
  node.serving = false;
  node.damage = member.offer.damage.substr(0, kDamageBytesMax);
  // It will not serve as it is, however long it is waited for.
  node.lost_at_us = std::min(node.lost_at_us, now_us);
  member.node = id;
  member.join_request = request;
  Log(LogLevel::kWarning, NodeText(id) + " (process " + std::to_string(member.info.pid) + " on " +
                              member.info.host + ") comes with damaged memory: " + node.damage);
}

// Its replicas may differ from the others anywhere.
void Coordinator::RepairAll(const std::string& node) {
  Log(LogLevel::kWarning, node +
                              " comes with damaged memory that somebody has accepted as it is: " +
                              "slots and registers are made alike");
  record_.resolve_due = true;
  record_.heal_due = true;
  ScrubAnew();
  SaveCluster();
}

void Coordinator::PlaceDamaged() {
  for (Node& node : nodes_) {
    if (node.damage.empty() || !node.record.out) continue;
    node.damage.clear();
    Member& member = members_.at(node.member);
    PlaceNode(member, *member.node, *std::exchange(member.join_request, {}));
  }
}

void Coordinator::OnServeNode(Member& member, uint64_t request, const ServeNodeRequest& message) {
  if (!member.node.has_value() || member.join_request.has_value()) {
    Reply(member.stream, request, StatusCode::kInvalidArgument,
          "a memory node must join before it serves");
    return;
  }
  if (!message.address.has_value() ||
      (message.address->tcp_host.empty() && message.address->shm_path.empty())) {
    Reply(member.stream, request, StatusCode::kInvalidArgument,
          "the memory node names no address at which an agent could reach it");
    return;
  }
  const uint16_t id = *member.node;
  Node& node = nodes_[id];
  node.serving = true;
  node.left = false;
  // Whoever accepted that it is lost has to look again.
  if (std::erase(accepted_loss_, NodeId{id}) != 0) accepted_loss_.clear();
  node.reach_since_us = last_tick_us_;
  // There may be room for what has to move.
  move_not_before_us_ = 0;
  if (node.record.address != *message.address) {
    node.record.address = *message.address;
    effects_.change.nodes[id] = node.record;
    if (id < NodesInView()) {
      Change change;
      change.kind = ChangeKind::kAddress;
      change.node = id;
      EnqueueOwn(change);
    }
  }
  Log(LogLevel::kInfo, NodeText(id) + " serves (process " + std::to_string(member.info.pid) +
                           " on " + member.info.host + ")");
  // Not after everybody knows the address: a node that waited for that could keep its own fences
  // waiting, and with them those who must know.
  Reply(member.stream, request, StatusCode::kOk);
  SendFences(id);
}

void Coordinator::NodeAway(Member& member, uint64_t now_us, const std::string& why, Away away) {
  const bool in_order = away == Away::kLeft;
  std::erase(forming_, member.id);
  if (member.node.has_value()) {
    const uint16_t id = *member.node;
    Node& node = nodes_[id];
    ForgetWhoReaches(id);
    node.member = 0;
    node.serving = false;
    node.cut_off = false;
    node.damage.clear();
    node.left = in_order;
    // It may be as well as before, and come back at once.
    node.lost_at_us = away == Away::kMayReturn ? AwayUntil(now_us) : now_us;
    node.fence = 0;
    node.fence_retry_us = 0;
    Log(in_order ? LogLevel::kInfo : LogLevel::kWarning,
        NodeText(id) + (in_order ? " has left" : " is lost: " + why));
  }
  members_.erase(member.id);
}

bool Coordinator::AllServe() const {
  return has_map() && std::all_of(nodes_.begin(), nodes_.begin() + NodesInView(),
                                  [](const Node& node) { return node.serving || node.record.out; });
}

bool Coordinator::AddressesKnown() const {
  return has_map() &&
         std::all_of(view_->nodes.begin(), view_->nodes.end(), [](const NodeInfo& node) {
           return node.out || node.address != NodeAddress();
         });
}

void Coordinator::ForgetAgent(uint64_t member) {
  effects_.change.agents[member] = std::nullopt;
  members_.erase(member);
}

void Coordinator::Expel(Member& member, const std::string& why) {
  if (member.standing == Standing::kExpelled || member.standing == Standing::kFenced) return;
  DropRequests(member);
  member.standing = Standing::kExpelled;
  if (member.stream != 0) {
    Send(member.stream, ExpelledMessage{why});
    Close(std::exchange(member.stream, 0), why);
  }
  const std::string name = AgentText(member);
  if (member.seats.empty()) {
    Log(LogLevel::kInfo, name + (member.left ? " has left" : " is gone: " + why));
    ForgetAgent(member.id);
    return;
  }
  Log(LogLevel::kWarning, name + " is expelled: " + why + "; its " +
                              std::to_string(member.seats.size()) + " workers are to be fenced");
  for (const uint16_t index : member.seats) {
    seats_[index].expelled = true;
    effects_.change.seats[index] = seats_[index];
  }
  for (uint16_t node = 0; node < NodesInView(); ++node) SendFences(node);
}

std::vector<WorkerId> Coordinator::ExpelledWorkers() const {
  std::vector<WorkerId> workers;
  for (const auto& [index, seat] : seats_) {
    if (seat.expelled) workers.push_back(seat.worker);
  }
  for (const uint32_t worker : former_) workers.push_back(WorkerId{worker});
  return workers;
}

void Coordinator::SendFences(uint16_t id) {
  Node& node = nodes_[id];
  // One at a time: its answer brings the rest on the way.
  if (id >= NodesInView() || !node.serving || node.fence != 0 || node.fence_retry_us != 0) return;
  std::vector<WorkerId> workers;
  for (const WorkerId worker : ExpelledWorkers()) {
    if (!node.fenced.contains(worker.value)) workers.push_back(worker);
  }
  if (workers.empty()) return;
  node.fence = next_fence_++;
  node.fence_workers = workers;
  Send(members_.at(node.member).stream,
       FenceMessage{node.fence, membership_.view().epoch, std::move(workers)});
}

void Coordinator::OnFenced(Member& member, uint64_t now_us, const FencedMessage& message) {
  if (!member.node.has_value()) return;
  const uint16_t id = *member.node;
  Node& node = nodes_[id];
  if (node.fence == 0 || message.id != node.fence) return;
  node.fence = 0;
  if (!message.done) {
    if (!std::exchange(node.fence_complained, true)) {
      Log(LogLevel::kWarning, NodeText(id) + " could not fence expelled workers yet: " +
                                  message.reason + "; it is asked again");
    }
    node.fence_retry_us = now_us + options_.fence_retry_ms * 1000;
    return;
  }
  node.fence_complained = false;
  for (const WorkerId worker : node.fence_workers) {
    node.fenced.insert(worker.value);
    ForgetFormer(worker);
  }
  SendFences(id);
}

void Coordinator::ForgetFormer(WorkerId worker) {
  if (!former_.contains(worker.value)) return;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    if (!nodes_[id].fenced.contains(worker.value)) return;
  }
  former_.erase(worker.value);
  effects_.change.former[worker.value] = false;
  for (Node& node : nodes_) node.fenced.erase(worker.value);
}

void Coordinator::CheckFenced() {
  for (auto& entry : members_) {
    Member& member = entry.second;
    if (member.standing != Standing::kExpelled) continue;
    uint16_t by = 0;
    for (uint16_t id = 0; id < NodesInView(); ++id) {
      const Node& node = nodes_[id];
      const bool fenced = std::all_of(
          member.seats.begin(), member.seats.end(),
          [&](uint16_t index) { return node.fenced.contains(seats_.at(index).worker.value); });
      // A node that nobody asks any more need not refuse it, until it comes back.
      const bool gone =
          node.record.out && (Planted(Bug::kOutIsFenced) || InForceEverywhere(node.out_epoch));
      if (fenced || gone) ++by;
    }
    if (by < (Planted(Bug::kFencedOnOneNode) ? 1 : NodesInView())) continue;
    member.standing = Standing::kFenced;
    Change change;
    change.kind = ChangeKind::kFenced;
    change.member = member.id;
    EnqueueOwn(change);
  }
}

}  // namespace onetrip
