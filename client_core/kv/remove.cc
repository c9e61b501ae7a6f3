// Removing: DEL, and records whose time has passed (FUSEE DELETE).
#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

Task<Status> KvImpl::TryRemove(Operation& operation, const SearchResult& search, bool* removed) {
  const SlotWord v_old = search.entry.word;
  const SlotWord empty = index_.NewEmptyWord();
  RecordOrigin origin;
  RoundTripPtr tell;
  const bool has_origin = TellOrigin(search, &origin, &tell);
  const Result<SlotOutcome> outcome = co_await engine_.Write(operation, {.slot = search.entry.slot,
                                                                         .v_old = v_old.bits(),
                                                                         .v_new = empty.bits(),
                                                                         .log = GlobalAddr(),
                                                                         .first = tell.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) metrics_.objects_left.Add();
  if (!outcome.ok()) co_return outcome.status();
  *removed = outcome.value().won;
  if (*removed) {
    if (v_old.size_class().is_root()) [[unlikely]]
      co_await RetireExtents(operation, v_old);
    allocator_.Retire(v_old.addr(), v_old.size_class());
    if (has_origin) RetireOrigin(origin);
  } else {
    metrics_.lost_rounds.Add();
  }
  co_return Status::Ok();
}

// A record was alive when its slot was read and is expired by now: what the key held in between
// only the slot can tell. Emptied from the very word that was read, it was missing at that moment;
// a word that has changed must be looked at again, for it may have been changed before the
// deadline.
Task<Status> KvImpl::RemoveExpired(Operation& operation, uint32_t database, const IndexKey& key,
                                   const SearchResult& search, bool* removed) {
  Status status = co_await TryRemove(operation, search, removed);
  if (!*removed && Planted(Bug::kExpiryRemovesWhatIsNow)) {
    SearchResult now;
    status = co_await index_.Find(operation, key, ReadExtent::kKey, context_.fabric.NewRoundTrip(),
                                  &now);
    if (now.found) status = co_await TryRemove(operation, now, removed);
  }
  if (*removed) {
    metrics_.expired.Add();
    Count(database, key.keyspace, -1);
  }
  co_return status;
}

Task<Status> KvImpl::Delete(Key key, bool* existed) {
  *existed = false;
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  const bool entered = co_await EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = reclaimer_.Pin();
  IndexKey index_key = MakeKey(key);
  Backoff backoff(context_, operation);
  Status status;
  CachedRegister* entry = registers_ ? registers_->cache.Find(index_key) : nullptr;
  while (true) {
    if (entry != nullptr) {
      const Result<RegisterResult> result =
          co_await DeleteRegister(operation, key, index_key, *entry, existed);
      status = result.status();
      if (!status.ok() || result.value() == RegisterResult::kDone) break;
      entry = nullptr;
      if (OutOfTime(context_, operation)) {
        status = kContended;
        break;
      }
    }
    SearchResult search;
    const uint64_t forgotten = Forgotten();
    status = co_await index_.Find(operation, index_key, ReadExtent::kKey,
                                  context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await FindAgain(operation, index_key, ReadExtent::kKey, nullptr, status, &search);
      // What was flushed meanwhile may have expired since: it was there when the flush took it.
      const bool is_flushed = MakeKey(key).keyspace != index_key.keyspace;
      if (status.ok() && is_flushed) {
        index_key = MakeKey(key);
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
      entry = Adopt(index_key, search, forgotten);
      continue;
    }
    bool removed = false;
    if (IsExpired(search.record)) {
      status = co_await RemoveExpired(operation, key.database, index_key, search, &removed);
      if (!status.ok() || removed) break;
    } else {
      status = co_await TryRemove(operation, search, &removed);
      if (!status.ok()) break;
      if (removed || Planted(Bug::kDeleteLoserCounts)) {
        *existed = true;
        Count(key.database, index_key.keyspace, -1);
        break;
      }
    }
    if (OutOfTime(context_, operation)) {
      status = kContended;
      break;
    }
  }
  AfterWrite();
  co_return Finish(metrics_.del_round_trips, operation, status);
}

}  // namespace onetrip
