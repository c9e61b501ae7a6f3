// Read-modify-write: read the record, build the new one out of place, swing the slot from exactly
// the word that was read; whoever loses reads again (PROTOCOLS, "SNAPSHOT").
#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

Task<Status> KvImpl::ReadModifyWrite(Key key, Mutation& mutation) {
  if (key.bytes.size() > kMaxKeyBytes) {
    co_return Status(StatusCode::kTooLarge, "key is longer than 65535 bytes");
  }
  Allocator::Holder holder(allocator_);
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  const bool entered = co_await EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = reclaimer_.Pin();
  Draft draft;
  draft.holder = &holder;
  if (allocator_.was_full()) {
    draft.in_place_until_ns =
        context_.executor.NowNs() + context_.options.memory_wait_ms * 1'000'000;
  }
  Room room;
  Status status;
  bool done = false;
  while (!done && status.ok()) {
    // Anew each time: an attempt may have given up its pin, and with it a keyspace that was
    // flushed.
    const IndexKey index_key = MakeKey(key);
    draft.gives_up = SizeClass();
    status = co_await Attempt(operation, key, index_key, mutation, &room, &draft, &done);
    if (status.code() == StatusCode::kOutOfMemory) [[unlikely]]
      status = co_await GoOnInPlace(operation, &draft);
    if (room.turn) [[unlikely]]
      status = co_await WaitForRoom(operation, &room);
    if (!done && status.ok() && OutOfTime(context_, operation)) status = kContended;
  }
  // Memory reserved for an attempt that was not the last one.
  if (status.code() != StatusCode::kUnknownOutcome) Abandon(draft);
  AfterWrite();
  co_return Finish(metrics_.rmw_round_trips, operation, status);
}

// One attempt; neither done nor failed means that somebody else was faster.
Task<Status> KvImpl::Attempt(RegisterOperation& operation, const Key& key,
                             const IndexKey& index_key, Mutation& mutation, Room* room,
                             Draft* draft, bool* done) {
  SearchResult search;
  Backoff backoff(context_, operation);
  uint64_t forgotten = 0;
  while (true) {
    forgotten = Forgotten();
    Status status = co_await index_.Find(operation, index_key, ReadExtent::kWhole,
                                         context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status =
          co_await FindAgain(operation, index_key, ReadExtent::kWhole, nullptr, status, &search);
      // What was flushed meanwhile may have expired since: it was there when the flush took it.
      if (status.ok() && MakeKey(key).keyspace != index_key.keyspace) co_return status;
    }
    if (!status.ok()) co_return status;
    if (!search.busy) break;
    if (!co_await backoff.Wait()) {
      co_return kContended;
    }
  }
  if (search.found && search.entry.word.is_register()) {
    co_return co_await AttemptOnRegister(operation, key, index_key, search, forgotten, mutation,
                                         draft, done);
  }
  ReadResult current;
  const RecordView* seen = nullptr;
  if (search.found) {
    if (!RecordIsIntact(search.record, search.entry.word.size_class().bytes())) {
      co_return Status(StatusCode::kCorrupt, "a record fails its checksum");
    }
    if (!IsExpired(search.record)) {
      FillFromRecord(search, &current);
      if (search.entry.word.size_class().is_root()) [[unlikely]] {
        const Status status =
            co_await ReadFromExtents(operation, mutation.wanted(), room, &current);
        if (!status.ok()) co_return status;
        current.record_.holder = &current.large_;
      }
      seen = &current.record();
    }
  }
  const Change change = mutation.Apply(seen);
  switch (change.kind) {
    case Change::Kind::kKeep:
    case Change::Kind::kKeepAsRecord:
      if (search.found && seen == nullptr) {
        co_return co_await RemoveExpired(operation, key.database, index_key, search, done);
      }
      *done = true;
      co_return Status::Ok();
    case Change::Kind::kDelete: {
      if (!search.found) {
        *done = true;
        co_return Status::Ok();
      }
      const Status status = co_await TryRemove(operation, search, done);
      if (*done) Count(key.database, index_key.keyspace, -1);
      co_return status;
    }
    case Change::Kind::kWrite:
      if (NeedsExtents(change.record)) [[unlikely]] {
        co_return co_await ReplaceByExtents(operation, key, seen, change, draft, done);
      }
      co_return co_await Replace(operation, key, index_key, search, change, draft, done);
  }
  co_return Status::Ok();
}

