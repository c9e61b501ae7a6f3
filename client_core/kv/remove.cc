// DEL (FUSEE DELETE).
#include "client_core/kv/slot_store.h"

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
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = core_.reclaimer.Pin();
  IndexKey index_key = core_.MakeKey(key);
  Backoff backoff(core_.context, operation);
  Result<Step> step = co_await registers_.DeleteKnown(operation, key, index_key, existed);
  Status status = step.status();
  while (status.ok() && step.value() != Step::kDone) {
    FoundKey found{key, index_key, core_.Forgotten()};
    SearchResult& search = found.search;
    status = co_await core_.index.Find(operation, index_key, ReadExtent::kKey,
                                       core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await drafts_.FindAgain(operation, index_key, ReadExtent::kKey, nullptr, status,
                                          &search);
      // A key flushed meanwhile may have expired since: it was there when the flush took it.
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
    step = co_await forms_.Of(search.entry.word).Delete(operation, found, existed);
    status = step.status();
    if (status.ok() && step.value() != Step::kDone && OutOfTime(core_.context, operation)) {
      status = kContended;
    }
  }
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.del_round_trips, operation, status);
}

}  // namespace onetrip
