// NodeMasterClient: the master as a memory node's process sees it.
//
// An interface, so that the node's process can be tested without a master. The master never speaks
// to a node about data: it hands out its number and its share of the map, and tells it whom to
// refuse.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_NODE_MASTER_CLIENT_H_
#define ONETRIP_CLIENT_CORE_CONTROL_NODE_MASTER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/node_session.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

struct NodeReport {
  uint64_t blocks = 0;
  uint64_t granted_blocks = 0;
  uint64_t operations = 0;
  uint64_t page_bytes = 0;  // the size of pages that the memory may have; 0: not known
  uint64_t mark = 0;        // the memory's, as it stands in its image
  NodeUsage usage = {};
};

// Does what the master asks of a node that serves. Called one at a time, and may block for as long
// as a fence takes; but for Report().
class NodeDuties {
 public:
  virtual ~NodeDuties() = default;
  // Refuses `workers`, and every worker whose view is older than `epoch`. Ok: nothing of `workers`
  // will touch the memory any more. Otherwise *reason says why in one line; the master asks again.
  virtual Status Fence(const std::vector<WorkerId>& workers, Epoch epoch, std::string* reason) = 0;
  // A new view is in force.
  virtual void OnView(const std::shared_ptr<const View>& view) = 0;
  // The master has stored this mark of the node's memory. Any thread; must not block.
  virtual void OnMarkStored(uint64_t mark) = 0;
  // How old the memory is now, said when the node joins again. Any thread; must not block.
  virtual NodeAge Age() = 0;
  // `file` is the newest copy of the master's state, as a file has it (kept_state.h).
  virtual void OnState(const std::string& file) = 0;
  // For the cluster's status; called with every renewal, which waits for it, on another thread than
  // the rest and beside it: must not block.
  virtual NodeReport Report() = 0;
};

class NodeMasterClient {
 public:
  virtual ~NodeMasterClient() = default;

  // Finds the master and asks for a place; waits, and keeps trying, until enough nodes have joined
  // that there is a map, or the master says no. Blocks. kUnavailable: the time that the session may
  // take is over, or Stop() was called; kInvalidArgument: no retry will help. On failure *reason is
  // one line.
  virtual Result<NodePlace> Join(const NodeOffer& offer, std::string* reason) = 0;
  // Tells the master that the memory's mark has grown to this. Ok: the master has stored it. Blocks
  // for `timeout_ms` at most. REQUIRES: joined.
  virtual Status NoteMark(uint64_t mark, uint64_t timeout_ms, std::string* reason) = 0;
  // The node serves at `address`: agents may come. From here on the session renews the lease,
  // reconnects when the master is away, and calls `duties`, which outlives it or Stop().
  virtual Status Serve(const NodeAddress& address, NodeDuties* duties, std::string* reason) = 0;
  // Says goodbye if `leave`, and ends. Any thread, more than once; never from a duty.
  virtual void Stop(bool leave) = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_NODE_MASTER_CLIENT_H_