// A register is read first: a mutation that changes nothing leaves it as it is. One that does needs
// a record.
Task<Status> KvImpl::AttemptOnRegister(RegisterOperation& operation, const Key& key,
                                       const IndexKey& index_key, const SearchResult& search,
                                       uint64_t forgotten, Mutation& mutation, Draft* draft,
                                       bool* done) {
  CachedRegister* entry = Adopt(index_key, search, forgotten);
  if (entry == nullptr) co_return Status::Ok();
  RegisterCache::Use use(registers_->cache, *entry);
  ReadResult current;
  const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, &current);
  if (!read.ok()) co_return read.status();
  Change change;
  const bool is_read = read.value() == RegisterResult::kDone;
  if (is_read) change = mutation.Apply(&current.record());
  if (is_read && change.kind == Change::Kind::kKeep) {
    *done = true;
    co_return Status::Ok();
  }
  const SlotWord word = search.entry.word;
  const SizeClass thawed_class = ThawedClass(index_key, *entry, &current);
  draft->gives_up = GivenUpFor(key, word, thawed_class, is_read ? &change : nullptr);
  Draft thawed;
  const bool is_sealed = read.value() == RegisterResult::kAgain;
  if (draft->in_place_until_ns != 0 && draft->gives_up.is_valid() && !is_sealed) [[unlikely]] {
    const Status reserved = co_await ReserveInPlaceOf(word, thawed_class, /*own=*/true, &thawed);
    if (!reserved.ok()) co_return reserved;
  }
  co_return co_await EndRegister(operation, index_key, search.entry, *entry, /*may_wait=*/true,
                                 &thawed);
}

Task<Status> KvImpl::Replace(Operation& operation, const Key& key, const IndexKey& index_key,
                             const SearchResult& search, const Change& change, Draft* draft,
                             bool* done) {
  const NewRecord& record = change.record;
  Status status = CheckSizes(key, record);
  if (!status.ok()) co_return status;
  const SizeClass reserved = draft->size_class;
  Measure(key, record, draft);
  if (draft->addr.is_null() || draft->size_class != reserved) {
    if (!draft->addr.is_null()) allocator_.Retire(draft->addr, reserved);
    draft->addr = allocator_.TryAllocate(draft->size_class);
    draft->gives_up = GivenUpFor(search, change, draft->size_class);
    const bool in_place = draft->in_place_until_ns != 0 && draft->gives_up.is_valid();
    if (draft->addr.is_null() && in_place) [[unlikely]] {
      status = co_await TakeInPlace(draft);
      if (!status.ok()) co_return status;
    }
    if (draft->addr.is_null()) {
      // Waiting for memory takes giving up the pin, and with it all that was read.
      operation.pin.Release();
      operation.presence.LeaveSlots();
      status = co_await Reserve(draft);
      const bool entered = co_await EnterSlots(operation);
      operation.pin = reclaimer_.Pin();
      co_return entered ? status : kHeld;
    }
  }
  Encode(index_key, record, draft);
  if (change.version != nullptr) *change.version = LoadRecordHeader(draft->record).version;
  AddWrites(*draft->buffer, *draft);
  if (!search.found) {
    // Whoever meets the tentative entry reads the record's key.
    status = co_await Post(context_, operation, draft->buffer);
    if (!status.ok()) co_return status;
    status = co_await TryInsert(operation, index_key, search, /*blind=*/false, draft, done);
    if (*done && status.ok()) {
      Count(key.database, index_key.keyspace, 1);
      draft->Forget();
    }
    co_return status;
  }
  const SlotWord v_old = search.entry.word;
  const SlotWord v_new = WordFor(index_key, *draft, Planted(Bug::kCountingWritesBlind));
  // The record goes with the CAS of the backups: nobody reads it before the primary names it.
  RecordOrigin origin;
  const bool has_origin = TellOrigin(search, &origin, &draft->buffer);
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft->addr, draft->buffer.get()});
  if (!outcome.ok()) co_return outcome.status();
  *done = outcome.value().won || Planted(Bug::kCountingLoserDone);
  if (outcome.value().won) {
    index_.CacheLocation(index_key.hash, {search.entry.slot, v_new});
    const SlotWord old = search.entry.word;
    if (old.size_class().is_root()) [[unlikely]]
      co_await RetireExtents(operation, old);
    allocator_.Retire(old.addr(), old.size_class());
    if (has_origin) RetireOrigin(origin);
  } else {
    metrics_.lost_rounds.Add();
    // The memory was written as one record and may be read as such by nobody; but the next attempt
    // has another content, so it takes other memory.
    Abandon(*draft);
  }
  draft->Forget();
  co_return Status::Ok();
}

}  // namespace onetrip
