// What runs beside the operations: epochs, key counts, splits that were left, and the sweep of
// flushed keyspaces.
#include <algorithm>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // entries per READ

constexpr uint64_t CounterWord(KeyspaceId keyspace, uint32_t count) {
  return (uint64_t{keyspace.value} << 32) | count;
}

bool IsMeant(const std::array<KeyspaceId, kMaxDatabases>& keyspaces, KeyspaceId keyspace) {
  return std::find(keyspaces.begin(), keyspaces.end(), keyspace) != keyspaces.end();
}

// Whether no database means this keyspace any more, if they mean `keyspaces`. The newest id that
// was given out is always one of them, whoever has swapped: what is newer is of a later view.
bool IsFlushed(const std::array<KeyspaceId, kMaxDatabases>& keyspaces, KeyspaceId keyspace) {
  return !IsMeant(keyspaces, keyspace) &&
         keyspace < *std::max_element(keyspaces.begin(), keyspaces.end());
}

}  // namespace

void KvImpl::StartTicks() {
  context_.executor.timers().Add(&tick_timer_,
                                 context_.executor.NowNs() + context_.options.epoch_tick_us * 1000);
}

void KvImpl::OnTick() {
  context_.ForgetFormerViews();
  // Nobody waits for the epochs of a cluster in which nothing was retired: then this worker only
  // looks, ten times more rarely, whether that is still so, and publishes at every other look.
  constexpr uint64_t kQuietFactor = 10;
  constexpr uint32_t kQuietTicks = 2;
  // Nor for memory that this worker could give.
  const bool quiet = allocator_.retired_count() == 0 && reclaimer_.others_retired_bytes() == 0 &&
                     !allocator_.is_scarce() && !allocator_.gives();
  quiet_ticks_ = quiet ? quiet_ticks_ + 1 : 0;
  if (quiet_ticks_ % kQuietTicks == 0 && !context_.hold.holds_all()) {
    context_.executor.Spawn(gate_, allocator_.Maintain());
  }
  WalkForExpiredIfDue();
  SeeToLeavingIfDue();
  AccountIfDue();
  CompactIfScarce();
  uint32_t entry = 0;
  if (!finishing_splits_ && !held() && index_.MetUnfinishedSplit(&entry)) {
    context_.executor.Spawn(gate_, FinishSplits());
  }
  const uint64_t tick_ns = context_.options.epoch_tick_us * 1000;
  context_.executor.timers().Add(
      &tick_timer_, context_.executor.NowNs() + (quiet ? kQuietFactor * tick_ns : tick_ns));
}

// Whoever began them has ended, or has given up. What fails is tried again at a later tick.
Task<void> KvImpl::FinishSplits() {
  finishing_splits_ = true;
  ViewHold::Presence presence(context_.hold);
  Status status;
  for (uint32_t entry = 0; status.ok() && !stopping_ && index_.MetUnfinishedSplit(&entry);) {
    status = co_await index_.FinishSplit(presence, entry);
  }
  finishing_splits_ = false;
}

void KvImpl::Count(uint32_t database, KeyspaceId keyspace, int32_t delta) {
  if (!IsMeant(context_.view().keyspaces, keyspace)) return;  // flushed meanwhile: counted nowhere
  Tally& tally = TallyOf(database, keyspace);
  tally.count += static_cast<uint32_t>(delta);
  tally.dirty = true;
  if (!publishing_) context_.executor.Spawn(gate_, PublishCounters());
}

KvImpl::Tally& KvImpl::TallyOf(uint32_t database, KeyspaceId keyspace) {
  if (tallies_[database].keyspace == keyspace) [[likely]]
    return tallies_[database];
  for (Tally& tally : tallies_) {
    if (tally.keyspace == keyspace) return tally;
  }
  // There is one, for there are as many as databases, and this keyspace has none.
  const auto is_free = [this](const Tally& tally) {
    return !IsMeant(context_.view().keyspaces, tally.keyspace);
  };
  Tally* tally = &tallies_[database];
  if (!is_free(*tally)) tally = std::find_if(tallies_.begin(), tallies_.end(), is_free);
  *tally = {keyspace, 0, false};
  return *tally;
}

