// The master's orders to a worker when a memory node is lost or comes back, and when regions move
// (repair_order.h).
#include "client_core/kv/view_participant.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/resolve_slots.h"
#include "client_core/kv/heal_damage.h"
#include "client_core/kv/pool_check.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/memory/copy_region.h"
#include "client_core/memory/format_regions.h"

namespace onetrip {
namespace {

Mechanism MechanismOf(RepairKind kind) {
  switch (kind) {
    case RepairKind::kResolveSlots:
      return Mechanism::kResolve;
    case RepairKind::kScrubRegisters:
      return Mechanism::kScrub;
    case RepairKind::kCopyRegion:
      return Mechanism::kCopy;
    case RepairKind::kTakeOverBlocks:
      return Mechanism::kTakeOver;
    case RepairKind::kEndRegisters:
      return Mechanism::kEndRegisters;
    case RepairKind::kMoveRegion:
      return Mechanism::kMove;
    case RepairKind::kFormatRegions:
      return Mechanism::kGrow;
    case RepairKind::kMoveSubtables:
      return Mechanism::kLeave;
  }
  CHECK(false);
}

}  // namespace

void ViewParticipant::LeaveNode(NodeId node) {
  core_.context.fabric.SetEvicted(node, /*evicted=*/true);
}

void ViewParticipant::UseView(const View& view) {
  for (uint16_t i = 0; i < view.node_count; ++i) {
    core_.context.fabric.SetEvicted(NodeId{i}, view.IsOut(NodeId{i}));
  }
  core_.index.UseView(view);
  core_.hot.UseView();
  core_.allocator.UseView(view);
  chores_.leaver.UseView(view);
}

void ViewParticipant::Repair(RepairOrder order, DoneFn done) {
  if (core_.stopping) return done(Status(StatusCode::kUnavailable, "the worker is ending"));
  core_.context.executor.Spawn(core_.gate, RunRepair(std::move(order), std::move(done)));
}

Task<void> ViewParticipant::RunRepair(RepairOrder order, DoneFn done) {
  Status status;
  const MechanismScope scope(core_.context.mechanism_observer, MechanismOf(order.kind));
  switch (order.kind) {
    case RepairKind::kResolveSlots: {
      if (order.damaged) status = co_await HealDamage(*order.view);
      if (!status.ok()) break;
      SlotResolver resolver(core_.context.fabric, *order.view,
                            [this] { return core_.index.NewEmptyWord(); });
      status = co_await resolver.Run();
      core_.metrics.slots_resolved.Add(resolver.resolved());
      break;
    }
    case RepairKind::kScrubRegisters:
      status = co_await chores_.scrubber.ScrubRegisters(std::move(order));
      break;
    case RepairKind::kCopyRegion:
      status = co_await CopyRegion(core_.context.executor, core_.context.fabric, *order.view,
                                   order.region);
      break;
    case RepairKind::kTakeOverBlocks:
      status = co_await chores_.take_over.TakeOverBlocks(std::move(order));
      chores_.sweeper.SweepBehindOthers();
      break;
    case RepairKind::kEndRegisters:
      status = co_await chores_.records_only.EndRegisters(std::move(order));
      break;
    case RepairKind::kMoveRegion:
      status = co_await MoveRegion(core_.context.executor, core_.context.fabric, *order.view,
                                   order.region, order.source, order.target);
      break;
    case RepairKind::kFormatRegions:
      // A region that this worker knows of is in use.
      status = order.region < core_.context.view().regions.size()
                   ? Status(StatusCode::kInvalidArgument, "the regions are there already")
                   : co_await FormatRegions(core_.context.fabric, *order.view, order.region);
      break;
    case RepairKind::kMoveSubtables:
      status = co_await core_.index.MoveSubtables(order.view);
      break;
  }
  done(status);
}

Task<Status> ViewParticipant::HealDamage(const View& view) {
  DamageHealer healer(core_.context.fabric, view, [this] { return core_.index.NewEmptyWord(); });
  const Status status = co_await healer.Run();
  if (healer.lost() != 0) LogError("after damaged memory was accepted, " + healer.LostText());
  LogWarning("healed " + std::to_string(healer.healed()) + " places of damaged memory" +
             (status.ok() ? "" : ", and not all: " + std::string(status.message())));
  co_return status;
}

}  // namespace onetrip
