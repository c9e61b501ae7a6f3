#include "master/node_joins.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/layout/global_addr.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/leases.h"
#include "master/old_state.h"
#include "master/placement.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/repairs.h"
#include "master/texts.h"
#include "master/view_changes.h"

namespace onetrip::master {
namespace {

// After so long a node that holds nothing is not shown any more, and the next one that is new gets
// its number.
constexpr uint64_t kForgetNodeAfterUs = 600'000'000;

// Limits what a node says of its memory.
constexpr size_t kDamageBytesMax = 500;

// The number for a node that the cluster has not heard of.
// Numbers of nodes that hold nothing are kept for them for a while, in case they come back, and as
// long as there are others.
std::optional<uint16_t> FreeNumber(const ClusterState& state, uint64_t now_us) {
  std::optional<uint16_t> longest;
  for (uint16_t id = 0; id < static_cast<uint16_t>(state.nodes.size()); ++id) {
    const Node& node = state.nodes[id];
    if (!node.record.out || node.member != 0 || HoldsRegion(state, NodeId{id})) continue;
    if (!longest.has_value() || node.lost_at_us < state.nodes[*longest].lost_at_us) longest = id;
  }
  const bool forgotten = longest.has_value() && IsGoneForGood(state, *longest, now_us);
  if (forgotten || state.nodes.size() >= state.options.nodes_max) return longest;
  return static_cast<uint16_t>(state.nodes.size());
}

std::optional<std::string> RefuseOwner(const ClusterState& state, const JoinNodeRequest& offer) {
  if (!offer.adopted || offer.owner_cluster == 0) return std::nullopt;
  const std::string claimed = NodeText(offer.owner_node);
  if (offer.owner_cluster != state.record.cluster) {
    return "its memory belongs to " + claimed + " of another cluster (" +
           ClusterText(offer.owner_cluster) + ", this one is " + ClusterText(state.record.cluster) +
           "); check the master's address, or take another backing file";
  }
  if (!state.has_map()) {
    return "its memory belongs to " + claimed +
           " of this cluster, whose map this master has never made: the master's data directory is "
           "an old copy; restore the newest one";
  }
  const std::optional<uint16_t> node = FindNode(state, offer.incarnation);
  if (node.has_value() && *node == offer.owner_node) return std::nullopt;
  if (node.has_value() || offer.owner_node >= state.nodes.size()) {
    return "its memory claims to be that of " + claimed + ", which is not so; take another file";
  }
  return "the memory of " + claimed + " was lost: this is another incarnation of it; bring the " +
         "right backing file, or offer fresh memory as a spare";
}

// Why the node may not join; *code tells whether that will last.
std::optional<std::string> RefuseNode(const ClusterState& state, const Member& member,
                                      uint64_t now_us, const JoinNodeRequest& offer,
                                      StatusCode* code) {
  *code = StatusCode::kInvalidArgument;
  if (member.node.has_value() || member.join_request.has_value()) {
    return "this stream's memory node has joined already";
  }
  if (offer.bytes < kRegionBytes) {
    return "it offers " + std::to_string(offer.bytes) +
           " bytes; a memory node needs at least one " + "region of 16 MiB";
  }
  if (offer.incarnation == 0) return "its memory has no incarnation";
  if (auto refusal = RefuseOwner(state, offer)) return refusal;
  if (auto refusal = RefuseOlderState(state, offer)) return refusal;
  for (const uint64_t waiting : state.forming) {
    const Member& other = state.members.at(waiting);
    if (other.offer.incarnation != offer.incarnation) continue;
    return "the same memory is offered by process " + std::to_string(other.info.pid) + " on " +
           other.info.host + " already";
  }
  const std::optional<uint16_t> found = FindNode(state, offer.incarnation);
  if (!found.has_value()) {
    if (state.has_map() && !FreeNumber(state, now_us).has_value()) {
      return "the cluster has given out " + std::to_string(state.nodes.size()) +
             " numbers of memory nodes, as many as can be, and none is free";
    }
    return std::nullopt;
  }
  const Node& node = state.nodes[*found];
  if (offer.bytes < node.record.bytes) {
    return NodeText(*found) + " had " + std::to_string(node.record.bytes) +
           " bytes and comes back " + "with " + std::to_string(offer.bytes) +
           "; give it the memory that it had";
  }
  if (node.member != 0 && node.member != member.id) {
    // A process that has not renewed for half a lease may be dead already.
    const Member& other = state.members.at(node.member);
    if (now_us - other.renewed_us > state.options.lease_ms * 1000 / 2)
      *code = StatusCode::kUnavailable;
    return NodeText(*found) + " is served by process " + std::to_string(other.info.pid) + " on " +
           other.info.host + " already; stop that one first";
  }
  return std::nullopt;
}

void PlaceNode(ClusterState& state, Effects& effects, Member& member, uint16_t node,
               uint64_t request) {
  state.nodes[node].member = member.id;
  state.nodes[node].info = member.info;
  state.nodes[node].serving = false;
  member.node = node;
  Send(effects, member.stream,
       ReplyMessage{request,
                    StatusCode::kOk,
                    {},
                    NodeJoined{NodeId{node}, state.view, ExpelledWorkers(state),
                               std::max(state.nodes[node].record.mark, state.nodes[node].mark),
                               member.offer.outdated}});
}

void TryMakeMap(ClusterState& state, Effects& effects) {
  if (state.forming.size() < state.record.nodes) return;
  std::vector<uint64_t> node_bytes;
  View view;
  view.cluster = state.record.cluster;
  view.replicas = state.record.replicas;
  view.node_count = state.record.nodes;
  for (const uint64_t id : state.forming) {
    const JoinNodeRequest& offer = state.members.at(id).offer;
    const auto node = static_cast<uint16_t>(state.nodes.size());
    state.nodes.emplace_back().record = {offer.incarnation, offer.bytes, {}, /*out=*/false};
    effects.change.nodes[node] = state.nodes[node].record;
    node_bytes.push_back(offer.bytes);
    view.nodes.push_back({offer.incarnation, {}});
  }
  view.regions = PlaceRegions(node_bytes, state.record.replicas);
  // Each node has room for a region, and there is one for every replica.
  CHECK(!view.regions.empty());
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    effects.change.regions[region] = view.regions[region];
  }
  state.membership = MembershipState::Restore(std::move(view), {}, state.record.next_worker,
                                              state.record.next_keyspace);
  const Status fresh = state.membership.FlushKeyspaces(std::nullopt);
  CHECK(fresh.ok());
  state.view = std::make_shared<const View>(state.membership.view());
  state.placement_epoch = state.view->epoch.value;
  CountMissing(state);
  SaveCluster(state, effects);
  Log(effects, LogLevel::kInfo,
      "the cluster has its map: " + std::to_string(state.view->regions.size()) +
          " regions of 16 MiB, each on " + std::to_string(state.record.replicas) + " of " +
          std::to_string(state.record.nodes) + " memory nodes");
  const std::vector<uint64_t> joined = std::exchange(state.forming, {});
  for (size_t node = 0; node < joined.size(); ++node) {
    Member& member = state.members.at(joined[node]);
    PlaceNode(state, effects, member, static_cast<uint16_t>(node),
              *std::exchange(member.join_request, {}));
  }
}

// The node's memory counts for nothing: it waits until it is out.
void AwaitOut(ClusterState& state, Effects& effects, Member& member, uint64_t now_us, uint16_t id,
              uint64_t request) {
  Node& node = state.nodes[id];
  node.member = member.id;
  node.info = member.info;
  node.serving = false;
  node.damage = member.offer.damage.substr(0, kDamageBytesMax);
  // It will not serve as it is, however long it is waited for.
  node.lost_at_us = std::min(node.lost_at_us, now_us);
  member.node = id;
  member.join_request = request;
  Log(effects, LogLevel::kWarning,
      NodeText(id) + " (process " + std::to_string(member.info.pid) + " on " + member.info.host +
          ") comes with damaged memory: " + node.damage);
}

// Its replicas may differ from the others anywhere.
void RepairAll(ClusterState& state, Effects& effects, const std::string& node) {
  Log(effects, LogLevel::kWarning,
      node + " comes with damaged memory that somebody has accepted as it is: " +
          "slots and registers are made alike");
  state.record.resolve_due = true;
  state.record.heal_due = true;
  ScrubAnew(state);
  SaveCluster(state, effects);
}

// An agent takes one fabric for all memory nodes. Empty: all of them can be reached over one.
std::string WhyAMixture(const ClusterState& state, uint16_t id, const NodeAddress& address) {
  for (size_t i = 0; i < state.nodes.size(); ++i) {
    const Node& other = state.nodes[i];
    if (i == id || other.record.out || !other.serving) continue;
    if (other.record.address.rdma.empty() == address.rdma.empty()) continue;
    const std::string name = "memory node " + std::to_string(i);
    return address.rdma.empty() ? name + " serves RDMA, and this one does not; give --fabric verbs"
                                : name +
                                      " does not serve RDMA, and this one serves nothing else; "
                                      "give another --fabric";
  }
  return "";
}

}  // namespace

