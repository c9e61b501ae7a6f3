#include "client_core/control/view_codec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client_core/control/control.pb.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

Status Refuse(std::string* reason, const std::string& what) {
  *reason = "the master sent a cluster map that makes no sense: " + what;
  return Status(StatusCode::kCorrupt, "not a cluster map");
}

// True if two regions share bytes of one node.
bool Overlap(const View& view) {
  std::vector<std::pair<uint16_t, uint64_t>> places;
  for (const RegionPlacement& placement : view.regions) {
    for (int i = 0; i < view.replicas; ++i) {
      places.emplace_back(placement.nodes[i].value, placement.base[i]);
    }
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].first == places[i - 1].first &&
        places[i].second - places[i - 1].second < kRegionBytes) {
      return true;
    }
  }
  return false;
}

Status DecodeRegion(const control::Region& message, int replicas, uint16_t nodes,
                    RegionPlacement* placement, std::string* reason) {
  if (message.nodes_size() != replicas || message.bases_size() != replicas) {
    return Refuse(reason, "a region without all of its replicas");
  }
  if (message.missing() >= static_cast<uint32_t>(replicas)) {
    return Refuse(reason, "a region that is nowhere");
  }
  placement->missing = static_cast<uint8_t>(message.missing());
  for (int i = 0; i < replicas; ++i) {
    if (message.nodes(i) >= nodes) return Refuse(reason, "a region on a node that does not exist");
    const uint64_t base = message.bases(i);
    if (base % kRegionBytes != 0 || base > UINT64_MAX - kRegionBytes) {
      return Refuse(reason, "a region that starts at byte " + std::to_string(base));
    }
    placement->nodes[i] = NodeId{static_cast<uint16_t>(message.nodes(i))};
    placement->base[i] = base;
    for (int j = 0; j < i; ++j) {
      if (placement->nodes[j] == placement->nodes[i]) {
        return Refuse(reason, "a region twice on one node");
      }
    }
  }
  return Status::Ok();
}

}  // namespace

void EncodeNodeAddress(const NodeAddress& address, control::NodeAddress* message) {
  message->set_tcp_host(address.tcp_host);
  message->set_tcp_port(address.tcp_port);
  message->set_shm_path(address.shm_path);
  message->set_host_id(address.host_id);
  message->set_rdma(address.rdma);
}

bool DecodeNodeAddress(const control::NodeAddress& message, NodeAddress* address) {
  if (message.tcp_port() > 65535) return false;
  if (message.tcp_host().empty() != (message.tcp_port() == 0)) return false;
  *address = {message.tcp_host(), static_cast<uint16_t>(message.tcp_port()), message.shm_path(),
              message.host_id(), message.rdma()};
  // Its workers' channels are tcp's.
  return address->rdma.empty() || (address->tcp_port != 0 && address->shm_path.empty());
}

void EncodeView(const View& view, control::View* message) {
  message->set_cluster(view.cluster);
  message->set_epoch(view.epoch.value);
  message->set_replicas(static_cast<uint32_t>(view.replicas));
  for (const RegionPlacement& placement : view.regions) {
    control::Region* region = message->add_regions();
    for (int i = 0; i < view.replicas; ++i) {
      region->add_nodes(placement.nodes[i].value);
      region->add_bases(placement.base[i]);
    }
    region->set_missing(placement.missing);
  }
  for (const KeyspaceId keyspace : view.keyspaces) message->add_keyspaces(keyspace.value);
  for (const NodeInfo& info : view.nodes) {
    control::Node* node = message->add_nodes();
    node->set_incarnation(info.incarnation);
    node->set_out(info.out);
    EncodeNodeAddress(info.address, node->mutable_address());
  }
  message->set_worker_index_end(view.worker_index_end);
  for (const uint64_t word : view.live_seats) message->add_live_seats(word);
  message->set_records_only(view.records_only);
  message->set_leaving(view.leaving);
  message->set_directory(view.directory);
}

Result<View> DecodeView(const control::View& message, std::string* reason) {
  View view;
  view.cluster = message.cluster();
  view.epoch = Epoch{message.epoch()};
  if (message.replicas() < 1 || message.replicas() > kMaxReplicas) {
    return Refuse(reason, std::to_string(message.replicas()) + " replicas");
  }
  view.replicas = static_cast<int>(message.replicas());
  view.records_only = message.records_only();
  if (message.nodes_size() > UINT16_MAX) return Refuse(reason, "too many memory nodes");
  view.node_count = static_cast<uint16_t>(message.nodes_size());
  for (const control::Node& node : message.nodes()) {
    NodeInfo info;
    info.incarnation = node.incarnation();
    info.out = node.out();
    if (!DecodeNodeAddress(node.address(), &info.address)) {
      return Refuse(reason, "a memory node at port " + std::to_string(node.address().tcp_port()));
    }
    view.nodes.push_back(std::move(info));
  }
  for (const control::Region& region : message.regions()) {
    RegionPlacement placement{};
    const Status status = DecodeRegion(region, view.replicas, view.node_count, &placement, reason);
    if (!status.ok()) return status;
    view.regions.push_back(placement);
  }
  if (Overlap(view)) return Refuse(reason, "two regions in one place");
  // The first one has the root area.
  if (message.leaving() != 0 && message.leaving() >= view.regions.size()) {
    return Refuse(reason, std::to_string(message.leaving()) + " regions that leave, of " +
                              std::to_string(view.regions.size()));
  }
  if (message.leaving() > UINT16_MAX) return Refuse(reason, "too many regions that leave");
  view.leaving = static_cast<uint16_t>(message.leaving());
  if (message.directory() >= kDirectories) return Refuse(reason, "a directory that there is not");
  view.directory = static_cast<uint8_t>(message.directory());
  if (message.keyspaces_size() != static_cast<int>(kMaxDatabases)) {
    return Refuse(reason, std::to_string(message.keyspaces_size()) + " keyspaces");
  }
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    view.keyspaces[i] = KeyspaceId{message.keyspaces(static_cast<int>(i))};
  }
  if (message.worker_index_end() > kMaxWorkers ||
      message.live_seats_size() != static_cast<int>(view.live_seats.size())) {
    return Refuse(reason, "seats of more workers than there can be");
  }
  view.worker_index_end = static_cast<uint16_t>(message.worker_index_end());
  std::copy(message.live_seats().begin(), message.live_seats().end(), view.live_seats.begin());
  return view;
}

}  // namespace onetrip