Task<Status> KvImpl::LoadCounters() {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* counters = reinterpret_cast<const KeyCounters*>(
      round_trip->Read(context_.view().Locate(KeyCounterAddr(context_.membership.index, 0), 0),
                       sizeof(KeyCounters)));
  const Status status = co_await context_.fabric.Post(round_trip);
  if (!status.ok()) co_return status;
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    const uint64_t word = counters->words[i];
    tallies_[i] = {KeyspaceId{static_cast<uint32_t>(word >> 32)}, static_cast<uint32_t>(word),
                   false};
  }
  co_return Status::Ok();
}

Task<void> KvImpl::PublishCounters() {
  publishing_ = true;
  const ViewHold::Presence presence(context_.hold);
  for (bool dirty = true; dirty;) {
    dirty = false;
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const View& view = context_.view();
    for (uint32_t i = 0; i < kMaxDatabases; ++i) {
      Tally& tally = tallies_[i];
      if (!tally.dirty || !round_trip->HasRoom(kMaxReplicas)) continue;
      tally.dirty = false;
      const GlobalAddr at = KeyCounterAddr(context_.membership.index, i);
      for (int replica = 0; replica < engine_.Replicas(view, at); ++replica) {
        round_trip->WriteWord(view.Locate(at, replica), CounterWord(tally.keyspace, tally.count));
      }
      dirty = true;
    }
    // A count that does not arrive is made good by the next one.
    if (dirty) (void)co_await context_.fabric.Post(round_trip);
  }
  publishing_ = false;
}

Task<Status> KvImpl::CountKeys(uint32_t database, uint64_t* keys) {
  CHECK(database < kMaxDatabases);
  const ViewHold::Presence presence(context_.hold);
  const View& view = context_.view();
  const KeyspaceId keyspace = view.keyspaces[database];
  const uint32_t workers = view.worker_index_end;
  uint32_t sum = 0;
  for (uint32_t first = 0; first < workers; first += RoundTrip::kMaxOps) {
    const uint32_t end = std::min<uint32_t>(workers, first + RoundTrip::kMaxOps);
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    std::array<const KeyCounters*, RoundTrip::kMaxOps> counters{};
    for (uint32_t worker = first; worker < end; ++worker) {
      const WorkerIndex index{static_cast<uint16_t>(worker)};
      counters[worker - first] = reinterpret_cast<const KeyCounters*>(round_trip->Read(
          context_.view().Locate(KeyCounterAddr(index, 0), 0), sizeof(KeyCounters)));
    }
    const Status status = co_await context_.fabric.Post(round_trip);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < end - first; ++i) {
      for (const uint64_t word : counters[i]->words) {
        if (word >> 32 == keyspace.value) sum += static_cast<uint32_t>(word);
      }
    }
  }
  // Counts are modulo 2^32; a momentary minus is one delete ahead of its insert's count.
  *keys = sum > 0x80000000U ? 0 : sum;
  co_return Status::Ok();
}

Task<Status> KvImpl::Flush(std::optional<uint32_t> database) {
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kFlush);
  const Status status = co_await context_.master.FlushKeyspaces(context_.hold, database);
  if (!status.ok()) co_return status;
  sweep_again_ = true;
  if (!sweeping_) context_.executor.Spawn(gate_, Sweep());
  co_return Status::Ok();
}

Task<Status> KvImpl::Swap(uint32_t first, uint32_t second) {
  CHECK(first < kMaxDatabases && second < kMaxDatabases);
  if (first == second) co_return Status::Ok();
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kSwap);
  co_return co_await context_.master.SwapKeyspaces(context_.hold, first, second);
}

// Whoever has started in the old keyspace must find there what its own kind has left: a counter
// that a sweep removes between two increments of before the flush would count one of them for
// nothing.
Task<void> KvImpl::OutliveOldOperations() {
  while (!reclaimer_.IsSafe(sweep_epoch_) && !stopping_ && !Planted(Bug::kSweepsAtOnce)) {
    if (!context_.hold.holds_all()) co_await allocator_.Maintain();
    if (reclaimer_.IsSafe(sweep_epoch_)) break;
    co_await context_.executor.SleepFor(context_.options.epoch_tick_us * 1000);
  }
}

