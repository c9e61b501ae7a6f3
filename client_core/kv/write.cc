// Writing blindly: SET (FUSEE UPDATE and INSERT; PROTOCOLS 4, "a blind loser").
#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

// Memory before anything else: an operation that holds a pin must not wait for memory, for it may
// be waiting for itself.
Task<Status> KvImpl::Reserve(Draft* draft) {
  draft->addr = allocator_.TryAllocate(draft->size_class);
  if (!draft->addr.is_null()) co_return Status::Ok();
  const Result<GlobalAddr> addr = co_await allocator_.Allocate(draft->size_class);
  if (!addr.ok()) co_return addr.status();
  draft->addr = addr.value();
  co_return Status::Ok();
}

void KvImpl::Encode(const IndexKey& key, const NewRecord& record, Draft* draft) {
  draft->buffer = context_.fabric.NewRoundTrip();
  draft->record = draft->buffer->Reserve(draft->bytes);
  RecordFields fields;
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  fields.value_head = record.head;
  fields.value_tail = record.tail;
  fields.deadline_ms = record.deadline_ms;
  fields.version = NextVersion();
  fields.type = record.type;
  fields.opcode = LogOpcode::kUpdate;
  EncodeRecord(fields, draft->record);
}

void KvImpl::AddWrites(RoundTrip& round_trip, const Draft& draft) const {
  const View& view = context_.view();
  for (int replica = 0; replica < engine_.replicas(); ++replica) {
    round_trip.Write(view.Locate(draft.addr, replica), draft.record, draft.bytes);
  }
}

SlotWord KvImpl::WordFor(const IndexKey& key, const Draft& draft, bool blind) const {
  return SlotWord::Make(SlotKind::kObject, key.hash.fingerprint(), draft.size_class, draft.addr,
                        blind);
}

Task<Status> KvImpl::Renew(Operation& operation, Draft* draft) {
  Abandon(*draft);
  draft->addr = GlobalAddr();
  operation.pin.Release();
  Status status = co_await Reserve(draft);
  operation.pin = reclaimer_.Pin();
  if (!status.ok()) co_return status;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  AddWrites(*round_trip, *draft);
  status = co_await Post(context_, operation, round_trip);
  co_return status;
}

// A record has taken the place of another: remember where, and give the old one back.
void KvImpl::Replaced(const IndexKey& key, SlotWord old_word, Entry now) {
  index_.CacheLocation(key.hash, now);
  allocator_.Retire(old_word.addr(), old_word.size_class());
}

Task<Status> KvImpl::Set(Key key, NewRecord record) {
  Status status = CheckSizes(key, record);
  if (!status.ok()) co_return status;
  Draft draft;
  draft.bytes =
      static_cast<uint32_t>(RecordBytes(key.bytes.size(), record.head.size() + record.tail.size()));
  draft.size_class = SizeClass::For(draft.bytes);
  status = co_await Reserve(&draft);
  if (!status.ok()) co_return status;

  Operation operation;
  operation.pin = reclaimer_.Pin();
  const IndexKey index_key = MakeKey(key);
  Encode(index_key, record, &draft);
  bool inserted = false;
  status = co_await SetBlind(operation, index_key, &draft, &inserted);
  if (inserted) Count(key.database, index_key.keyspace, 1);
  // Whatever the outcome, no slot of ours to come will name this memory: an unknown outcome keeps
  // it.
  if (!status.ok() && status.code() != StatusCode::kUnknownOutcome) Abandon(draft);
  AfterWrite();
  co_return Finish(metrics_.set_round_trips, operation, status);
}

// FUSEE figure 9, UPDATE: (1) write the record, read the primary slot and the old record's key;
// (2) CAS the backups; (3) commit the log; (4) CAS the primary.
Task<Status> KvImpl::SetBlind(Operation& operation, const IndexKey& key, Draft* draft,
                              bool* inserted) {
  RoundTripPtr first = draft->buffer;
  AddWrites(*first, *draft);
  Backoff backoff(context_, operation);
  while (true) {
    SearchResult search;
    Status status =
        co_await index_.Find(operation, key, ReadExtent::kKey, std::move(first), &search);
    if (!status.ok()) co_return status;
    first = context_.fabric.NewRoundTrip();
    if (search.busy) {
      if (co_await backoff.Wait()) continue;
      co_return kContended;
    }
    if (!search.found) {
      bool done = false;
      status = co_await TryInsert(operation, key, search, /*blind=*/true, draft, &done);
      if (done) *inserted = status.ok();
      if (done || !status.ok()) co_return status;
      if (OutOfTime(context_, operation)) co_return kContended;
      continue;
    }
    const SlotWord v_old = search.entry.word;
    const SlotWord v_new = WordFor(key, *draft, /*blind=*/true);
    const Result<SlotOutcome> outcome = co_await engine_.Write(
        operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft->addr});
    if (!outcome.ok()) co_return outcome.status();
    if (outcome.value().won) {
      Replaced(key, v_old, {search.entry.slot, v_new});
      co_return Status::Ok();
    }
    metrics_.lost_rounds.Add();
    // Lost to another blind write of this key: ours happened just before it.
    const Result<bool> overwritten = co_await index_.IsBlindWriteOf(
        operation, key, {search.entry.slot, SlotWord(outcome.value().current)});
    if (!overwritten.ok()) co_return overwritten.status();
    if (overwritten.value() || Planted(Bug::kBlindLoserAlwaysOk)) {
      Abandon(*draft);
      co_return Status::Ok();
    }
    if (OutOfTime(context_, operation)) co_return kContended;
  }
}

Task<Status> KvImpl::TryInsert(Operation& operation, const IndexKey& key,
                               const SearchResult& search, bool blind, Draft* draft, bool* done) {
  Entry entry;
  const Result<InsertOutcome> outcome =
      co_await index_.Insert(operation, key, search, WordFor(key, *draft, blind), &entry);
  if (!outcome.ok()) co_return outcome.status();
  switch (outcome.value()) {
    case InsertOutcome::kInserted:
      *done = true;
      co_return Status::Ok();
    case InsertOutcome::kSearchAgain:
      metrics_.lost_rounds.Add();
      co_return Status::Ok();
    case InsertOutcome::kRenew:
      metrics_.lost_rounds.Add();
      co_return co_await Renew(operation, draft);
    case InsertOutcome::kFull: {
      operation.pin.Release();
      const Status status = co_await index_.Split(search.table);
      operation.pin = reclaimer_.Pin();
      co_return status;
    }
  }
  co_return Status::Ok();
}

}  // namespace onetrip
