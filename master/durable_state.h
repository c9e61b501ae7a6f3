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
#include <set>
#include <string>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Engines that may work on one memory (client_core/replication/engine.h).
enum class EngineFamily : uint8_t {
  kNone,        // no worker has joined yet
  kReplicated,  // swarm, snapshot, abd
  kSingleCopy,  // raw
};

// The family of an agent's engine, by its name.
inline EngineFamily EngineFamilyOf(const std::string& engine) {
  return engine == "raw" ? EngineFamily::kSingleCopy : EngineFamily::kReplicated;
}

struct ClusterRecord {
  uint64_t cluster = 0;  // 0: there is no cluster yet
  int replicas = 0;
  uint16_t nodes = 0;        // that the map is made of; those with higher ids are spares
  uint64_t next_member = 1;  // ids below were given out
  uint32_t next_worker = 1;
  uint32_t next_keyspace = 1;
  uint64_t epoch = 0;    // the newest that a member may have seen; 0: there is no map yet
  uint64_t time_us = 0;  // no cluster time above it was ever told
  uint16_t worker_index_end = 0;
  std::array<KeyspaceId, kMaxDatabases> keyspaces{};
  // Slots may be half-done: their writer died, or a node was put out.
  bool resolve_due = false;
  // A node was put out, and registers may lack their largest word on a live replica.
  bool scrub_due = false;
  // Damaged memory was accepted: replicas may differ anywhere. Done with the slots.
  bool heal_due = false;
  // The agent that was asked for a repair in a quiesce, and has not answered; 0: none.
  uint64_t repairer = 0;
  bool records_only = false;  // as in View
  uint16_t leaving = 0;       // likewise
  uint8_t directory = 0;      // likewise
  // Regions may be given up for what drains, since there was no room when that was asked for.
  bool may_shrink = false;
  bool index_left = false;  // nothing of the index lies in regions that leave
  uint64_t life = 0;        // names the master that wrote this; 0: one of before lives had names
  EngineFamily engines = EngineFamily::kNone;
  bool nobody_stayed = false;  // the last life ended in order, after all members had left
  friend bool operator==(const ClusterRecord&, const ClusterRecord&) = default;
};

// The wish of an operator for a node's regions.
enum class NodeWish : uint8_t {
  kNone,
  kShare,  // it is given its share; then the wish is over
  kDrain,  // it gives all, and is given none, until told otherwise
};

struct NodeRecord {
  uint64_t incarnation = 0;
  uint64_t bytes = 0;
  NodeAddress address;  // empty until it has served once
  bool out = false;     // as in NodeInfo: put out, or without regions
  NodeWish wish = NodeWish::kNone;
  uint32_t wish_regions = 0;  // that it held when it was to drain
  uint64_t mark = 0;          // the largest that its memory was seen with; 0: none
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

// A worker's place, from its join until it has left, or was fenced on every node that is not out.
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
  std::vector<RegionPlacement> regions;    // by number, which never changes
  std::map<uint16_t, SeatRecord> seats;    // by worker index
  std::map<uint64_t, AgentRecord> agents;  // by member id; expelled ones stay until fenced
  // Workers whose seats are free, but whom a node that was out then has not fenced.
  std::set<uint32_t> former;
  // By earlier life of the master: the newest epoch that a member may have heard of in it. For life
  // 0, and for lives that are not listed, the newest when lives got names; or nothing.
  std::map<uint64_t, uint64_t> lives;
};

// Records that must be written together, before anything that depends on them is sent.
struct DurableChange {
  std::optional<ClusterRecord> cluster;
  std::map<uint16_t, NodeRecord> nodes;
  std::optional<uint32_t> regions_end;          // regions from here on are gone, but for these:
  std::map<uint32_t, RegionPlacement> regions;  // by number, without a gap at the end
  std::map<uint16_t, std::optional<SeatRecord>> seats;    // nothing: free
  std::map<uint64_t, std::optional<AgentRecord>> agents;  // nothing: gone
  std::map<uint32_t, bool> former;                        // true: it is one
  std::map<uint64_t, std::optional<uint64_t>> lives;      // nothing: forgotten

  [[nodiscard]] bool empty() const {
    return !cluster.has_value() && nodes.empty() && !regions_end.has_value() && regions.empty() &&
           seats.empty() && agents.empty() && former.empty() && lives.empty();
  }
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_DURABLE_STATE_H_
