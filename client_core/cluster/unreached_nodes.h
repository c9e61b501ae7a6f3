// UnreachedNodes: the memory nodes that an agent's process does not reach, by what its workers' own
// channels have shown and, where a worker has none since the node is out or since it has not joined
// yet, by connections that are tried. What the agent tells the master (control.proto, Unreached).
//
// One thread.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_UNREACHED_NODES_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_UNREACHED_NODES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

class UnreachedNodes {
 public:
  struct Entry {
    std::set<uint32_t> workers;      // whose channels are broken
    bool probed = false;             // no connection can be made; to be tried again
    std::optional<WorkerId> worker;  // who noticed first; nothing: none, before it joined
    uint64_t since_ns = 0;
  };

  // Each returns whether other nodes are unreached than before.
  bool WorkerSays(WorkerId worker, NodeId node, bool reached, uint64_t now_ns);
  bool WorkerGone(WorkerId worker);
  // A connection was tried.
  bool Probed(NodeId node, bool reached, uint64_t now_ns);
  // Nodes that are out now have no channels any more: they are to be tried.
  void UseView(const View& view);

  [[nodiscard]] std::vector<NodeId> ToProbe() const;
  [[nodiscard]] const std::map<uint16_t, Entry>& entries() const { return entries_; }

 private:
  bool EraseReached();

  std::set<uint16_t> out_;  // in the newest view
  std::map<uint16_t, Entry> entries_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_UNREACHED_NODES_H_