bool IsGoneForGood(const ClusterState& state, uint16_t id, uint64_t now_us) {
  const Node& node = state.nodes[id];
  return node.member == 0 && node.record.out && !HoldsRegion(state, NodeId{id}) &&
         now_us >= node.lost_at_us + kForgetNodeAfterUs;
}

void OnJoinNode(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                uint64_t request, const JoinNodeRequest& offer) {
  StatusCode code = StatusCode::kOk;
  if (const auto refusal = RefuseNode(state, member, now_us, offer, &code)) {
    Log(effects, LogLevel::kWarning,
        "refused a memory node, process " + std::to_string(member.info.pid) + " on " +
            member.info.host + ": " + *refusal);
    Reply(effects, member.stream, request, code, *refusal);
    return;
  }
  member.offer = offer;
  if (state.has_map()) RaiseIds(state, effects, offer);
  if (!state.has_map()) {
    member.join_request = request;
    state.forming.push_back(member.id);
    Log(effects, LogLevel::kInfo,
        "a memory node of " + std::to_string(offer.bytes >> 20) + " MiB has come, " +
            std::to_string(state.forming.size()) + " of " + std::to_string(state.record.nodes));
    TryMakeMap(state, effects);
    return;
  }
  const std::optional<uint16_t> known = FindNode(state, offer.incarnation);
  if (known.has_value()) {
    const std::string outdated = WhyOutdated(state, *known, offer);
    const bool accepted = offer.accepted || (offer.accepts_old && !outdated.empty());
    if (accepted && !state.nodes[*known].record.out) RepairAll(state, effects, NodeText(*known));
    if (!offer.accepts_old && !outdated.empty()) {
      member.offer.damage = member.offer.outdated = outdated;
    }
    // While a node is out, no agent counts on what its memory holds.
    if (member.offer.damage.empty() || state.nodes[*known].record.out) {
      PlaceNode(state, effects, member, *known, request);
    } else {
      AwaitOut(state, effects, member, now_us, *known, request);
    }
    return;
  }
  const uint16_t spare = *FreeNumber(state, now_us);
  if (spare == state.nodes.size()) state.nodes.emplace_back();
  Node fresh;
  fresh.record = {offer.incarnation, offer.bytes, {}, /*out=*/true};
  fresh.out_epoch = state.nodes[spare].out_epoch;
  state.nodes[spare] = std::move(fresh);
  effects.change.nodes[spare] = state.nodes[spare].record;
  Log(effects, LogLevel::kInfo, NodeText(spare) + " has joined as a spare, without regions");
  PlaceNode(state, effects, member, spare, request);
}

