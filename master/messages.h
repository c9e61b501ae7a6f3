// Messages between members and master once the handshake is over (control.proto), as plain structs:
// the state machine and a simulation know neither protobuf nor gRPC. Messages that sessions deal
// with are in client_core/cluster/messages.h.
#ifndef ONETRIP_MASTER_MESSAGES_H_
#define ONETRIP_MASTER_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/messages.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/cluster/view.h"
#include "client_core/control/cluster_status.h"
#include "client_core/layout/types.h"
#include "master/durable_state.h"

namespace onetrip {

// ---- From members ----

// The claims of a process when its stream opens; proved before the state machine sees them.
struct MemberHello {
  MemberKind kind = MemberKind::kOther;
  uint64_t cluster = 0;  // 0: not known yet
  uint64_t member = 0;   // 0: new
  uint64_t epoch = 0;
  std::string version;
  uint64_t pid = 0;
  std::string host;
  std::string address;
  std::string engine = {};   // an agent's
  uint64_t life = 0;         // the life of the master that welcomed it last; 0: none did
  uint64_t time_us = 0;      // cluster time, as it knows it; 0: it knows none
  uint64_t wall_us = 0;      // its host's wall clock; 0: not told
  std::string host_id = {};  // ProcessSpace()
};

struct MemberReport {
  uint64_t blocks = 0;
  uint64_t granted_blocks = 0;
  uint64_t operations = 0;
  uint64_t workers = 0;
  uint64_t page_bytes = 0;  // a memory node's, of its memory; 0: not known
  uint64_t mark = 0;        // ... and how old that is
  NodeUsage node = {};      // a memory node's
  WorkerUsage agent = {};   // an agent's
  bool is_told = false;     // by the member, since this life of the master began
};

struct RenewMessage {
  uint64_t sequence = 0;
  MemberReport report;
  bool quiet = false;  // no answer is wanted
};

struct JoinWorkerRequest {};
struct LeaveWorkerRequest {
  WorkerId worker;
  uint32_t index = 0;
};
struct FlushRequest {
  std::optional<uint32_t> database;  // nothing: all
};
struct SwapRequest {
  uint32_t first = 0;
  uint32_t second = 0;
};
// The memory's mark has grown.
struct NoteMarkRequest {
  uint64_t mark = 0;
};
struct ServeNodeRequest {
  std::optional<NodeAddress> address;  // nothing: it made no sense
};
// From tools.
struct MoveRegionsRequest {
  uint32_t node = 0;
  NodeWish wish = NodeWish::kNone;
};
struct AcceptLossRequest {
  bool confirmed = false;
};
struct StatusRequest {};
struct BackupRequest {};  // the driver's, for it has the store
struct LeaveRequest {};

struct RequestMessage {
  uint64_t id = 0;
  // monostate: nothing that this master knows.
  std::variant<std::monostate, JoinWorkerRequest, LeaveWorkerRequest, FlushRequest, SwapRequest,
               JoinNodeRequest, NoteMarkRequest, ServeNodeRequest, MoveRegionsRequest,
               AcceptLossRequest, StatusRequest, BackupRequest, LeaveRequest>
      body;
};

using MemberMessage =
    std::variant<RenewMessage, RequestMessage, ViewHeldMessage, ViewInForceMessage, FencedMessage,
                 RepairedMessage, ReachedMessage, UnreachedMessage>;

// ---- From the master ----

struct RenewedMessage {
  uint64_t sequence = 0;
  uint64_t time_us = 0;  // 0: not known yet
  uint64_t mark = 0;     // if a memory node is answered: the largest that is stored
};

struct WorkerJoined {
  WorkerId worker;
  WorkerIndex index;
  uint64_t time_us = 0;  // cluster time
};
struct NodeJoined {
  NodeId node;
  std::shared_ptr<const View> view;
  std::vector<WorkerId> expelled;
  uint64_t mark = 0;  // that is stored of its memory
  std::string outdated =
      {};  // the memory is an older copy, why in one line, and counts for nothing
};
struct StatusReply {
  ClusterStatusInfo status;
  std::string waiting_for;  // one line; empty: the cluster waits for nothing
  std::string moving;       // one line; empty: no regions move
  std::string unreached;    // one line; empty: every agent reaches every memory node
};

struct BackupReply {
  std::string bytes;  // a master.db
};

struct ReplyMessage {
  uint64_t id = 0;
  StatusCode code = StatusCode::kOk;
  std::string reason;  // one line, when not ok
  std::variant<std::monostate, WorkerJoined, NodeJoined, StatusReply, BackupReply> body;
};
struct ExpelledMessage {
  std::string reason;
};
// To an agent: how much memory is used, which has become another.
struct UsageMessage {
  std::shared_ptr<const PoolUsage> usage;
};

using MasterMessage =
    std::variant<RenewedMessage, ReplyMessage, HoldForViewMessage, ViewCommittedMessage,
                 FenceMessage, ExpelledMessage, RepairMessage, ReachMessage, UsageMessage>;

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MESSAGES_H_
