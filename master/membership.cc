#include "master/membership.h"

#include <utility>

#include "client_core/base/check.h"
#include "client_core/layout/worker_id.h"
#include "master/placement.h"

namespace onetrip {

Result<MembershipState> MembershipState::Create(const ClusterShape& shape) {
  if (shape.replicas < 1 || shape.replicas > kMaxReplicas || shape.nodes < shape.replicas) {
    return Status(StatusCode::kInvalidArgument, "there must be a node for every replica");
  }
  const uint64_t regions_per_node = shape.node_bytes / kRegionBytes;
  const uint64_t regions = regions_per_node * shape.nodes / static_cast<uint64_t>(shape.replicas);
  if (regions == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "a memory node needs at least one region of 16 MiB");
  }
  MembershipState state;
  state.view_.epoch = Epoch{1};
  state.view_.replicas = shape.replicas;
  state.view_.node_count = shape.nodes;
  std::vector<uint64_t> next_base(shape.nodes, 0);
  // Replica after replica goes to node after node, so that no node is asked for more than another.
  // Of a region's nodes the one that is primary least often becomes its primary.
  std::vector<uint64_t> primaries(shape.nodes, 0);
  const auto replicas = static_cast<uint64_t>(shape.replicas);
  for (uint64_t region = 0; region < regions; ++region) {
    const auto nth_node = [&](uint64_t n) {
      return static_cast<uint16_t>((region * replicas + n % replicas) % shape.nodes);
    };
    uint64_t primary = 0;
    for (uint64_t n = 1; n < replicas; ++n) {
      if (primaries[nth_node(n)] < primaries[nth_node(primary)]) primary = n;
    }
    ++primaries[nth_node(primary)];
    RegionPlacement placement{};
    for (uint64_t replica = 0; replica < replicas; ++replica) {
      const uint16_t node = nth_node(primary + replica);
      placement.nodes[replica] = NodeId{node};
      placement.base[replica] = next_base[node];
      next_base[node] += kRegionBytes;
    }
    state.view_.regions.push_back(placement);
  }
  for (KeyspaceId& keyspace : state.view_.keyspaces) {
    keyspace = KeyspaceId{state.next_keyspace_++};
  }
  return state;
}

MembershipState MembershipState::Restore(View view, std::span<const Membership> seats,
                                         uint32_t next_worker, uint32_t next_keyspace) {
  MembershipState state;
  state.view_ = std::move(view);
  state.GrowSeats(state.view_.worker_index_end);
  state.view_.live_seats = {};
  for (const Membership& membership : seats) {
    CHECK(membership.index.value < kMaxWorkers);
    state.GrowSeats(size_t{membership.index.value} + 1);
    state.seats_[membership.index.value] = {membership.id, true};
    state.view_.SetLive(membership.index, true);
  }
  state.next_worker_ = next_worker;
  state.next_keyspace_ = next_keyspace;
  return state;
}

void MembershipState::GrowSeats(size_t count) {
  if (seats_.size() < count) seats_.resize(count);
  view_.worker_index_end = static_cast<uint16_t>(seats_.size());
}

Result<Membership> MembershipState::TakeSeat() {
  if (next_worker_ > kMaxWorkerId) {
    return Status(StatusCode::kUnavailable, "all worker ids of this cluster are used up");
  }
  size_t index = 0;
  while (index < seats_.size() && seats_[index].taken) ++index;
  if (index == kMaxWorkers) {
    return Status(StatusCode::kUnavailable, "the cluster has its 1024 workers already");
  }
  GrowSeats(index + 1);
  seats_[index] = {WorkerId{next_worker_++}, true};
  view_.SetLive(WorkerIndex{static_cast<uint16_t>(index)}, true);
  return Membership{seats_[index].worker, WorkerIndex{static_cast<uint16_t>(index)}};
}

Status MembershipState::FreeSeat(const Membership& membership) {
  const uint16_t index = membership.index.value;
  if (index >= seats_.size() || !seats_[index].taken || seats_[index].worker != membership.id) {
    return Status(StatusCode::kInvalidArgument, "not a member");
  }
  seats_[index].taken = false;
  view_.SetLive(membership.index, false);
  return Status::Ok();
}

