#include "master/work/move.h"

#include <optional>
#include <string>

#include "client_core/base/planted_bug.h"
#include "master/holds.h"
#include "master/placement.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/work/grow.h"
#include "master/work/leave.h"

namespace onetrip::master {

std::optional<Hold> NextMove(const ClusterState& state, uint64_t now_us) {
  if (!MovesAreWanted(state) || !MayMove(state, now_us)) return std::nullopt;
  std::optional<Hold> leave = NextLeave(state);
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

// In the next view, which the caller commits. All hold: nobody is at the region, nor comes to it
// under an older view.
void CommitMove(ClusterState& state, Effects& effects, const Hold& hold, uint64_t now_us) {
  state.placement_epoch = state.membership.view().epoch.value + 1;
  if (hold.work == Work::kRecordsOnly) {
    state.record.records_only = true;
    state.registers_ended = false;
    BeginWalkAnew(state);
    state.membership.SetRecordsOnly(true);
    return;
  }
  PauseCopies(state, hold, now_us);
  // It would be missing there at once.
  if (!state.nodes[hold.move.to.value].serving) return;
  state.membership.MoveReplica(hold.move);
  SaveRegions(state, effects, {hold.move.region});
}

}  // namespace onetrip::master
