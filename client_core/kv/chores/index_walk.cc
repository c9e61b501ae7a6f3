// Walks over the whole index.
#include "client_core/kv/chores/index_walk.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // entries per READ
constexpr uint32_t kGroupsAtOnce = 16;
// Where the fabric completes inline a walk works for this time, then lets clients in.
constexpr uint64_t kTurnNs = 50'000;
// One in the background works for the first time, then rests; for at most the second, whatever it
// waited for.
constexpr uint64_t kBackgroundTurnNs = 500'000;
constexpr uint64_t kRestMaxNs = 10'000'000;

}  // namespace

IndexWalk IndexWalker::WalkOf(const RepairOrder& order) const {
  const bool is_same = left_walk_.kind == order.kind && left_walk_.number == order.walk;
  if (is_same || (Planted(Bug::kWalkResumedAnyway) && left_walk_.kind == order.kind)) {
    return left_walk_;
  }
  IndexWalk walk;
  walk.kind = order.kind;
  walk.number = order.walk;
  return walk;
}

Task<Status> IndexWalker::WalkRegisters(GroupVisitor visit, IndexWalk* walk) {
  const Status status = co_await ForEachGroup(std::move(visit), walk);
  left_walk_ = status.ok() ? IndexWalk() : *walk;
  co_return status;
}

Task<Status> IndexWalker::FindSubtable(uint32_t* entry, uint32_t end) {
  while (*entry < end) {
    const uint32_t count = std::min(end - *entry, kDirectoryStretch);
    // As before a visit: ForEachGroup.
    if (core_.context.quiesce.held()) co_return kHeld;
    Operation operation;
    const bool begun = co_await core_.WaitToBegin(&operation);
    if (!begun) co_return kHeld;
    std::vector<uint32_t> used;
    const Status status =
        co_await core_.index.ReadDirectoryStretch(operation, *entry, count, &used);
    if (!status.ok()) co_return status;
    if (!used.empty()) {
      *entry = used.front();
      co_return Status::Ok();
    }
    *entry += count;
  }
  co_return Status::Ok();
}

Task<Status> IndexWalker::EnterAndFindSubtable(uint32_t* entry, uint32_t end) {
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  co_return co_await FindSubtable(entry, end);
}

Task<Status> IndexWalker::FindSubtableAround(uint32_t* entry, uint32_t end) {
  Status status = co_await EnterAndFindSubtable(entry, end);
  if (!status.ok() || *entry < end) co_return status;
  *entry = 0;
  status = co_await EnterAndFindSubtable(entry, end);
  co_return status;
}

// Entries move from a subtable to one further on in the directory, never back: in ascending order
// none is missed, however many splits there are meanwhile.
Task<Status> IndexWalker::ForEachGroup(GroupVisitor visit, IndexWalk* walk) {
  uint64_t busy_ns = 0;
  // A quiesce does not wait for the walk, nor the walk for a quiesce: a worker is asked again.
  for (; !core_.stopping && !core_.context.quiesce.held(); ++walk->next) {
    Status status = co_await FindSubtable(&walk->next, walk->end);
    if (!status.ok() || walk->next >= walk->end) co_return status;
    const Subtable table = core_.index.SubtableAt(walk->next);
    // Every subtable tells how far the directory reaches by now.
    walk->end = std::max(walk->end, DirectoryEnd(table));
    // Where the fabric completes inline clients come between any two.
    const uint32_t at_once = core_.context.fabric.completes_inline() ? 1 : kGroupsAtOnce;
    for (uint32_t group = 0; group < kSubtableGroups; group += at_once) {
      // A visit would wait for the end of the quiesce, which may be waiting for this walk to end.
      if (core_.context.quiesce.held()) co_return kHeld;
      const uint64_t began_ns = core_.context.executor.NowNs();
      std::vector<Task<void>> groups;
      for (uint32_t i = 0; i < at_once; ++i) groups.push_back(visit(table, group + i, &status));
      co_await WhenAll(std::move(groups));
      if (!status.ok()) co_return status;
      busy_ns += core_.context.executor.NowNs() - began_ns;
      if (walk->in_background && busy_ns >= kBackgroundTurnNs) {
        co_await core_.context.executor.SleepFor(std::min(std::exchange(busy_ns, 0), kRestMaxNs));
      } else if (!walk->in_background && busy_ns >= kTurnNs) {
        busy_ns = 0;
        if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
      }
    }
    co_await core_.context.executor.Yield();
  }
  co_return kHeld;
}

Task<Status> IndexWalker::ListRegisters(Operation& operation, Subtable table, uint32_t group,
                                        std::vector<ListedRegister>* registers) {
  GroupWords words;
  const Status status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  if (!status.ok()) co_return status;
  for (uint64_t& bits : words) {
    const SlotWord word(bits);
    const bool is_listed = !word.is_empty() && word.is_register() && word.size_class().is_valid() &&
                           core_.context.view().Contains(word.addr());
    if (!is_listed) bits = 0;
  }
  const auto list = [&](uint32_t at, const EntryKey& key, const std::byte* /*image*/) {
    registers->push_back({SlotWord(words[at]), key.keyspace, std::string(key.bytes)});
  };
  co_return co_await core_.index.ReadGroupEntries(operation, table, group, words, list);
}

}  // namespace onetrip
