// Writing blindly: SET (FUSEE UPDATE and INSERT; PROTOCOLS, "A blind writer that loses").
#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

// Memory before anything else: an operation that holds a pin must not wait for memory, for it may
// be waiting for itself.
Task<Status> KvImpl::Reserve(Draft* draft) {
  draft->addr = allocator_.TryAllocate(draft->size_class);
  if (!draft->addr.is_null()) co_return Status::Ok();
  Allocator::Holder* const idle = draft->extents ? nullptr : draft->holder;
  const Result<GlobalAddr> addr = co_await allocator_.Allocate(draft->size_class, idle);
  if (!addr.ok()) co_return addr.status();
  draft->addr = addr.value();
  co_return Status::Ok();
}

void KvImpl::Measure(const Key& key, const NewRecord& record, Draft* draft) {
  const uint64_t value_bytes =
      draft->extents ? ExtentListBytes(draft->extents->list.extents.size()) : record.bytes();
  const uint64_t bytes = RecordBytes(key.bytes.size(), value_bytes);
  draft->bytes = static_cast<uint32_t>(bytes);
  draft->size_class = draft->extents ? SizeClass::ForRoot(bytes) : SizeClass::For(bytes);
}

void KvImpl::Encode(const IndexKey& key, const NewRecord& record, Draft* draft) {
  draft->buffer = context_.fabric.NewRoundTrip();
  draft->record = draft->buffer->Reserve(draft->bytes);
  RecordFields fields;
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  std::string list;
  if (draft->extents) {
    list = EncodeExtentList(draft->extents->list);
    fields.value_head = list;
    fields.version = draft->extents->version;
  } else {
    fields.value_head = record.head;
    fields.value_gap = record.gap_bytes;
    fields.value_tail = record.tail;
    fields.value_rest = record.rest;
    fields.version = NextVersion();
  }
  fields.deadline_ms = record.deadline_ms;
  fields.type = record.type;
  const bool is_of_its_size = draft->extents || draft->size_class == SizeClass::For(draft->bytes);
  fields.opcode = is_of_its_size ? LogOpcode::kUpdate : LogOpcode::kRestated;
  EncodeRecord(fields, draft->record);
}

void KvImpl::AddWrites(RoundTrip& round_trip, const Draft& draft) const {
  const View& view = context_.view();
  for (int replica = 0; replica < engine_.Replicas(view, draft.addr); ++replica) {
    round_trip.Write(view.Locate(draft.addr, replica), draft.record, draft.bytes);
  }
  if (!draft.is_register) return;
  for (int replica = 0; replica < engine_.Replicas(view, draft.out.addr); ++replica) {
    round_trip.Write(view.Locate(draft.out.addr + kBufferBulkOffset, replica), draft.out_bulk,
                     draft.out_bytes);
  }
}

SlotWord KvImpl::WordFor(const IndexKey& key, const Draft& draft, bool blind) const {
  if (draft.is_register) {
    return SlotWord::Register(key.hash.fingerprint(), draft.size_class, draft.addr, blind);
  }
  return SlotWord::Make(SlotKind::kObject, key.hash.fingerprint(), draft.size_class, draft.addr,
                        blind);
}

Task<Status> KvImpl::Renew(Operation& operation, const IndexKey& key, Draft* draft) {
  // Extents stay: nobody follows a word that is not committed.
  AbandonObject(*draft);
  draft->addr = GlobalAddr();
  operation.pin.Release();
  operation.presence.LeaveSlots();
  Status status;
  if (draft->is_register) {
    const IndexKey copy = key;
    status = co_await ReserveRegister(copy, draft);
    if (status.ok()) EncodeRegister(copy, draft);
  } else {
    status = co_await Reserve(draft);
  }
  const bool entered = co_await EnterSlots(operation);
  operation.pin = reclaimer_.Pin();
  if (!status.ok()) co_return status;
  if (!entered) co_return kHeld;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  AddWrites(*round_trip, *draft);
  status = co_await Post(context_, operation, round_trip);
  co_return status;
}

// PROTOCOLS, "One key, two forms": whoever replaces a register's object first writes F into the
// register's final word, in the same round trip as the first step of its own.
bool KvImpl::TellOrigin(const SearchResult& search, RecordOrigin* origin, RoundTripPtr* first) {
  if (!registers_ || !RecordHasOrigin(search.record, RecordKeyEnd(0), origin)) return false;
  if (!*first) *first = context_.fabric.NewRoundTrip();
  RegisterSeal::AddFinal(context_, **first, SlotWord(origin->register_word).addr(),
                         origin->last_word);
  return true;
}

void KvImpl::RetireOrigin(const RecordOrigin& origin) {
  const SlotWord word(origin.register_word);
  registers_->cache.Forget(word.addr());
  allocator_.RetireRegister(word.addr(), word.size_class());
}

Task<Status> KvImpl::SetInline(Key key, NewRecord record) {
  BegunWrite begun;
  if (SetAtOnce(key, record, &begun)) co_return Status::Ok();
  const Status status = co_await SetSlowly(key, record, begun);
  co_return status;
}

Task<Status> KvImpl::SetSlowly(Key key, NewRecord record, BegunWrite begun) {
  Allocator::Holder holder(allocator_);
  Status status = CheckSizes(key, record);
  Draft draft;
  draft.holder = &holder;
  if (status.ok() && NeedsExtents(record)) [[unlikely]] {
    status = co_await WriteExtents(record, &draft.extents);
  }
  if (!status.ok()) co_return status;
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  const IndexKey index_key = MakeKey(key);
  bool as_record = !FitsRegister(key, record);
  if (!as_record) {
    status = co_await SetRegister(operation, key, index_key, record, begun, holder, &as_record);
  }
  if (as_record && status.ok()) {
    status = co_await SetRecord(operation, key, index_key, record, &draft);
  }
  AfterWrite();
  co_return Finish(metrics_.set_round_trips, operation, status);
}

