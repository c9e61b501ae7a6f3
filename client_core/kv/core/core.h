// KvCore: what all parts of one worker's store share: engine, index, allocator, epochs, counters,
// and how an operation begins, waits and ends. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_CORE_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client_core/base/check.h"
#include "client_core/coro/maybe_task.h"
#include "client_core/coro/sync.h"
#include "client_core/index/index.h"
#include "client_core/kv/core/hot_records.h"
#include "client_core/kv/core/page_cache.h"
#include "client_core/kv/core/registers.h"
#include "client_core/kv/core/retry.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/reclaim.h"
#include "client_core/replication/engine.h"
#include "client_core/store/store.h"
#include "client_core/store/store_metrics.h"

namespace onetrip {

// Nothing was applied: the cluster changes its view, and has not done so in time.
inline constexpr Status kHeld(StatusCode::kUnavailable,
                              "the cluster is changing its map; the master has not finished");
// Nothing was applied: other workers won every round, or the key's subtable stayed busy.
inline constexpr Status kContended(StatusCode::kUnavailable, "others keep changing the key");

class KvCore {
 public:
  // `context` and `engine` outlive it.
  KvCore(WorkerContext& context, Engine& engine);

  // Returns true if operations must not start now; the second: those on known registers.
  [[nodiscard]] bool held() const { return context.quiesce.held(); }
  [[nodiscard]] bool holds_registers() const { return context.quiesce.holds_registers(); }
  // Runs the operation that `start` makes when they may again.
  template <typename Start>
  Task<Status> AfterHold(Start start) {
    const Status released = co_await AwaitRelease();
    if (!released.ok()) co_return released;
    co_return co_await start();
  }
  // Waits until no quiesce covers an operation that begins now; kHeld: in vain.
  Task<Status> AwaitRelease();
  // Background work that touches slots begins here, as an operation would; but it has the time to
  // outlast a quiesce.
  Task<bool> WaitToBegin(Operation* operation);
  // An operation that may touch slots waits here while they are quiesced; false: for op_timeout_ms
  // in vain. REQUIRES: it has an in-flight guard, by which a quiesce sees it.
  MaybeTask<bool> EnterSlots(Operation& operation) {
    CHECK(operation.in_flight.IsOf(context.quiesce));
    if (operation.in_flight.TryEnterSlots()) return true;
    return operation.in_flight.EnterSlots(context.executor.NowNs() +
                                          context.options.op_timeout_ms * 1'000'000);
  }
  // Waits for another try of a step that has changed nothing that others see and ended with
  // `status`, away from the slots, but with the operation's pin. False: it is not worth one.
  Task<bool> MayTryAgain(Operation& operation, Status status, RetryAcrossViews* retry);
  // The operation's pins are given up; the memory stays at hand for its next attempt.
  Task<Status> AwaitMemory(RegisterOperation& operation, SizeClass size_class,
                           Allocator::Holder* idle);

  // The key as the index knows it, under the keyspace that its database means now.
  [[nodiscard]] IndexKey MakeKey(const Key& key) const {
    CHECK(key.database < kMaxDatabases);
    const KeyspaceId keyspace = context.view().keyspaces[key.database];
    if (key.hashed_under == uint64_t{keyspace.value} + 1) {
      return {keyspace, key.bytes, KeyHash(key.hash)};
    }
    return IndexKey::Make(keyspace, key.bytes);
  }
  // The same, whose hash the key keeps for the next time.
  [[nodiscard]] IndexKey MakeKey(Key* key) const {
    const IndexKey made = MakeKey(*key);
    key->hashed_under = uint64_t{made.keyspace.value} + 1;
    key->hash = made.hash.bits();
    return made;
  }
  [[nodiscard]] bool IsExpired(const std::byte* record) const;
  [[nodiscard]] bool IsExpired(const KeyValue& value) const {
    return value.deadline_ms != 0 && context.clock.NowMs() >= value.deadline_ms;
  }
  [[nodiscard]] bool NeedsExtents(const NewRecord& record) const {
    return record.bytes() > context.options.record_value_bytes_max || record.tree != nullptr;
  }
  uint64_t NextVersion() {
    return (uint64_t{context.membership.id.value} << 40) | (++version_ & ((1ULL << 40) - 1));
  }
  // How many registers have been forgotten: what a search found before that changes may be one.
  [[nodiscard]] uint64_t Forgotten() const { return registers ? registers->cache.forgotten() : 0; }

  // Background work that the last operation made due. Inline on shm.
  void AfterWrite() {
    if (allocator.wants_maintenance()) context.executor.Spawn(gate, allocator.Maintain());
  }
  Status Finish(Histogram& histogram, const Operation& operation, Status status) {
    histogram.Record(operation.round_trips);
    if (status.code() == StatusCode::kUnknownOutcome) {
      metrics.unknown_outcomes.Add();
      ++outcomes_unknown;
    }
    return status;
  }

  WorkerContext& context;
  Engine& engine;
  Reclaimer reclaimer;
  Allocator allocator;
  Index index;
  HotRecords hot;
  PageCache pages;
  std::unique_ptr<Registers> registers;  // null: the engine has none
  bool runs_inline = false;              // Safe-Guess, on a fabric that completes inline
  Gate gate;                             // for background work
  StoreMetrics metrics;
  bool stopping = false;
  // Operations of unknown outcome, whose records are kept, named or not. Unlike the counter of the
  // metrics it is never reset.
  uint64_t outcomes_unknown = 0;

 private:
  uint64_t version_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_CORE_H_
