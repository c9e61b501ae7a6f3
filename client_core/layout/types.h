// Identities that travel through every layer, as types: a node is not a region is not an epoch.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_TYPES_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_TYPES_H_

#include <compare>
#include <cstdint>

namespace onetrip {

// A memory node of the cluster map; dense, from 0.
struct NodeId {
  uint16_t value = 0;
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

// A worker's identity for life: given out by the master, never reused. 22 bits travel in slot
// words.
struct WorkerId {
  uint32_t value = 0;
  friend auto operator<=>(const WorkerId&, const WorkerId&) = default;
};

// A live worker's place in the tables of the root area; reused after the worker was fenced.
struct WorkerIndex {
  uint16_t value = 0;
  friend auto operator<=>(const WorkerIndex&, const WorkerIndex&) = default;
};

// The cluster map's version.
struct Epoch {
  uint64_t value = 0;
  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

// Keys are hashed and stored under one of these; a database number maps to one, FLUSHDB maps it to
// a new one.
struct KeyspaceId {
  uint32_t value = 0;
  friend auto operator<=>(const KeyspaceId&, const KeyspaceId&) = default;
};

// One memory node's memory, by byte offset: where a fabric operation goes.
struct RemoteAddr {
  NodeId node;
  uint64_t offset = 0;
};

inline constexpr int kMaxReplicas = 5;
inline constexpr uint32_t kMaxWorkers = 1024;
inline constexpr uint32_t kMaxDatabases = 16;

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_TYPES_H_
