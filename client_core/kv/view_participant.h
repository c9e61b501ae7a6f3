// ViewParticipant: what the master asks of a worker when a memory node is lost or comes back, and
// when regions move (repair_order.h). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_VIEW_PARTICIPANT_H_
#define ONETRIP_CLIENT_CORE_KV_VIEW_PARTICIPANT_H_

#include "client_core/kv/chores/chores.h"
#include "client_core/kv/core/core.h"

namespace onetrip {

class ViewParticipant final : public WorkerDuties {
 public:
  ViewParticipant(KvCore& core, Chores& chores) : core_(core), chores_(chores) {}

  void LeaveNode(NodeId node) override;
  void UseView(const View& view) override;
  [[nodiscard]] bool Reaches(NodeId node) const override {
    return core_.context.fabric.Reaches(node);
  }
  // A batch that has failed may still take effect, where another region lies by then.
  [[nodiscard]] bool quiet() const override {
    return core_.reclaimer.is_idle() && core_.context.fabric.settled();
  }
  void Repair(RepairOrder order, DoneFn done) override;

 private:
  Task<void> RunRepair(RepairOrder order, DoneFn done);
  Task<Status> HealDamage(const View& view);

  KvCore& core_;
  Chores& chores_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_VIEW_PARTICIPANT_H_
