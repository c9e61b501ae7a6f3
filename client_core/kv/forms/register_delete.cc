// DEL of a register (PROTOCOLS, "One key, two forms").
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/register_end.h"

namespace onetrip {
namespace {

constexpr Status kUnresolved(StatusCode::kUnknownOutcome,
                             "the end of a register was begun, and what became of it could not be "
                             "learned");

}  // namespace

// One round trip if all replicas take the seal: no other worker can be credited then.
Task<Result<RegisterResult>> RegisterEnds::DeleteRegister(RegisterOperation& operation, Key key,
                                                          const IndexKey& index_key,
                                                          CachedRegister& entry, bool* existed) {
  RegisterCache::Use use(core_.registers->cache, entry);
  operation.shared_pin = SharedPin(core_.reclaimer.Pin());
  const GlobalAddr register_addr = entry.handle.ref.addr;
  const WorkerId me = core_.context.membership.id;
  std::optional<uint32_t> credited;
  bool alive = true;
  bool knows_value = true;
  const bool first = core_.registers->cache.BeginDelete(entry.handle.ref);
  if (first) {
    // The time before the seal tells if it was alive: a value that had time left then was there to
    // be deleted, and others may have found it gone before that time was up.
    const uint64_t began_ms = core_.context.clock.NowMs();
    const auto seal = SealWord::Deleted(me);
    Result<SealOutcome> sealed =
        co_await core_.registers->seal.Seal(operation, entry.handle, seal, true);
    if (!sealed.ok() && sealed.status().code() == StatusCode::kNotFound) {
      // The value of a register that ended before may be gone already. Only the worker that is
      // credited with its end has to know it.
      knows_value = false;
      sealed = co_await core_.registers->seal.Seal(operation, entry.handle, seal, false);
    }
    if (!sealed.ok()) co_return knows_value ? AfterSend(sealed.status()) : kUnresolved;
    KeyValue value;
    alive = knows_value && DecodeKeyValue(sealed->f.value.bytes, &value) &&
            (value.deadline_ms == 0 || began_ms < value.deadline_ms);
    if (sealed->all_mine) {
      credited = CreditOf(me);
      // Until the slot is empty.
      core_.context.executor.Spawn(
          core_.gate,
          UnmapDeleted(operation.in_flight, RegisterCache::Use(core_.registers->cache, entry)));
    } else {
      const uint32_t credit = CreditOf(sealed->one_deleter ? *sealed->deleter : me);
      const Result<std::optional<uint32_t>> asked =
          co_await CreditedDeleter(operation, index_key, entry, credit);
      if (!asked.ok()) co_return asked.status();
      credited = asked.value();
    }
  }
  if (credited.has_value()) {
    if (*credited == CreditOf(me) || Planted(Bug::kDeleteCreditForgotten)) {
      *existed = alive && !Planted(Bug::kDeleteCreditForgotten);
      counters_.Count(key.database, index_key.keyspace, -1);
      if (!knows_value) co_return kUnresolved;
    }
    co_return RegisterResult::kDone;
  }
  if (first) co_return RegisterResult::kAgain;
  // Another DEL of this worker decides: help it, and look again.
  SearchResult search;
  const Status status = co_await core_.index.Find(operation, index_key, ReadExtent::kKey,
                                                  core_.context.fabric.NewRoundTrip(), &search);
  if (!status.ok()) co_return status;
  if (search.found && !search.busy && NamesRegister(search.entry.word, register_addr)) {
    const Result<SealOutcome> sealed =
        co_await core_.registers->seal.Seal(operation, entry.handle, SealWord::Deleted(me), false);
    if (!sealed.ok()) co_return AfterSend(sealed.status());
    const Result<std::optional<uint32_t>> dropped = co_await DropRegister(
        operation, search.entry, CreditOf(sealed->one_deleter ? *sealed->deleter : me),
        /*in_background=*/false);
    if (!dropped.ok()) co_return AfterSend(dropped.status());
  }
  co_return RegisterResult::kAgain;
}

// A majority is sealed, some perhaps FROZEN: a DEL may still take the register as it is. Installs
// `credit` in the slot, or learns which one was faster. Nothing: the register is a record, or has
// ended before.
Task<Result<std::optional<uint32_t>>> RegisterEnds::CreditedDeleter(RegisterOperation& operation,
                                                                    const IndexKey& key,
                                                                    CachedRegister& entry,
                                                                    uint32_t credit) {
  const GlobalAddr register_addr = entry.handle.ref.addr;
  Backoff backoff(core_.context, operation);
  while (true) {
    SearchResult search;
    Status status = co_await core_.index.Find(operation, key, ReadExtent::kKey,
                                              core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status =
          co_await drafts_.FindAgain(operation, key, ReadExtent::kKey, nullptr, status, &search);
    }
    if (!status.ok()) co_return AfterSend(status);
    if (!search.busy && search.found && NamesRegister(search.entry.word, register_addr)) {
      const Result<std::optional<uint32_t>> decided =
          co_await DropRegister(operation, search.entry, credit, /*in_background=*/false);
      if (!decided.ok()) co_return AfterSend(decided.status());
      if (decided->has_value()) co_return *decided;
    } else if (!search.busy) {
      RecordOrigin origin;
      if (search.found && !search.entry.word.is_register() &&
          RecordHasOrigin(search.record, RecordKeyEnd(0), &origin) &&
          SlotWord(origin.register_word).addr() == register_addr) {
        co_return std::optional<uint32_t>();
      }
      const Result<FinalWord> recorded =
          co_await core_.registers->seal.ReadFinal(operation, entry.handle);
      if (!recorded.ok()) co_return AfterSend(recorded.status());
      // Dropped for another worker, perhaps long ago: that says nothing about the key now.
      const uint32_t me = CreditOf(core_.context.membership.id);
      if (recorded->is_dropped() && recorded->credit() == me) {
        co_return std::optional<uint32_t>(me);
      }
      if (!recorded->is_empty()) co_return std::optional<uint32_t>();
      // Dropped, and the worker that did it is about to record for which one.
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kUnresolved;
  }
}

// In the background, after a DEL in one round trip.
Task<void> RegisterEnds::UnmapDeleted(Quiesce::InFlightGuard in_flight, RegisterCache::Use use) {
  const CachedRegister& entry = use.entry();
  const uint32_t me = CreditOf(core_.context.membership.id);
  RegisterOperation operation;
  operation.in_flight = std::move(in_flight);
  operation.pin = core_.reclaimer.Pin();
  const IndexKey key = IndexKey::Make(entry.keyspace, entry.key());
  Backoff backoff(core_.context, operation);
  while (true) {
    SearchResult search;
    const Status status = co_await core_.index.Find(operation, key, ReadExtent::kKey,
                                                    core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return;
    if (!search.busy) {
      if (!search.found || !NamesRegister(search.entry.word, entry.handle.ref.addr)) co_return;
      const auto decided =
          co_await DropRegister(operation, search.entry, me, /*in_background=*/true);
      if (!decided.ok() || decided->has_value()) co_return;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return;
  }
}

}  // namespace onetrip
