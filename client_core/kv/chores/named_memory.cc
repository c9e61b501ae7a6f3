// The places that name memory: the index, records, roots and registers (memory/orphan_blocks.h;
// PROTOCOLS.md).
#include "client_core/kv/chores/named_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/orphan_inventory.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kReplicasChanged(StatusCode::kUnavailable,
                                  "where replicas live has changed meanwhile");
constexpr Status kWorkerSilent(StatusCode::kUnavailable, "a worker keeps the epoch from going on");
constexpr Status kStopped(StatusCode::kUnavailable, "the worker is ending, or at it already");
constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr Status kGivesWay(StatusCode::kUnavailable, "blocks of the dead are to be taken over");

}  // namespace

Task<Status> NamedMemory::LookAtNames(OrphanInventory& inventory, const View& view) {
  IndexWalk walk;
  co_return co_await walker_.ForEachGroup(
      [&](Subtable table, uint32_t group, Status* failure) {
        if (group == 0) inventory.blocks.Name(table.start);
        walk.in_background = !inventory.of_the_dead && !core_.allocator.is_scarce() &&
                             core_.allocator.leaving_blocks() == 0;
        return NameGroup(inventory, view, table, group, failure);
      },
      &walk);
}

Task<void> NamedMemory::NameGroup(OrphanInventory& inventory, const View& view, Subtable table,
                                  uint32_t group, Status* failure) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  // Words are read at one replica and go on at others: all have to be those of the beginning. While
  // the operation is at slots, that does not change.
  Status status = core_.context.view().SamePlaces(view) ? Status::Ok() : kReplicasChanged;
  if (inventory.gives_way != nullptr && *inventory.gives_way) status = kGivesWay;
  operation.pin = core_.reclaimer.Pin();
  GroupWords words;
  if (status.ok()) status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  for (uint32_t i = 0; i < kGroupWords && status.ok(); ++i) {
    const SlotWord word(words[i]);
    if (i == kGroupHeaderWord || (word.is_empty() && !word.is_dropped())) continue;
    inventory.blocks.Name(word.addr());
    if (core_.registers && word.kind() != SlotKind::kObject)
      core_.registers->cache.SeeAny(word.addr());
    if (word.is_dropped()) continue;
    if (!word.size_class().is_valid() || !core_.context.view().Contains(word.addr())) {
      status = Status(StatusCode::kCorrupt, "a slot points outside the pool");
    } else {
      status = co_await forms_.Of(word).NameMemory(inventory, operation, word);
    }
  }
  if (!status.ok()) *failure = status;
}

// Objects that are unlinked before every worker has let go of buffers in others' blocks are
// unlinked by operations of the epoch then, the next, or earlier ones; these retire them in the
// epoch after their own at the latest.
Task<Status> NamedMemory::AwaitUnlinked() {
  uint64_t unlinked_until = ~uint64_t{0};
  const uint64_t deadline_ns = core_.context.executor.NowNs() + kPatienceNs;
  core_.allocator.retirement().WantDoubt();
  while (core_.reclaimer.retired_since() <= unlinked_until) {
    if (core_.stopping) co_return kStopped;
    if (core_.context.quiesce.held()) co_return kHeld;
    if (core_.context.executor.NowNs() >= deadline_ns) co_return kWorkerSilent;
    co_await core_.allocator.Maintain();
    if (core_.allocator.retirement().registers_doubted() && unlinked_until == ~uint64_t{0}) {
      unlinked_until = core_.reclaimer.current_epoch() + 2;
    }
    co_await core_.context.executor.SleepFor(core_.context.options.epoch_tick_us * 1000);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
