// MasterClient: what a worker asks the master, behind an interface (in this process, simulated,
// over a network). Never on the data path: a worker that cannot reach the master goes on with its
// view.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_MASTER_CLIENT_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_MASTER_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "client_core/base/status.h"
#include "client_core/cluster/quiesce.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/layout/types.h"

namespace onetrip {

// A worker's membership, from Join to Leave.
struct Membership {
  WorkerId id;
  WorkerIndex index;
};

// Every call of a worker names its hold, which also tells where the worker goes on.
class MasterClient {
 public:
  virtual ~MasterClient() = default;

  // The version of the newest committed view; one load. Any thread.
  [[nodiscard]] uint64_t view_version() const {
    return view_version_.load(std::memory_order_acquire);
  }
  // The newest committed view. Any thread.
  [[nodiscard]] virtual std::shared_ptr<const View> view() const = 0;

  // Cluster time less this host's steady time, in microseconds; see ClusterClock. Moves slowly
  // after the first Join. Any thread.
  [[nodiscard]] const std::atomic<int64_t>& clock_offset_us() const { return clock_offset_us_; }

  // Makes a member; every agent has a view with it when it returns. From now on `hold` is held
  // while a change of the view needs it; it outlives the membership, or ends with the worker.
  // kUnavailable: kMaxWorkers are members, or the master does not answer.
  // kUnknownOutcome: the connection broke; there may be a member that no worker is.
  virtual Task<Result<Membership>> Join(Quiesce& hold) = 0;
  // Ends a membership. REQUIRES: every operation of the worker has completed on every node.
  virtual Task<Status> Leave(Quiesce& hold, Membership membership) = 0;

  // Maps `database` (all of them if none is named) to a fresh, empty keyspace. When it returns ok,
  // the new view is committed. Old keyspaces are swept by the workers.
  // kUnavailable: nothing was done. kUnknownOutcome: it may have been.
  virtual Task<Status> FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) = 0;
  // Lets two databases exchange their keyspaces while nothing is under way on any memory node: no
  // operation on either may land in the other. Results as FlushKeyspaces.
  // REQUIRES: both below kMaxDatabases.
  virtual Task<Status> SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) = 0;

 protected:
  // Set by the implementation once view() returns the view of this version.
  std::atomic<uint64_t> view_version_{0};
  std::atomic<int64_t> clock_offset_us_{0};
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_MASTER_CLIENT_H_
