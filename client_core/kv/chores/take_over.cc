// Taking over the blocks of workers that are gone: what the index, records and registers still name
// there (memory/orphan_blocks.h; PROTOCOLS.md).
#include "client_core/kv/chores/take_over.h"

#include <absl/cleanup/cleanup.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/orphan_inventory.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/memory/orphan_blocks.h"

namespace onetrip {
namespace {

constexpr Status kStopped(StatusCode::kUnavailable, "the worker is ending, or at it already");
constexpr Status kNotLiving(StatusCode::kCorrupt, "the master does not count this worker itself");

}  // namespace

// One at a time, or the second would take for free what was taken from the first's blocks since.
Task<Status> TakeOver::TakeOverBlocks(RepairOrder order) {
  // Its own blocks would be orphans.
  if (!order.living.Includes(core_.context.membership.id)) co_return kNotLiving;
  co_await lost_.AwaitAccount();
  if (!lost_.BeginInheriting()) co_return kStopped;
  const absl::Cleanup done = [this] { lost_.EndInheriting(); };
  OrphanInventory inventory(core_.context, /*is_of_the_dead=*/true, /*gives_way_in=*/nullptr);
  Status status = co_await FindOrphans(inventory, order);
  if (!status.ok() || inventory.blocks.blocks().empty()) co_return status;
  status = co_await names_.LookAtNames(inventory, *order.view);
  if (!status.ok()) co_return status;
  inventory.blocks.TellUnnamed();
  if (!Planted(Bug::kTakenOverAtOnce)) status = co_await names_.AwaitUnlinked();
  if (!status.ok()) co_return status;
  size_t taken = 0;
  for (const auto& [addr, block] : inventory.blocks.blocks()) {
    if (core_.stopping) co_return kStopped;
    if (core_.context.quiesce.held()) co_return kHeld;
    const Status one = co_await TakeOverBlock(inventory, block);
    taken += one.ok() ? 1 : 0;
    if (!one.ok()) status = one;
  }
  LogInfo("took over " + std::to_string(taken) + " of " +
          std::to_string(inventory.blocks.blocks().size()) +
          " memory blocks of workers that are gone");
  co_return status;
}

Task<Status> TakeOver::FindOrphans(OrphanInventory& inventory, const RepairOrder& order) {
  if (core_.context.quiesce.held()) co_return kHeld;
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  co_return co_await inventory.blocks.Find(operation, OrphanBlocks::OfTheDead(order.living));
}

Task<Status> TakeOver::TakeOverBlock(OrphanInventory& inventory, const OrphanBlocks::Block& block) {
  // While it is at slots the replicas stay where they are, and all of them are asked.
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) co_return kHeld;
  std::vector<bool> freed;
  const Status status = co_await core_.allocator.claims().TakeOver(
      block.start, block.size_class, block.owner, block.named, &freed);
  const auto found = inventory.buffers.find(block.start.bits());
  if (!status.ok() || found == inventory.buffers.end()) co_return status;
  for (const NamedBuffer& named : found->second) {
    if (named.buffer_class != block.size_class) continue;
    // Its writer has retired it meanwhile.
    if (freed[ObjectIndex(named.buffer.addr, block.start, block.size_class)]) continue;
    core_.registers->cache.Inherit(named.ref, named.buffer_class, named.buffer);
  }
  co_return status;
}

}  // namespace onetrip