Task<Status> KvImpl::SetRecord(RegisterOperation& operation, Key key, const IndexKey& index_key,
                               const NewRecord& record, Draft* draft) {
  Status status;
  if (draft->addr.is_null()) {
    Measure(key, record, draft);
    status = co_await Reserve(draft);
  }
  if (status.ok()) {
    const bool entered = co_await EnterSlots(operation);
    if (!entered) status = kHeld;
  }
  if (!status.ok()) {
    Abandon(*draft);
    co_return status;
  }
  operation.pin = reclaimer_.Pin();
  Encode(index_key, record, draft);
  bool inserted = false;
  status = co_await SetBlind(operation, index_key, draft, &inserted);
  if (inserted) Count(key.database, index_key.keyspace, 1);
  // Whatever the outcome, no slot of ours to come will name this memory: an unknown outcome keeps
  // it.
  if (!status.ok() && status.code() != StatusCode::kUnknownOutcome) Abandon(*draft);
  co_return status;
}

// FUSEE figure 9, UPDATE: (1) write the record, read the primary slot and the old record's key;
// (2) CAS the backups; (3) commit the log; (4) CAS the primary.
Task<Status> KvImpl::SetBlind(RegisterOperation& operation, const IndexKey& key, Draft* draft,
                              bool* inserted) {
  RoundTripPtr first = draft->buffer;
  AddWrites(*first, *draft);
  bool written = false;
  Backoff backoff(context_, operation);
  while (true) {
    SearchResult search;
    const uint64_t forgotten = Forgotten();
    Status status =
        co_await index_.Find(operation, key, ReadExtent::kKey, std::move(first), &search);
    if (!status.ok()) {
      status = co_await FindAgain(operation, key, ReadExtent::kKey, written ? nullptr : draft,
                                  status, &search);
    }
    if (!status.ok()) co_return status;
    written = true;
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
    if (search.entry.word.is_register()) {
      CachedRegister* entry = Adopt(key, search, forgotten);
      if (entry != nullptr) {
        const RegisterCache::Use use(registers_->cache, *entry);
        // The record that takes its place is overwritten next.
        Draft thawed;
        if (draft->in_place_until_ns != 0) [[unlikely]] {
          const SlotWord word = search.entry.word;
          status = co_await ReserveInPlaceOf(word, ThawedClass(key, *entry), /*own=*/true, &thawed);
          if (!status.ok()) co_return status;
        }
        status =
            co_await EndRegister(operation, key, search.entry, *entry, /*may_wait=*/true, &thawed);
        if (!status.ok()) co_return status;
      }
      if (OutOfTime(context_, operation)) co_return kContended;
      continue;
    }
    const Result<BlindOutcome> outcome = co_await OverwriteBlindly(operation, key, search, *draft);
    if (!outcome.ok()) co_return outcome.status();
    if (outcome.value() == BlindOutcome::kOverwritten) Abandon(*draft);
    if (outcome.value() != BlindOutcome::kLost) co_return Status::Ok();
    if (OutOfTime(context_, operation)) co_return kContended;
  }
}

// The draft takes the place of the record that `search` found, whatever it holds.
Task<Result<KvImpl::BlindOutcome>> KvImpl::OverwriteBlindly(Operation& operation,
                                                            const IndexKey& key,
                                                            const SearchResult& search,
                                                            const Draft& draft) {
  const SlotWord v_new = WordFor(key, draft, /*blind=*/true);
  RecordOrigin origin;
  RoundTripPtr tell;
  const bool has_origin = TellOrigin(search, &origin, &tell);
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, {.slot = search.entry.slot,
                                         .v_old = search.entry.word.bits(),
                                         .v_new = v_new.bits(),
                                         .log = draft.addr,
                                         .first = tell.get()});
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won) {
    index_.CacheLocation(key.hash, {search.entry.slot, v_new});
    const SlotWord old = search.entry.word;
    if (old.size_class().is_root()) [[unlikely]]
      co_await RetireExtents(operation, old);
    allocator_.Retire(old.addr(), old.size_class());
    if (has_origin) RetireOrigin(origin);
    co_return BlindOutcome::kWon;
  }
  metrics_.lost_rounds.Add();
  // Lost to another blind write of this key: ours happened just before it.
  const Entry now{search.entry.slot, SlotWord(outcome.value().current)};
  Result<bool> overwritten = co_await index_.IsBlindWriteOf(operation, key, now);
  NodeWait wait;
  while (!overwritten.ok()) {
    const bool again = co_await MayTryAgain(operation, overwritten.status(), &wait);
    if (!again) co_return overwritten.status();
    overwritten = co_await index_.IsBlindWriteOf(operation, key, now);
  }
  co_return overwritten.value() || Planted(Bug::kBlindLoserAlwaysOk) ? BlindOutcome::kOverwritten
                                                                     : BlindOutcome::kLost;
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
      co_return co_await Renew(operation, key, draft);
    case InsertOutcome::kFull: {
      operation.pin.Release();
      operation.presence.LeaveSlots();
      const Status status = co_await index_.Split(operation.presence, search.table);
      const bool entered = co_await EnterSlots(operation);
      operation.pin = reclaimer_.Pin();
      co_return entered ? status : kHeld;
    }
  }
  co_return Status::Ok();
}

}  // namespace onetrip
