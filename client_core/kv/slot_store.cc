#include "client_core/kv/slot_store.h"

#include <algorithm>
#include <vector>

#include "client_core/kv/pool_check.h"

namespace onetrip {

SlotStore::SlotStore(WorkerContext& context, Engine& engine)
    : core_(context, engine),
      counters_(core_),
      mutations_(core_.context, core_.metrics),
      drafts_(core_),
      extents_(core_, drafts_),
      records_(core_, counters_, drafts_, extents_),
      ends_(core_, counters_, drafts_),
      record_form_(core_, counters_, drafts_, extents_, records_),
      registers_(core_, counters_, drafts_, records_, ends_),
      forms_(record_form_, registers_),
      chores_(core_, forms_, records_, extents_.pages(), registers_, ends_, *this),
      participant_(core_, chores_) {}

SlotStore::~SlotStore() {
  if (core_.context.quiesce.duties() == &participant_) core_.context.quiesce.SetDuties(nullptr);
}

Task<Status> SlotStore::Start() {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) co_return kHeld;
  Status status = co_await core_.reclaimer.Join();
  if (!status.ok()) co_return status;
  if (core_.registers) {
    status = co_await core_.allocator.retired_registers().Join();
    if (!status.ok()) co_return status;
  }
  status = co_await core_.index.Open();
  if (!status.ok()) co_return status;
  if (WritesRegisters(core_.engine.registers())) {
    co_await core_.allocator.ReserveRetiredRing();
    std::vector<RetiredRegisters::Retired> none;
    status = co_await core_.allocator.retired_registers().Publish(&none);
    if (!status.ok()) co_return status;
  }
  status = co_await counters_.LoadCounters();
  if (!status.ok()) co_return status;
  core_.context.quiesce.SetDuties(&participant_);
  core_.allocator.compaction().SetBegin([this] { chores_.compactor.CompactIfScarce(); });
  participant_.UseView(core_.context.view());
  chores_.StartTicks();
  co_return Status::Ok();
}

Task<Status> SlotStore::Stop() {
  core_.stopping = true;
  chores_.StopTicks();
  co_await core_.gate.Close();
  if (core_.registers) {
    Operation operation;
    const bool released = co_await core_.WaitToBegin(&operation);
    if (!released) co_return kHeld;
    constexpr uint64_t kSettleNs = 1'000'000'000;
    co_await core_.registers->cache.Settle(core_.registers->safe_guess, core_.reclaimer,
                                           core_.context.executor.NowNs() + kSettleNs);
    co_await core_.registers->safe_guess.Stop();
  }
  const Status rounds = co_await core_.engine.Stop(core_.context.executor.NowNs() +
                                                   core_.context.options.op_timeout_ms * 1'000'000);
  if (!rounds.ok()) co_return rounds;
  const bool drained = co_await core_.allocator.Drain();
  // Else the worker that takes the blocks over looks what of them is named.
  const bool all_is_named = core_.outcomes_unknown == 0 &&
                            core_.metrics.objects_left.Value() == 0 && !core_.index.HasUnnamed();
  bool signs_off = false;
  if (drained && all_is_named) {
    std::vector<GlobalAddr> keep;
    if (core_.registers) keep = core_.registers->cache.KeptBuffers();
    const bool leaves_nothing = co_await core_.allocator.OpenAllBut(keep);
    signs_off = leaves_nothing && !chores_.lost.OwesLook();
  }
  // If that fails, others look in vain.
  if (signs_off) (void)co_await core_.allocator.retired_registers().SignOff();
  if (!signs_off) core_.metrics.ends_unsigned.Add();
  // An operation that failed may still take effect until the node has fenced it: seconds at most,
  // or the node is away for longer than a worker that ends can wait.
  const uint64_t deadline_ns =
      core_.context.executor.NowNs() + core_.context.options.op_timeout_ms * 1'000'000;
  while (true) {
    Operation operation;
    const bool released = co_await core_.WaitToBegin(&operation);
    if (!released) co_return kHeld;
    const Status status = co_await core_.reclaimer.Leave();
    if (status.ok() || core_.context.executor.NowNs() >= deadline_ns) co_return status;
    co_await core_.context.executor.SleepFor(core_.context.options.epoch_tick_us * 1000);
  }
}

Task<Status> SlotStore::CountKeys(uint32_t database, uint64_t* keys) {
  if (core_.held()) [[unlikely]] {
    return core_.AfterHold([this, database, keys] { return counters_.CountKeys(database, keys); });
  }
  return counters_.CountKeys(database, keys);
}

size_t SlotStore::keys_at_once() const {
  constexpr size_t kOverANetwork = 16;
  return core_.context.fabric.completes_inline() ? 1 : kOverANetwork;
}

Task<void> SlotStore::Yield() { co_await core_.context.executor.Yield(); }

Task<Status> SlotStore::CheckPool(PoolCounts* counts) {
  PoolCheck check(core_.context, core_.reclaimer, counts);
  co_return co_await check.Run();
}

void SlotStore::PrefetchLocation(Key* key) const {
  if (key->database >= kMaxDatabases) return;
  const KeyHash hash = core_.MakeKey(key).hash;
  if (core_.registers) core_.registers->cache.PrefetchPlace(hash);
  core_.index.PrefetchLocation(hash);
}

void SlotStore::PrefetchRecord(const Key& key, KeyUse use) const {
  if (key.database >= kMaxDatabases) return;
  const KeyHash hash = core_.MakeKey(key).hash;
  RegisterPlace place;
  if (!core_.registers || !core_.registers->cache.FindPlace(hash, &place)) {
    return core_.index.PrefetchRecord(hash);
  }
  const auto* entry = reinterpret_cast<const std::byte*>(place.entry);
  __builtin_prefetch(entry);
  const View& view = core_.context.view();
  const int live = view.LiveReplicas(place.addr);
  // As of the view in which it was remembered.
  int replica = place.in_place_replica < live ? place.in_place_replica : 0;
  if (use == KeyUse::kWrite) {
    __builtin_prefetch(entry + 64);
    __builtin_prefetch(entry + 128);
    for (int i = 0; i < live; ++i) {
      core_.context.fabric.PrefetchForWrite(view.Locate(place.addr, i),
                                            i == replica ? place.bytes : place.in_place_from);
    }
    return;
  }
  // A read asks a majority, and of one of them the in-place copy.
  const int asked = std::min(view.replicas / 2 + 1, live);
  for (int i = 0; i < asked; ++i) {
    core_.context.fabric.Prefetch(view.Locate(place.addr, replica),
                                  i == 0 ? place.bytes : place.in_place_from);
    if (++replica == live) replica = 0;
  }
}

}  // namespace onetrip
