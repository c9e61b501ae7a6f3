// PoolUsage: how much of the cluster's memory is used, in bytes of one replica. One figure for all:
// the master adds it up and tells every agent and `onetrip status` the same.
//
// It is a state, not a balance: memory nodes tell which blocks are granted and what their bitmaps
// say is free in them, workers what is free in their own lists and what they have retired. So what
// a member that dies knew is missing for a while, and nothing drifts. Pure.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_POOL_USAGE_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_POOL_USAGE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"

namespace onetrip {

// By index of size class.
using BytesByClass = std::array<uint64_t, SizeClass::kCount>;

inline void AddByClass(const BytesByClass& from, BytesByClass* to) {
  for (size_t i = 0; i < to->size(); ++i) (*to)[i] += from[i];
}

// The report of a process's workers on their memory.
struct WorkerUsage {
  BytesByClass free_bytes{};   // in their blocks, ready to be allocated
  uint64_t retired_bytes = 0;  // deleted or overwritten, and reused a moment later
  // Of the object for which one of them has found no memory in the last seconds; 0: none.
  uint64_t refused_bytes = 0;

  friend bool operator==(const WorkerUsage&, const WorkerUsage&) = default;
};

// The report of a memory node on the regions of which it is the primary.
struct NodeUsage {
  uint64_t blocks = 0;  // the root area's not counted
  uint64_t granted_blocks = 0;
  uint64_t reserve_blocks = 0;
  uint64_t overhead_bytes = 0;  // in granted blocks: headers, and what no object fits into
  BytesByClass free_bytes{};    // that the bitmaps of granted blocks show
  // Of the granted blocks, exactly, those in regions that leave by the view of `view_epoch`.
  uint64_t leaving_blocks = 0;
  uint64_t view_epoch = 0;

  friend bool operator==(const NodeUsage&, const NodeUsage&) = default;
};

struct PoolUsage {
  uint64_t capacity_bytes = 0;  // for keys and index: all blocks but the reserve
  uint64_t reserve_bytes = 0;
  uint64_t granted_bytes = 0;
  uint64_t overhead_bytes = 0;
  uint64_t retired_bytes = 0;
  uint64_t refused_bytes = 0;  // as WorkerUsage's, of any worker
  BytesByClass free_bytes{};   // in blocks that are granted

  void Add(const NodeUsage& node) {
    granted_bytes += node.granted_blocks * kBlockBytes;
    reserve_bytes += node.reserve_blocks * kBlockBytes;
    overhead_bytes += node.overhead_bytes;
    AddByClass(node.free_bytes, &free_bytes);
  }
  void Add(const WorkerUsage& workers) {
    retired_bytes += workers.retired_bytes;
    refused_bytes = std::max(refused_bytes, workers.refused_bytes);
    AddByClass(workers.free_bytes, &free_bytes);
  }
  // REQUIRES: all are added.
  void SetBlocks(uint64_t blocks) {
    const uint64_t bytes = blocks * kBlockBytes;
    capacity_bytes = bytes - std::min(bytes, reserve_bytes);
  }

  [[nodiscard]] uint64_t free_in_blocks() const {
    return std::accumulate(free_bytes.begin(), free_bytes.end(), uint64_t{0});
  }
  // In blocks that any size class can have.
  [[nodiscard]] uint64_t free_block_bytes() const {
    return capacity_bytes - std::min(capacity_bytes, granted_bytes);
  }
  // Memory that nothing but a deletion, or an end of time, makes free: objects in use, with the
  // overhead of their blocks. Reports are of different moments, so it may be out of bounds for one
  // of them.
  [[nodiscard]] uint64_t used_bytes() const {
    const uint64_t not_used = free_in_blocks() + retired_bytes;
    return std::min(capacity_bytes, granted_bytes - std::min(granted_bytes, not_used));
  }
  // Rounded down.
  [[nodiscard]] uint64_t used_percent() const {
    if (capacity_bytes == 0) return 0;
    return static_cast<uint64_t>(100.0 * static_cast<double>(used_bytes()) /
                                 static_cast<double>(capacity_bytes));
  }

  friend bool operator==(const PoolUsage&, const PoolUsage&) = default;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_POOL_USAGE_H_
