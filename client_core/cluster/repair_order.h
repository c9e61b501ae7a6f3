// The master's orders to agents when a memory node is lost or comes back, or when regions move
// (docs/MASTER.md): to hold operations, and one of them to repair.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "client_core/cluster/view.h"

namespace onetrip {

// How far a worker stands still while the view changes.
enum class HoldKind : uint8_t {
  kStart,  // no operation starts; what has started goes on
  kSlots,  // nothing that may touch a slot is under way; operations on known registers go on
  kAll,    // nothing of the worker is under way on any memory node
};

enum class RepairKind : uint8_t {
  // Make the live replicas of every slot of `view` alike, in the place of whoever has written some
  // of them (FUSEE 5.2, the representative last writer). All workers hold kSlots.
  kResolveSlots,
  // Bring every register's largest word to a majority, asked of the live replicas. No worker holds.
  kScrubRegisters,
  // Copy `region` to its first missing replica. All workers hold kAll.
  kCopyRegion,
  // Take over the blocks of workers that are none of `living`. No worker holds.
  kTakeOverBlocks,
  // Make a record of every register. No worker holds; `view`, which lets no worker make another, is
  // in force everywhere.
  kEndRegisters,
  // Copy the replica of `region` on `source` to `target`. All workers hold kAll.
  kMoveRegion,
  // Write the headers of regions that no worker has used yet, empty, on all their nodes: of those
  // of `view` from `region` on. All workers hold kAll.
  kFormatRegions,
  // Move what of the index lies in regions that leave elsewhere, and write the directory of `view`,
  // the one that is not in force yet, anew. All workers hold kAll.
  kMoveSubtables,
};

// True if others hold meanwhile; else the repair ends, done or not, when a quiesce comes.
constexpr bool IsUnderHold(RepairKind kind) {
  return kind == RepairKind::kResolveSlots || kind == RepairKind::kCopyRegion ||
         kind == RepairKind::kMoveRegion || kind == RepairKind::kFormatRegions ||
         kind == RepairKind::kMoveSubtables;
}

// Who is, or may become, a worker.
struct LivingWorkers {
  std::vector<WorkerId> ids;  // ascending
  WorkerId next{};            // from here on none has been given out yet
  [[nodiscard]] bool Includes(WorkerId id) const {
    return id.value >= next.value || std::binary_search(ids.begin(), ids.end(), id);
  }
  friend bool operator==(const LivingWorkers&, const LivingWorkers&) = default;
};

struct RepairOrder {
  RepairKind kind = RepairKind::kResolveSlots;
  std::shared_ptr<const View> view;  // to work under; may not be in force yet
  uint32_t region = 0;               // for kCopyRegion and kMoveRegion; kFormatRegions' first one
  LivingWorkers living = {};         // for kTakeOverBlocks
  NodeId source{};                   // for kMoveRegion
  RemoteAddr target{};               // for kMoveRegion: the region's first byte there
  // Of kResolveSlots: damaged memory was accepted as it is, so that replicas may differ anywhere.
  bool damaged = false;
  // For kScrubRegisters and kEndRegisters, not 0: a worker that is asked again with the same number
  // goes on where a quiesce has cut its walk short; nothing has happened since that it would miss.
  uint64_t walk = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_
