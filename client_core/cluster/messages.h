// Messages: the master asks agents and memory nodes for something, and they answer (control.proto).
// Plain structs: sessions and the master's state machine know neither protobuf nor gRPC.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_MESSAGES_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/cluster/repair_order.h"
#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

// ---- From the master ----

struct HoldForViewMessage {
  Epoch epoch;
  HoldKind kind = HoldKind::kStart;
  std::vector<NodeId> leave = {};  // nodes that are taken for lost: what waits for them fails
};
// To an agent: do this, and say when it is done.
struct RepairMessage {
  uint64_t id = 0;
  RepairOrder order;
};
// To an agent: say when every worker has a channel to this memory node.
struct ReachMessage {
  uint64_t id = 0;
  NodeId node;
};
struct ViewCommittedMessage {
  std::shared_ptr<const View> view;
};
// To a memory node: refuse these workers, and every worker whose view is older.
struct FenceMessage {
  uint64_t id = 0;
  Epoch epoch;
  std::vector<WorkerId> workers;
};

// ---- From members ----

// A memory node asks for its place.
struct JoinNodeRequest {
  uint64_t bytes = 0;
  uint64_t incarnation = 0;
  bool adopted = false;
  uint64_t owner_cluster = 0;
  uint32_t owner_node = 0;
  std::string damage = {};  // that memory's; empty: none
  bool accepted = false;    // there is, but it is to count as it is
  // How old that memory is, and what its node has seen; 0: not known.
  uint64_t mark = 0;
  uint64_t told = 0;
  uint64_t epoch = 0;
  uint32_t next_worker = 0;
  bool accepts_old = false;   // it counts even if it is older than the master remembers
  std::string outdated = {};  // the master's: that is so, and why
};
struct ViewHeldMessage {
  Epoch epoch;
};
struct ViewInForceMessage {
  Epoch epoch;
};
struct FencedMessage {
  uint64_t id = 0;
  bool done = false;
  std::string reason;
};
// The answer to a ReachMessage, when it is so.
struct ReachedMessage {
  uint64_t id = 0;
};
// All memory nodes that the agent does not reach; told whenever others are.
struct UnreachedMessage {
  struct Node {
    NodeId node;
    uint32_t worker = 0;  // who noticed; 0: none, it has not joined yet
    uint64_t for_ms = 0;
  };
  std::vector<Node> nodes;
};
// The answer to a RepairMessage.
struct RepairedMessage {
  uint64_t id = 0;
  bool done = false;
  std::string reason;  // one line, when it is not done
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_MESSAGES_H_
