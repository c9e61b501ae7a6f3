// SET: writing blindly (FUSEE UPDATE and INSERT; PROTOCOLS, "A blind writer that loses").
#include "client_core/kv/slot_store.h"

namespace onetrip {

Task<Status> SlotStore::Set(Key key, NewRecord record) { co_return co_await StartSet(key, record); }

MaybeTask<Status> SlotStore::StartSet(Key key, NewRecord record) {
  if (core_.holds_registers()) [[unlikely]] {
    return core_.AfterHold([this, key, record] { return Set(key, record); });
  }
  BegunWrite begun;
  if (core_.runs_inline && registers_.SetFast(&key, record, &begun)) return Status::Ok();
  return SetSlow(key, record, begun);
}

Task<Status> SlotStore::SetSlow(Key key, NewRecord record, BegunWrite begun) {
  Allocator::Holder holder(core_.allocator);
  Status status = CheckSizes(key, record);
  Draft draft;
  draft.holder = &holder;
  if (status.ok() && core_.NeedsExtents(record)) [[unlikely]] {
    status = co_await extents_.WriteExtents(record, &draft.extents);
  }
  if (!status.ok()) co_return status;
  RegisterOperation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const IndexKey index_key = core_.MakeKey(key);
  bool as_record = !registers_.FitsRegister(key, record);
  if (!as_record) {
    status = co_await registers_.SetRegister(operation, key, index_key, record, begun, holder,
                                             &as_record);
  }
  if (as_record && status.ok()) {
    status = co_await SetRecord(operation, key, index_key, record, &draft);
  }
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.set_round_trips, operation, status);
}

Task<Status> SlotStore::SetRecord(RegisterOperation& operation, Key key, const IndexKey& index_key,
                                  const NewRecord& record, Draft* draft) {
  Status status;
  if (draft->addr.is_null()) {
    drafts_.Measure(key, record, draft);
    status = co_await drafts_.Reserve(draft);
  }
  if (status.ok()) {
    const bool entered = co_await core_.EnterSlots(operation);
    if (!entered) status = kHeld;
  }
  if (!status.ok()) {
    drafts_.Abandon(*draft);
    co_return status;
  }
  operation.pin = core_.reclaimer.Pin();
  drafts_.Encode(index_key, record, draft);
  bool inserted = false;
  status = co_await SetBlind(operation, key, index_key, record, draft, &inserted);
  if (inserted) counters_.Count(key.database, index_key.keyspace, 1);
  // Whatever the outcome, no slot of ours to come will name this memory: an unknown outcome keeps
  // it.
  if (!status.ok() && status.code() != StatusCode::kUnknownOutcome) drafts_.Abandon(*draft);
  co_return status;
}

// FUSEE figure 9, UPDATE: (1) write the record, read the primary slot and the old record's key;
// (2) write the log, CAS the backups; (3) CAS the primary.
Task<Status> SlotStore::SetBlind(RegisterOperation& operation, const Key& name, const IndexKey& key,
                                 const NewRecord& record, Draft* draft, bool* inserted) {
  RoundTripPtr first = draft->buffer;
  drafts_.AddWrites(*first, *draft);
  bool written = false;
  Backoff backoff(core_.context, operation);
  while (true) {
    FoundKey found{name, key, core_.Forgotten()};
    SearchResult& search = found.search;
    Status status;
    const bool is_hot = !written && core_.hot.Find(key, &search);
    if (!is_hot) {
      status =
          co_await core_.index.Find(operation, key, ReadExtent::kKey, std::move(first), &search);
    }
    if (!status.ok()) {
      status = co_await drafts_.FindAgain(operation, key, ReadExtent::kKey,
                                          written ? nullptr : draft, status, &search);
    }
    if (!status.ok()) co_return status;
    written = true;
    first = core_.context.fabric.NewRoundTrip();
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      co_return kContended;
    }
    if (search.found) {
      const Result<Step> step =
          co_await forms_.Of(search.entry.word).Overwrite(operation, found, record, draft);
      if (!step.ok()) co_return step.status();
      if (step.value() == Step::kDone) co_return Status::Ok();
    } else {
      bool done = false;
      status = co_await records_.TryInsert(operation, key, search, /*blind=*/true, RoundTripPtr(),
                                           draft, &done);
      if (done) *inserted = status.ok();
      if (done || !status.ok()) co_return status;
    }
    if (OutOfTime(core_.context, operation)) co_return kContended;
  }
}

}  // namespace onetrip
