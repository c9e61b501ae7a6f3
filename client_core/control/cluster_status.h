// ClusterStatusInfo: what the master tells people of the cluster, in plain C++; and how to ask.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CLUSTER_STATUS_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CLUSTER_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/control/control_options.h"

namespace onetrip {

enum class MemberKind : uint8_t { kAgent, kMemoryNode, kOther };

struct MemberStatusInfo {
  MemberKind kind = MemberKind::kOther;
  uint64_t member = 0;  // its number
  uint32_t node = 0;    // a memory node's
  std::string state;    // "up", "lost", "left", "fencing"; memory nodes also "joining", "spare",
                        // "damaged" (its memory is, and it is not out yet), "out" (lost, the
                        // cluster goes on without), "copying" (back, incomplete), "filling" (given
                        // its share), "draining", "drained" (may be switched off)
  uint64_t pid = 0;
  std::string host;
  std::string address;
  std::string version;
  uint64_t lease_left_ms = 0;
  // Memory nodes.
  uint64_t bytes = 0;
  uint64_t unusable_bytes = 0;  // among these: other nodes have no room for what would lie there
  uint32_t regions = 0;
  uint64_t blocks = 0;
  uint64_t granted_blocks = 0;
  uint64_t operations = 0;
  uint64_t page_bytes = 0;  // the size of pages that its memory may have; 0: not known
  std::string rdma;         // the device by which its memory is reached; empty: not over RDMA
  // Agents.
  uint64_t workers = 0;
};

struct ClusterStatusInfo {
  uint64_t cluster = 0;
  uint64_t epoch = 0;
  uint32_t replicas = 0;
  uint32_t nodes_expected = 0;
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  uint32_t regions_fully_redundant = 0;
  std::string state;  // "forming", "serving", "degraded", "not serving": regions have no majority
  // What joins, leaves and flushes wait for, in one line; empty: nothing. Where the master is asked
  // in its own process, StatusReply has it.
  std::string waiting_for;
  // Which regions move, and how far that is, in one line; empty: none. Likewise.
  std::string moving;
  // Which agents do not reach which memory nodes, in one line; empty: all reach all. Likewise.
  std::string unreached;
  // Nothing: not all who know have told since the master's start.
  std::optional<PoolUsage> usage;
  // Why writes are refused, or soon will be, and what helps, in one line; empty: there is room.
  std::string short_of_memory;
  uint64_t master_pid = 0;
  uint64_t master_uptime_s = 0;
  std::vector<MemberStatusInfo> members;
};

// Asks the master once, as a tool: opens a stream, proves itself, asks and goes. Blocks for at most
// `options.connect_timeout_ms` and the request's timeout; does not need the cluster to serve.
// kUnavailable: no answer in time; kInvalidArgument: no retry will help. *reason is one line.
Result<ClusterStatusInfo> QueryStatus(const ControlOptions& options, std::string* reason);

// The wish for a memory node's regions; see MoveRegions in control.proto.
enum class RegionWish : uint8_t { kNone, kShare, kDrain };

// Asks the master for it, likewise. Ok: it is durable, and happens from now on. kInvalidArgument:
// it cannot be; *reason says why. Asking twice is asking once.
Status AskToMoveRegions(const ControlOptions& options, uint32_t node, RegionWish wish,
                        std::string* reason);

// Asks the master to go on without the memory nodes that are lost, likewise. Ok: `confirmed`, and
// it has begun. kCorrupt: not `confirmed`; *reason says what would be lost. Otherwise it cannot be.
Status AskToAcceptLoss(const ControlOptions& options, bool confirmed, std::string* reason);

// The bytes of a master.db as the master's is now, likewise.
Result<std::string> FetchBackup(const ControlOptions& options, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CLUSTER_STATUS_H_
