// DurableState: what a master must find again after a restart, and the changes that lead to it.
//
// Everything else it knows (streams, leases, who has acknowledged what) it learns anew from the
// members that come back. Plain values; no thread rule.
#ifndef ONETRIP_MASTER_DURABLE_STATE_H_
#define ONETRIP_MASTER_DURABLE_STATE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

struct ClusterRecord {
  uint64_t cluster = 0;  // 0: there is no cluster yet
  int replicas = 0;
  uint16_t nodes = 0;        // that the map is made of; those with higher ids are spares
  uint64_t next_member = 1;  // ids below were given out
  uint32_t next_worker = 1;
  uint32_t next_keyspace = 1;
  uint64_t epoch = 0;    // of the newest view that anybody may have seen; 0: there is no map yet
  uint64_t time_us = 0;  // no cluster time above it was ever told
  uint16_t worker_index_end = 0;
  std::array<KeyspaceId, kMaxDatabases> keyspaces{};
  friend bool operator==(const ClusterRecord&, const ClusterRecord&) = default;
};

struct NodeRecord {
  uint64_t incarnation = 0;
  uint64_t bytes = 0;
  NodeAddress address;  // empty until it has served once
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

// A worker's place, from its join until it has left or was fenced on every node of the map.
struct SeatRecord {
  WorkerId worker;
  uint64_t member = 0;  // the agent
  bool expelled = false;
  friend bool operator==(const SeatRecord&, const SeatRecord&) = default;
};

struct AgentRecord {
  uint64_t pid = 0;
  std::string host;
  std::string address;
  std::string version;
  friend bool operator==(const AgentRecord&, const AgentRecord&) = default;
};

struct DurableState {
  ClusterRecord cluster;
  std::vector<NodeRecord> nodes;           // by id
  std::vector<RegionPlacement> regions;    // of the map, which never changes
  std::map<uint16_t, SeatRecord> seats;    // by worker index
  std::map<uint64_t, AgentRecord> agents;  // by member id; expelled ones stay until fenced
};

// What must be written together, before anything that depends on it is sent.
struct DurableChange {
  std::optional<ClusterRecord> cluster;
  std::map<uint16_t, NodeRecord> nodes;
  std::vector<RegionPlacement> regions;                   // empty: as before
  std::map<uint16_t, std::optional<SeatRecord>> seats;    // nothing: free
  std::map<uint64_t, std::optional<AgentRecord>> agents;  // nothing: gone

  [[nodiscard]] bool empty() const {
    return !cluster.has_value() && nodes.empty() && regions.empty() && seats.empty() &&
           agents.empty();
  }
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_DURABLE_STATE_H_
