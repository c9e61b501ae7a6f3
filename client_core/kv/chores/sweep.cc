// The sweep of flushed keyspaces.
#include "client_core/kv/chores/sweep.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // entries per READ

// The newest id that was given out is always one of them, in spite of swaps: a newer id is of a
// later view.
KeyspaceId NewestOf(const std::array<KeyspaceId, kMaxDatabases>& keyspaces) {
  return *std::max_element(keyspaces.begin(), keyspaces.end());
}

// True if no database means this keyspace any more, given that they mean `keyspaces`.
bool IsFlushed(const std::array<KeyspaceId, kMaxDatabases>& keyspaces, KeyspaceId keyspace) {
  return !IsMeant(keyspaces, keyspace) && keyspace < NewestOf(keyspaces);
}

}  // namespace

Task<Status> Sweeper::Flush(std::optional<uint32_t> database) {
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kFlush);
  const Status status =
      co_await core_.context.master.FlushKeyspaces(core_.context.quiesce, database);
  if (!status.ok()) co_return status;
  SweepAgain();
  co_return Status::Ok();
}

void Sweeper::SweepAgain() {
  sweep_again_ = true;
  if (!sweeping_) core_.context.executor.Spawn(core_.gate, Sweep());
}

void Sweeper::SweepBehindOthers() {
  // A cluster begins with the keyspaces 1 to kMaxDatabases.
  const bool was_flushed = NewestOf(core_.context.view().keyspaces) > KeyspaceId{kMaxDatabases};
  if (was_flushed && !Planted(Bug::kSweepEndsWithWorker)) SweepAgain();
}

Task<Status> Sweeper::Swap(uint32_t first, uint32_t second) {
  CHECK(first < kMaxDatabases && second < kMaxDatabases);
  if (first == second) co_return Status::Ok();
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kSwap);
  co_return co_await core_.context.master.SwapKeyspaces(core_.context.quiesce, first, second);
}

// An operation that has started in the old keyspace must find there what earlier ones have left: a
// counter that a sweep removes between two increments of before the flush would count one of them
// for nothing.
Task<void> Sweeper::OutliveOldOperations() {
  while (!core_.reclaimer.IsSafe(sweep_epoch_) && !core_.stopping && !Planted(Bug::kSweepsAtOnce)) {
    if (!core_.context.quiesce.holds_all()) co_await core_.allocator.Maintain();
    if (core_.reclaimer.IsSafe(sweep_epoch_)) break;
    co_await core_.context.executor.SleepFor(core_.context.options.epoch_tick_us * 1000);
  }
}

// Removes what no database means any more, pass after pass until one finds nothing: splits may
// carry entries past it, and a SET that waited for memory may still arrive behind it.
Task<void> Sweeper::Sweep() {
  constexpr uint64_t kPauseNs = 10'000'000;
  constexpr uint32_t kQuietPauses = 20;  // that find nothing, before the sweep believes it
  sweeping_ = true;
  uint32_t quiet = 0;
  // A flush may come in the last pause, too.
  while ((quiet < kQuietPauses || (sweep_again_ && !Planted(Bug::kFlushBehindSweepLost))) &&
         !core_.stopping) {
    SweepPass pass;
    const bool look = sweep_again_ || quiet == 0 || quiet == kQuietPauses - 1;
    if (std::exchange(sweep_again_, false)) {
      quiet = 0;
      sweep_keyspaces_ = core_.context.view().keyspaces;
      sweep_epoch_ = core_.reclaimer.current_epoch();
      co_await OutliveOldOperations();
      if (core_.stopping) break;
    }
    Status status;
    if (look) status = co_await SweepOnce(&pass);
    if (pass.removed > 0) {
      quiet = 0;
      continue;
    }
    quiet = pass.filling > 0 || !status.ok() ? 0 : quiet + 1;
    if (!core_.stopping) co_await core_.context.executor.SleepFor(kPauseNs);
  }
  sweeping_ = false;
}

Task<Status> Sweeper::SweepOnce(SweepPass* pass) {
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kSweep);
  for (uint32_t first = 0; first < kDirectoryEntries && !core_.stopping;
       first += kDirectoryStretch) {
    Operation operation;
    std::vector<uint32_t> used;
    Status status =
        co_await core_.index.ReadDirectoryStretch(operation, first, kDirectoryStretch, &used);
    if (!status.ok()) co_return status;
    for (const uint32_t entry : used) {
      if (core_.stopping) co_return Status::Ok();
      status = co_await SweepSubtable(core_.index.SubtableAt(entry), pass);
      if (!status.ok()) co_return status;
      core_.AfterWrite();
      co_await core_.context.executor.Yield();
    }
  }
  co_return Status::Ok();
}

Task<Status> Sweeper::SweepSubtable(Subtable table, SweepPass* pass) {
  for (uint32_t group = 0; group < kSubtableGroups; ++group) {
    Operation operation;
    const bool released = co_await core_.WaitToBegin(&operation);
    if (!released) co_return kHeld;
    operation.pin = core_.reclaimer.Pin();
    GroupWords words;
    Status status = co_await core_.index.ReadGroup(operation, &table, group, &words);
    if (!status.ok()) co_return status;
    // An entry that a split has yet to take out of the parent stays there. A later pass removes it.
    const bool filling = GroupHeader(words[kGroupHeaderWord]).filling();
    if (filling && !Planted(Bug::kSweepOfFillingGroup)) {
      ++pass->filling;
      continue;
    }
    GroupKeys keys;
    status = co_await core_.index.ReadGroupKeys(operation, table, group, words, &keys);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < kGroupWords; ++i) {
      const SlotWord word(words[i]);
      // Entries on the move are met in the subtable they move to, by a later pass at the latest.
      if (i == kGroupHeaderWord || word.kind() != SlotKind::kObject) continue;
      if (!IsFlushed(sweep_keyspaces_, keys.keyspace[i])) continue;
      bool gone = false;
      status = co_await forms_.Of(word).Sweep(operation, {table.Word(group, i), word}, &gone);
      if (!status.ok()) co_return status;
      ++pass->removed;  // gone, or changed: another pass looks
      core_.metrics.swept.Add(gone ? 1 : 0);
    }
  }
  co_return Status::Ok();
}

}  // namespace onetrip
