#include "master/membership.h"

namespace onetrip {
namespace {

constexpr uint32_t kMaxWorkerId = (1U << 22) - 1;  // what a slot word can carry

}  // namespace

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

Result<Membership> MembershipState::Join() {
  if (next_worker_ > kMaxWorkerId) {
    return Status(StatusCode::kUnavailable, "all worker ids of this cluster are used up");
  }
  size_t index = 0;
  while (index < seats_.size() && seats_[index].taken) ++index;
  if (index == kMaxWorkers) {
    return Status(StatusCode::kUnavailable, "the cluster has its 1024 workers already");
  }
  if (index == seats_.size()) seats_.emplace_back();
  seats_[index] = {WorkerId{next_worker_++}, true};
  view_.worker_index_end = static_cast<uint16_t>(seats_.size());
  view_.SetLive(WorkerIndex{static_cast<uint16_t>(index)}, true);
  ++view_.epoch.value;
  return Membership{seats_[index].worker, WorkerIndex{static_cast<uint16_t>(index)}, 0};
}

Status MembershipState::Leave(const Membership& membership) {
  const uint16_t index = membership.index.value;
  if (index >= seats_.size() || !seats_[index].taken || seats_[index].worker != membership.id) {
    return Status(StatusCode::kInvalidArgument, "not a member");
  }
  seats_[index].taken = false;
  view_.SetLive(membership.index, false);
  ++view_.epoch.value;
  return Status::Ok();
}

Status MembershipState::FlushKeyspaces(std::optional<uint32_t> database) {
  if (database.has_value() && *database >= kMaxDatabases) {
    return Status(StatusCode::kInvalidArgument, "no such database");
  }
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    if (!database.has_value() || *database == i) {
      view_.keyspaces[i] = KeyspaceId{next_keyspace_++};
    }
  }
  ++view_.epoch.value;
  return Status::Ok();
}

}  // namespace onetrip