// Removes what no database means any more, pass after pass until one finds nothing: splits may
// carry entries past it, and a SET that waited for memory may still arrive behind it.
Task<void> KvImpl::Sweep() {
  constexpr uint64_t kPauseNs = 10'000'000;
  constexpr uint32_t kQuietPauses = 20;  // of nothing found, before it is believed
  sweeping_ = true;
  uint32_t quiet = 0;
  while (quiet < kQuietPauses && !stopping_) {
    SweepPass pass;
    const bool look = sweep_again_ || quiet == 0 || quiet == kQuietPauses - 1;
    if (std::exchange(sweep_again_, false)) {
      quiet = 0;
      sweep_keyspaces_ = context_.view().keyspaces;
      sweep_epoch_ = reclaimer_.current_epoch();
      co_await OutliveOldOperations();
      if (stopping_) break;
    }
    if (look) (void)co_await SweepOnce(&pass);
    if (pass.removed > 0) {
      quiet = 0;
      continue;
    }
    quiet = pass.filling > 0 ? 0 : quiet + 1;
    if (!stopping_) co_await context_.executor.SleepFor(kPauseNs);
  }
  sweeping_ = false;
}

Task<Status> KvImpl::SweepOnce(SweepPass* pass) {
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kSweep);
  for (uint32_t first = 0; first < kDirectoryEntries && !stopping_; first += kDirectoryStretch) {
    Operation operation;
    std::vector<uint32_t> used;
    Status status =
        co_await index_.ReadDirectoryStretch(operation, first, kDirectoryStretch, &used);
    if (!status.ok()) co_return status;
    for (const uint32_t entry : used) {
      if (stopping_) co_return Status::Ok();
      status = co_await SweepSubtable(index_.SubtableAt(entry), pass);
      if (!status.ok()) co_return status;
      AfterWrite();
      co_await context_.executor.Yield();
    }
  }
  co_return Status::Ok();
}

Task<Status> KvImpl::SweepSubtable(Subtable table, SweepPass* pass) {
  for (uint32_t group = 0; group < kSubtableGroups; ++group) {
    Operation operation;
    const bool released = co_await WaitToBegin(&operation);
    if (!released) co_return kHeld;
    operation.pin = reclaimer_.Pin();
    GroupWords words;
    Status status = co_await index_.ReadGroup(operation, &table, group, &words);
    if (!status.ok()) co_return status;
    // What a split has yet to take out of the parent is still named there. A later pass removes it.
    const bool filling = GroupHeader(words[kGroupHeaderWord]).filling();
    if (filling && !Planted(Bug::kSweepOfFillingGroup)) {
      ++pass->filling;
      continue;
    }
    GroupKeys keys;
    status = co_await index_.ReadGroupKeys(operation, table, group, words, &keys);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < kGroupWords; ++i) {
      const SlotWord word(words[i]);
      // Entries on the move are met in the subtable they move to, by a later pass at the latest.
      if (i == kGroupHeaderWord || word.kind() != SlotKind::kObject) continue;
      if (!IsFlushed(sweep_keyspaces_, keys.keyspace[i])) continue;
      SearchResult entry;
      entry.entry = {table.Word(group, i), word};
      bool gone = false;
      if (word.is_register()) {
        status = co_await SweepRegister(operation.presence, entry.entry, &gone);
      } else {
        entry.bytes = context_.fabric.NewRoundTrip();
        entry.record =
            entry.bytes->Read(context_.view().Locate(word.addr(), 0), EntryKeyEnd(word, 0));
        status = co_await Post(context_, operation, entry.bytes);
        if (status.ok()) status = co_await TryRemove(operation, entry, &gone);
      }
      if (!status.ok()) co_return status;
      ++pass->removed;  // gone, or changed: another pass looks
      metrics_.swept.Add(gone ? 1 : 0);
    }
  }
  co_return Status::Ok();
}

}  // namespace onetrip
