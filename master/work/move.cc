#include "master/work/move.h"

#include "client_core/base/planted_bug.h"
#include "master/holds.h"
#include "master/placement.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/work/grow.h"
#include "master/work/leave.h"

namespace onetrip::master {
namespace {

class Move final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const override {
    if (!MovesAreWanted(state) || !MayMove(state, now_us)) return std::nullopt;
    std::optional<Hold> leave = NextLeave(state, now_us);
    // Where regions go to is known when those are gone that go nowhere.
    if (leave.has_value() || state.record.leaving != 0) return leave;
    MovePlanner planner = PlanMoves(state);
    // For what is added no key need be anything else.
    if (std::optional<Hold> growth = NextGrowth(&planner); growth.has_value()) {
      return AllReach(state, growth->grown) ? growth : std::nullopt;
    }
    if (RegistersAreToEnd(state)) return std::nullopt;
    const std::optional<RegionMove> move = planner.Next();
    // Whoever is to have it is in first.
    if (!move.has_value() || move->to.value >= state.NodesInView() ||
        state.nodes[move->to.value].record.out) {
      return std::nullopt;
    }
    if (!WhoDoesNotReach(state, move->to).empty() && !Planted(Bug::kMoveUnreached))
      return std::nullopt;
    Hold hold;
    hold.work = state.record.records_only ? Work::kMove : Work::kRecordsOnly;
    hold.move = *move;
    return hold;
  }
  [[nodiscard]] HoldKind hold_kind() const override {
    return Planted(Bug::kMoveUnderWrites) ? HoldKind::kStart : HoldKind::kAll;
  }
  [[nodiscard]] std::optional<RepairKind> repair_kind() const override {
    if (Planted(Bug::kMoveUncopied)) return std::nullopt;
    return RepairKind::kMoveRegion;
  }
  void FillOrder(const ClusterState& /*state*/, const Hold& hold, MembershipState* /*proposed*/,
                 RepairOrder* order) const override {
    order->region = hold.move.region;
    order->source = hold.move.from;
    order->target = {hold.move.to, hold.move.base};
  }
  // All are quiesced: no agent is at the region, nor comes to it under an older view.
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    PauseCopies(state, hold, now_us);
    // It would be missing there at once.
    if (!state.nodes[hold.move.to.value].serving) return;
    state.membership.MoveReplica(hold.move);
    SaveRegions(state, effects, {hold.move.region});
  }
};

}  // namespace

const WorkKind& MoveWork() {
  static const Move kind;
  return kind;
}

}  // namespace onetrip::master