Status MembershipState::FreshKeyspaces(std::optional<uint32_t> database) {
  if (database.has_value() && *database >= kMaxDatabases) {
    return Status(StatusCode::kInvalidArgument, "no such database");
  }
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    if (!database.has_value() || *database == i) {
      view_.keyspaces[i] = KeyspaceId{next_keyspace_++};
    }
  }
  return Status::Ok();
}

Status MembershipState::ExchangeKeyspaces(uint32_t first, uint32_t second) {
  if (first >= kMaxDatabases || second >= kMaxDatabases) {
    return Status(StatusCode::kInvalidArgument, "no such database");
  }
  std::swap(view_.keyspaces[first], view_.keyspaces[second]);
  return Status::Ok();
}

void MembershipState::SetNode(NodeId node, uint64_t incarnation, const NodeAddress& address) {
  CHECK(node.value < view_.nodes.size());
  view_.nodes[node.value].incarnation = incarnation;
  view_.nodes[node.value].address = address;
}

void MembershipState::SetNodeOut(NodeId node, bool out) {
  CHECK(node.value < view_.nodes.size());
  view_.nodes[node.value].out = out;
}

std::vector<uint32_t> MembershipState::LoseNode(NodeId node) {
  SetNodeOut(node, true);
  std::vector<uint32_t> changed;
  for (uint32_t region = 0; region < view_.regions.size(); ++region) {
    if (LoseReplica(node, view_.replicas, &view_.regions[region])) changed.push_back(region);
  }
  return changed;
}

std::vector<uint32_t> MembershipState::ReplaceNode(NodeId lost,
                                                   std::span<const uint64_t> node_bytes,
                                                   std::span<const NodeInfo> nodes) {
  std::vector<uint32_t> changed =
      onetrip::ReplaceNode(lost, view_.replicas, node_bytes, &view_.regions);
  for (const uint32_t region : changed) {
    for (int i = 0; i < view_.replicas; ++i) {
      const size_t end = view_.regions[region].nodes[i].value + size_t{1};
      CHECK(end <= nodes.size());
      NameNodes(nodes.first(end));
    }
  }
  return changed;
}

void MembershipState::NameNodes(std::span<const NodeInfo> nodes) {
  while (view_.nodes.size() < nodes.size()) view_.nodes.push_back(nodes[view_.nodes.size()]);
  view_.node_count = static_cast<uint16_t>(view_.nodes.size());
}

void MembershipState::MoveReplica(const RegionMove& move) {
  CHECK(move.to.value < view_.nodes.size());
  ApplyMove(move, view_.replicas, &view_.regions.at(move.region));
}

void MembershipState::AddRegions(std::span<const RegionPlacement> regions) {
  for (const RegionPlacement& region : regions) {
    for (int i = 0; i < view_.replicas; ++i) CHECK(region.nodes[i].value < view_.nodes.size());
    view_.regions.push_back(region);
  }
}

void MembershipState::SetLeaving(uint16_t regions) {
  CHECK(regions == 0 || regions < view_.regions.size());
  view_.leaving = regions;
}

void MembershipState::CutRegions() {
  view_.regions.resize(view_.regions.size() - view_.leaving);
  view_.leaving = 0;
}

void MembershipState::CopyNext(uint32_t region, NodeId node) {
  PutFirstOfMissing(node, view_.replicas, &view_.regions.at(region));
}

void MembershipState::CopyDone(uint32_t region, NodeId node) {
  CopyNext(region, node);
  --view_.regions[region].missing;
}

Result<Membership> MembershipState::Join() {
  Result<Membership> membership = TakeSeat();
  if (membership.ok()) NextEpoch();
  return membership;
}

Status MembershipState::Leave(const Membership& membership) {
  const Status status = FreeSeat(membership);
  if (status.ok()) NextEpoch();
  return status;
}

Status MembershipState::FlushKeyspaces(std::optional<uint32_t> database) {
  const Status status = FreshKeyspaces(database);
  if (status.ok()) NextEpoch();
  return status;
}

Status MembershipState::SwapKeyspaces(uint32_t first, uint32_t second) {
  const Status status = ExchangeKeyspaces(first, second);
  if (status.ok()) NextEpoch();
  return status;
}

}  // namespace onetrip
