// What the master asks of agents when a memory node is lost or comes back (PROTOCOLS 6): to hold
// operations, and one of them to repair.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_

#include <cstdint>
#include <memory>

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
  // Bring every register's largest word to a majority, asked of the live replicas. Nobody holds.
  kScrubRegisters,
  // Copy `region` to its first missing replica. All workers hold kAll.
  kCopyRegion,
};

struct RepairOrder {
  RepairKind kind = RepairKind::kResolveSlots;
  std::shared_ptr<const View> view;  // to work under; may not be in force yet
  uint32_t region = 0;               // of kCopyRegion
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_REPAIR_ORDER_H_