void PlaceDamaged(ClusterState& state, Effects& effects) {
  for (Node& node : state.nodes) {
    if (node.damage.empty() || !node.record.out) continue;
    node.damage.clear();
    Member& member = state.members.at(node.member);
    PlaceNode(state, effects, member, *member.node, *std::exchange(member.join_request, {}));
  }
}

void OnServeNode(ClusterState& state, Effects& effects, Member& member, uint64_t request,
                 const ServeNodeRequest& message) {
  if (!member.node.has_value() || member.join_request.has_value()) {
    Reply(effects, member.stream, request, StatusCode::kInvalidArgument,
          "a memory node must join before it serves");
    return;
  }
  if (!message.address.has_value() ||
      (message.address->tcp_host.empty() && message.address->shm_path.empty())) {
    Reply(effects, member.stream, request, StatusCode::kInvalidArgument,
          "the memory node names no address at which an agent could reach it");
    return;
  }
  const uint16_t id = *member.node;
  if (const std::string mixture = WhyAMixture(state, id, *message.address); !mixture.empty()) {
    Reply(effects, member.stream, request, StatusCode::kInvalidArgument, mixture);
    return;
  }
  Node& node = state.nodes[id];
  node.serving = true;
  node.left = false;
  // Whoever accepted that it is lost has to look again.
  if (std::erase(state.accepted_loss, NodeId{id}) != 0) state.accepted_loss.clear();
  node.reach_since_us = state.last_tick_us;
  // There may be room for what has to move.
  state.move_not_before_us = 0;
  if (node.record.address != *message.address) {
    node.record.address = *message.address;
    effects.change.nodes[id] = node.record;
    if (id < state.NodesInView()) {
      Change change;
      change.kind = ChangeKind::kAddress;
      change.node = id;
      EnqueueOwn(state, change);
    }
  }
  Log(effects, LogLevel::kInfo,
      NodeText(id) + " serves (process " + std::to_string(member.info.pid) + " on " +
          member.info.host + ")");
  // Not after everybody knows the address: a node that waited for that could keep its own fences
  // waiting, and with them those who must know.
  Reply(effects, member.stream, request, StatusCode::kOk);
  SendFences(state, effects, id);
}

void NodeAway(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
              const std::string& why, Away away) {
  const bool in_order = away == Away::kLeft;
  std::erase(state.forming, member.id);
  if (member.node.has_value()) {
    const uint16_t id = *member.node;
    Node& node = state.nodes[id];
    ForgetWhoReaches(state, id);
    node.member = 0;
    node.serving = false;
    node.cut_off = false;
    node.damage.clear();
    node.left = in_order;
    // It may be as well as before, and come back at once.
    node.lost_at_us = away == Away::kMayReturn ? AwayUntil(state, now_us) : now_us;
    node.fence = 0;
    node.fence_retry_us = 0;
    Log(effects, in_order ? LogLevel::kInfo : LogLevel::kWarning,
        NodeText(id) + (in_order ? " has left" : " is lost: " + why));
  }
  state.members.erase(member.id);
}

}  // namespace onetrip::master
