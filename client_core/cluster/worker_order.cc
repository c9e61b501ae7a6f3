#include "client_core/cluster/worker_order.h"

#include <utility>

namespace onetrip {
namespace {

void Quiesce(const QuiesceOrder& order, Quiesce& worker, std::function<void()> done) {
  for (const NodeId node : order.evict) {
    if (worker.duties() != nullptr) worker.duties()->LeaveNode(node);
  }
  worker.Hold(order.kind, std::move(done));
}

void UseView(const ViewOrder& order, Quiesce& worker, const std::function<void()>& done) {
  if (worker.duties() != nullptr) worker.duties()->UseView(*order.view);
  if (order.ends_quiesce) worker.Release();
  done();
}

}  // namespace

void CarryOut(const WorkerOrder& order, Quiesce& worker, std::function<void()> done) {
  if (const auto* quiesce = std::get_if<QuiesceOrder>(&order)) {
    Quiesce(*quiesce, worker, std::move(done));
  } else if (const auto* reach = std::get_if<ReachOrder>(&order)) {
    worker.AwaitReach(reach->node, std::move(done));
  } else {
    UseView(std::get<ViewOrder>(order), worker, done);
  }
}

void CarryOut(const RepairOrder& order, Quiesce& worker, const WorkerDuties::DoneFn& done) {
  if (worker.duties() == nullptr) {
    return done(Status(StatusCode::kUnavailable, "the worker has not started, or has ended"));
  }
  worker.duties()->Repair(order, done);
}

}  // namespace onetrip
