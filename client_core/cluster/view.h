// View: one version of the cluster map, immutable (docs/MASTER.md, "A view").
//
// Tells where every replica of every region lies and which keyspace a database number means. The
// master makes views; workers hold one at a time and look a newer one up when its version changes.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_VIEW_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_VIEW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/types.h"

namespace onetrip {

// A region's replicas: `nodes[0]` is the primary. `base[i]` is the region's first byte on nodes[i].
struct RegionPlacement {
  std::array<NodeId, kMaxReplicas> nodes;
  std::array<uint64_t, kMaxReplicas> base;
  // The last `missing` replicas are missing: their node is out, or the copy there is not complete.
  // No process reads or writes them, but for a repair.
  uint8_t missing = 0;
  friend bool operator==(const RegionPlacement&, const RegionPlacement&) = default;
};

// How agents reach a memory node.
struct NodeAddress {
  std::string tcp_host;  // empty: not over tcp
  uint16_t tcp_port = 0;
  std::string shm_path;  // its unix socket's; empty: not over shm
  std::string host_id;   // the host's that the path is on
  // The device by which its memory is reached, in words; not empty: over RDMA alone, and tcp is for
  // the workers' channels.
  std::string rdma = {};
  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct NodeInfo {
  uint64_t incarnation = 0;  // names its memory; another one means that the old content is gone
  NodeAddress address;
  // Lost, or without regions: nothing is sent to it or waited for.
  bool out = false;
  friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
};

struct View {
  uint64_t cluster = 0;  // names the cluster; 0 inside one process
  Epoch epoch;
  int replicas = 3;  // a region's, the missing ones counted; quorums are of them
  std::vector<RegionPlacement> regions;
  std::array<KeyspaceId, kMaxDatabases> keyspaces;
  uint16_t node_count = 0;
  // One more than the largest index of a worker that has ever joined: how much of the epoch and
  // counter tables is in use.
  uint16_t worker_index_end = 0;
  // Bit i % 64 of word i / 64: the worker with index i lives. An entry of another in the epoch
  // table counts for nothing: its worker was fenced, or has not started yet.
  std::array<uint64_t, kMaxWorkers / 64> live_seats{};
  std::vector<NodeInfo> nodes;  // by id; empty inside one process, where no node has an address
  // Regions move: no key becomes a register, and who writes to one makes it a record. A register's
  // buffers would not lie on its nodes any more.
  bool records_only = false;
  // The last `leaving` regions are given up: no worker allocates there, or is granted anything, and
  // what lies there goes elsewhere. A later view may lack them.
  uint16_t leaving = 0;
  // Which of the index's directories is the one in force.
  uint8_t directory = 0;

  [[nodiscard]] bool IsLive(WorkerIndex worker) const {
    return ((live_seats[worker.value / 64] >> (worker.value % 64)) & 1) != 0;
  }
  void SetLive(WorkerIndex worker, bool live) {
    const uint64_t bit = 1ULL << (worker.value % 64);
    uint64_t& word = live_seats[worker.value / 64];
    word = live ? word | bit : word & ~bit;
  }

  // True if every replica is where `other` has it, and so is the index.
  [[nodiscard]] bool SamePlaces(const View& other) const {
    const auto out = [](const NodeInfo& a, const NodeInfo& b) { return a.out == b.out; };
    return epoch == other.epoch ||
           (regions == other.regions && directory == other.directory &&
            std::equal(nodes.begin(), nodes.end(), other.nodes.begin(), other.nodes.end(), out));
  }

  [[nodiscard]] bool Contains(GlobalAddr addr) const { return addr.region() < regions.size(); }

  // True if its region is about to be given up.
  [[nodiscard]] bool IsLeaving(GlobalAddr addr) const {
    return addr.region() + leaving >= regions.size();
  }

  [[nodiscard]] bool IsOut(NodeId node) const {
    return node.value < nodes.size() && nodes[node.value].out;
  }

  // How many replicas of `addr` there are now; at least one. REQUIRES: Contains(addr).
  [[nodiscard]] int LiveReplicas(GlobalAddr addr) const {
    CHECK(addr.region() < regions.size());
    return replicas - regions[addr.region()].missing;
  }

  // Where replica `replica` of `addr` lies; 0 is the primary. REQUIRES: Contains(addr).
  [[nodiscard]] RemoteAddr Locate(GlobalAddr addr, int replica) const {
    CHECK(addr.region() < regions.size());
    const RegionPlacement& placement = regions[addr.region()];
    return {placement.nodes[replica], placement.base[replica] + addr.offset()};
  }

  // Where the replica of `addr` on `node` lies, or the primary's if it has none there.
  [[nodiscard]] RemoteAddr LocateOn(GlobalAddr addr, NodeId node) const {
    CHECK(addr.region() < regions.size());
    const RegionPlacement& placement = regions[addr.region()];
    for (int i = 0; i < replicas - placement.missing; ++i) {
      if (placement.nodes[i] == node) return {node, placement.base[i] + addr.offset()};
    }
    return Locate(addr, 0);
  }
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_VIEW_H_
