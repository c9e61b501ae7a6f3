// WorkerOrder: what an agent's session with the master tells the workers, and how a worker does it.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_WORKER_ORDER_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_WORKER_ORDER_H_

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "client_core/cluster/quiesce.h"
#include "client_core/cluster/repair_order.h"
#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Quiesces; done when nothing is under way that `kind` waits for.
struct QuiesceOrder {
  HoldKind kind = HoldKind::kStart;
  std::vector<NodeId> evict = {};  // memory nodes from which nothing is waited for any more
};
// Done when the worker has a channel to the memory node.
struct ReachOrder {
  NodeId node;
};
// Works under this view from now on; done at once.
struct ViewOrder {
  std::shared_ptr<const View> view;
  bool ends_quiesce = false;
};
using WorkerOrder = std::variant<QuiesceOrder, ReachOrder, ViewOrder>;

// Both on the worker's thread. `done` is called once, perhaps at once; it is destroyed without a
// call with the worker, when a later quiesce or a view takes a quiesce's place, and when the worker
// has no duties any more and will reach no node.
void CarryOut(const WorkerOrder& order, Quiesce& worker, std::function<void()> done);
// `done` says kUnavailable if the worker has not started yet or has ended.
void CarryOut(const RepairOrder& order, Quiesce& worker, const WorkerDuties::DoneFn& done);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_WORKER_ORDER_H_
