// DEL (FUSEE DELETE).
#include "client_core/base/planted_bug.h"
#include "client_core/kv/slot_store.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

Task<Status> SlotStore::Delete(Key key, bool* existed) {
  if (core_.held()) [[unlikely]] {
    return core_.AfterHold([this, key, existed] { return DeleteNow(key, existed); });
  }
  return DeleteNow(key, existed);
}

Task<Status> SlotStore::DeleteNow(Key key, bool* existed) {
  *existed = false;
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(core_.context.hold);
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = core_.reclaimer.Pin();
  IndexKey index_key = core_.MakeKey(key);
  Backoff backoff(core_.context, operation);
  Status status;
  CachedRegister* entry = core_.registers ? core_.registers->cache.Find(index_key) : nullptr;
  while (true) {
    if (entry != nullptr) {
      const Result<RegisterResult> result =
          co_await ends_.DeleteRegister(operation, key, index_key, *entry, existed);
      status = result.status();
      if (!status.ok() || result.value() == RegisterResult::kDone) break;
      entry = nullptr;
      if (OutOfTime(core_.context, operation)) {
        status = kContended;
        break;
      }
    }
    SearchResult search;
    const uint64_t forgotten = core_.Forgotten();
    status = co_await core_.index.Find(operation, index_key, ReadExtent::kKey,
                                       core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await drafts_.FindAgain(operation, index_key, ReadExtent::kKey, nullptr, status,
                                          &search);
      // What was flushed meanwhile may have expired since: it was there when the flush took it.
      const bool is_flushed = core_.MakeKey(key).keyspace != index_key.keyspace;
      if (status.ok() && is_flushed) {
        index_key = core_.MakeKey(key);
        continue;
      }
    }
    if (!status.ok()) break;
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      status = kContended;
      break;
    }
    if (!search.found) break;
    if (search.entry.word.is_register()) {
      entry = registers_.Adopt(index_key, search, forgotten);
      continue;
    }
    bool removed = false;
    if (core_.IsExpired(search.record)) {
      status =
          co_await records_.RemoveExpired(operation, key.database, index_key, search, &removed);
      if (!status.ok() || removed) break;
    } else {
      status = co_await records_.TryRemove(operation, search, &removed);
      if (!status.ok()) break;
      if (removed || Planted(Bug::kDeleteLoserCounts)) {
        *existed = true;
        counters_.Count(key.database, index_key.keyspace, -1);
        break;
      }
    }
    if (OutOfTime(core_.context, operation)) {
      status = kContended;
      break;
    }
  }
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.del_round_trips, operation, status);
}

}  // namespace onetrip
