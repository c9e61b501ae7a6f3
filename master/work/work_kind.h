// WorkKind: one kind of work for which agents hold. A new kind is one file in this folder, and one
// row in work_table.cc.
//
// holds.cc carries every kind through the same life: it is due, agents hold, an agent is asked to
// do it if it takes one, and what has come of it is in the next view.
#ifndef ONETRIP_MASTER_WORK_WORK_KIND_H_
#define ONETRIP_MASTER_WORK_WORK_KIND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client_core/cluster/repair_order.h"
#include "master/membership.h"
#include "master/state.h"

namespace onetrip::master {

// Without state of its own. One thread.
class WorkKind {
 public:
  virtual ~WorkKind() = default;

  // The quiesce for it that is to start now, with its parameters; nothing: it is not due, or
  // another kind names it as a step on its own way.
  [[nodiscard]] virtual std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const;
  // True if a quiesce that has started is still of use.
  [[nodiscard]] virtual bool IsStillDue(const ClusterState& state, const Hold& hold,
                                        uint64_t now_us) const;
  // How far agents stand still.
  [[nodiscard]] virtual HoldKind hold_kind() const { return HoldKind::kAll; }
  // True if all stand still for the sake of a region, which could as well wait: then a quiesce is
  // short.
  [[nodiscard]] virtual bool is_of_region() const { return true; }

  // The work that an agent is asked for while all are quiesced; nothing: there is only a view to
  // commit.
  [[nodiscard]] virtual std::optional<RepairKind> repair_kind() const { return std::nullopt; }
  // Fills in what `order` says of this kind, and makes of `proposed`, which is the state's with the
  // next epoch, the view that the agent works under.
  virtual void FillOrder(const ClusterState& state, const Hold& hold, MembershipState* proposed,
                         RepairOrder* order) const;

  // All hold, and it is done: changes what the next view says. The caller commits that view.
  virtual void Commit(ClusterState& state, Effects& effects, const Hold& hold,
                      uint64_t now_us) const = 0;
  // The agent has said that it cannot do it. The caller ends the quiesce.
  virtual void OnFailed(ClusterState& state, uint64_t now_us) const;
  // `missing`, an agent by name, did not hold in time: ends the state's hold.
  virtual void OnTimeout(ClusterState& state, Effects& effects, const std::string& missing,
                         uint64_t now_us) const;
};

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_WORK_WORK_KIND_H_
