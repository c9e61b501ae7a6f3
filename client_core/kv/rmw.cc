// Read-modify-write: read the record, build the new one out of place, swing the slot from exactly
// the word that was read; whoever loses reads again (PROTOCOLS, "SNAPSHOT").
#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/paused.h"
#include "client_core/kv/slot_store.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

Task<Status> SlotStore::ReadModifyWrite(Key key, Mutation& mutation) {
  if (core_.held()) [[unlikely]] {
    return core_.AfterHold([this, key, &mutation] { return ReadModifyWriteNow(key, mutation); });
  }
  return ReadModifyWriteNow(key, mutation);
}

Task<Status> SlotStore::ReadModifyWriteNow(Key key, Mutation& mutation) {
  if (key.bytes.size() > kMaxKeyBytes) {
    co_return Status(StatusCode::kTooLarge, "key is longer than 65535 bytes");
  }
  Allocator::Holder holder(core_.allocator);
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(core_.context.hold);
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = core_.reclaimer.Pin();
  Draft draft;
  draft.holder = &holder;
  if (core_.allocator.was_full()) {
    draft.in_place_until_ns =
        core_.context.executor.NowNs() + core_.context.options.memory_wait_ms * 1'000'000;
  }
  Room room;
  Status status;
  bool done = false;
  while (!done && status.ok()) {
    // Anew each time: an attempt may have given up its pin, and with it a keyspace that was
    // flushed.
    const IndexKey index_key = core_.MakeKey(key);
    draft.gives_up = SizeClass();
    status = co_await Attempt(operation, key, index_key, mutation, &room, &draft, &done);
    if (status.code() == StatusCode::kOutOfMemory) [[unlikely]]
      status = co_await drafts_.GoOnInPlace(operation, &draft);
    if (room.turn) [[unlikely]]
      status = co_await extents_.WaitForRoom(operation, &room);
    if (!done && status.ok() && OutOfTime(core_.context, operation)) status = kContended;
  }
  // Memory reserved for an attempt that was not the last one.
  if (status.code() != StatusCode::kUnknownOutcome) drafts_.Abandon(draft);
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.rmw_round_trips, operation, status);
}

// One attempt; neither done nor failed means that somebody else was faster.
Task<Status> SlotStore::Attempt(RegisterOperation& operation, const Key& key,
                                const IndexKey& index_key, Mutation& mutation, Room* room,
                                Draft* draft, bool* done) {
  SearchResult search;
  Backoff backoff(core_.context, operation);
  uint64_t forgotten = 0;
  while (true) {
    forgotten = core_.Forgotten();
    Status status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                              core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await drafts_.FindAgain(operation, index_key, ReadExtent::kWhole, nullptr, status,
                                          &search);
      // What was flushed meanwhile may have expired since: it was there when the flush took it.
      if (status.ok() && core_.MakeKey(key).keyspace != index_key.keyspace) co_return status;
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
    if (!core_.IsExpired(search.record)) {
      records_.FillFromRecord(search, &current);
      if (search.entry.word.size_class().is_root()) [[unlikely]] {
        const Status status =
            co_await extents_.ReadFromExtents(operation, mutation.wanted(), room, &current);
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
        co_return co_await records_.RemoveExpired(operation, key.database, index_key, search, done);
      }
      *done = true;
      co_return Status::Ok();
    case Change::Kind::kDelete: {
      if (!search.found) {
        *done = true;
        co_return Status::Ok();
      }
      const Status status = co_await records_.TryRemove(operation, search, done);
      if (*done) counters_.Count(key.database, index_key.keyspace, -1);
      co_return status;
    }
    case Change::Kind::kWrite:
      if (core_.NeedsExtents(change.record)) [[unlikely]] {
        co_return co_await ReplaceByExtents(operation, key, seen, change, draft, done);
      }
      co_return co_await Replace(operation, key, index_key, search, change, draft, done);
  }
  co_return Status::Ok();
}

// A register is read first: a mutation that changes nothing leaves it as it is. One that does needs
// a record.
Task<Status> SlotStore::AttemptOnRegister(RegisterOperation& operation, const Key& key,
                                          const IndexKey& index_key, const SearchResult& search,
                                          uint64_t forgotten, Mutation& mutation, Draft* draft,
                                          bool* done) {
  CachedRegister* entry = registers_.Adopt(index_key, search, forgotten);
  if (entry == nullptr) co_return Status::Ok();
  RegisterCache::Use use(core_.registers->cache, *entry);
  ReadResult current;
  const Result<RegisterResult> read = co_await registers_.ReadRegister(operation, *entry, &current);
  if (!read.ok()) co_return read.status();
  Change change;
  const bool is_read = read.value() == RegisterResult::kDone;
  if (is_read) change = mutation.Apply(&current.record());
  if (is_read && change.kind == Change::Kind::kKeep) {
    *done = true;
    co_return Status::Ok();
  }
  const SlotWord word = search.entry.word;
  const SizeClass thawed_class = ends_.ThawedClass(index_key, *entry, &current);
  draft->gives_up = drafts_.GivenUpFor(key, word, thawed_class, is_read ? &change : nullptr);
  Draft thawed;
  const bool is_sealed = read.value() == RegisterResult::kAgain;
  if (draft->in_place_until_ns != 0 && draft->gives_up.is_valid() && !is_sealed) [[unlikely]] {
    const Status reserved =
        co_await ends_.ReserveInPlaceOf(word, thawed_class, /*own=*/true, &thawed);
    if (!reserved.ok()) co_return reserved;
  }
  co_return co_await ends_.EndRegister(operation, index_key, search.entry, *entry,
                                       /*may_wait=*/true, &thawed);
}

Task<Status> SlotStore::Replace(Operation& operation, const Key& key, const IndexKey& index_key,
                                const SearchResult& search, const Change& change, Draft* draft,
                                bool* done) {
  const NewRecord& record = change.record;
  Status status = CheckSizes(key, record);
  if (!status.ok()) co_return status;
  const SizeClass reserved = draft->size_class;
  drafts_.Measure(key, record, draft);
  if (draft->addr.is_null() || draft->size_class != reserved) {
    if (!draft->addr.is_null()) core_.allocator.Retire(draft->addr, reserved);
    draft->addr = core_.allocator.TryAllocate(draft->size_class);
    draft->gives_up = drafts_.GivenUpFor(search, change, draft->size_class);
    const bool in_place = draft->in_place_until_ns != 0 && draft->gives_up.is_valid();
    if (draft->addr.is_null() && in_place) [[unlikely]] {
      status = co_await drafts_.TakeInPlace(draft);
      if (!status.ok()) co_return status;
    }
    if (draft->addr.is_null()) {
      // Waiting for memory takes giving up the pin, and with it all that was read.
      Paused paused(core_, operation);
      status = co_await drafts_.Reserve(draft);
      co_return co_await paused.Resume(status);
    }
  }
  drafts_.Encode(index_key, record, draft);
  if (change.version != nullptr) *change.version = LoadRecordHeader(draft->record).version;
  drafts_.AddWrites(*draft->buffer, *draft);
  if (!search.found) {
    // Whoever meets the tentative entry reads the record's key.
    status = co_await Post(core_.context, operation, draft->buffer);
    if (!status.ok()) co_return status;
    status =
        co_await records_.TryInsert(operation, index_key, search, /*blind=*/false, draft, done);
    if (*done && status.ok()) {
      counters_.Count(key.database, index_key.keyspace, 1);
      draft->Forget();
    }
    co_return status;
  }
  const SlotWord v_old = search.entry.word;
  const SlotWord v_new = drafts_.WordFor(index_key, *draft, Planted(Bug::kCountingWritesBlind));
  // The record goes with the CAS of the backups: nobody reads it before the primary names it.
  RecordOrigin origin;
  const bool has_origin = records_.TellOrigin(search, &origin, &draft->buffer);
  const Result<SlotOutcome> outcome = co_await core_.engine.Write(
      operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft->addr, draft->buffer.get()});
  if (!outcome.ok()) co_return outcome.status();
  *done = outcome.value().won || Planted(Bug::kCountingLoserDone);
  if (outcome.value().won) {
    core_.index.CacheLocation(index_key.hash, {search.entry.slot, v_new});
    const SlotWord old = search.entry.word;
    if (old.size_class().is_root()) [[unlikely]]
      co_await extents_.RetireExtents(operation, old);
    core_.allocator.Retire(old.addr(), old.size_class());
    if (has_origin) records_.RetireOrigin(origin);
  } else {
    core_.metrics.lost_rounds.Add();
    // The memory was written as one record and may be read as such by nobody; but the next attempt
    // has another content, so it takes other memory.
    drafts_.Abandon(*draft);
  }
  draft->Forget();
  co_return Status::Ok();
}

Task<Status> SlotStore::ReplaceByExtents(RegisterOperation& operation, const Key& key,
                                         const RecordView* seen, const Change& change, Draft* draft,
                                         bool* done) {
  Status status = CheckSizes(key, change.record);
  if (!status.ok()) co_return status;
  drafts_.Abandon(*draft);
  draft->Forget();
  operation.shared_pin = SharedPin();
  operation.pin.Release();
  operation.presence = ViewHold::Presence();
  status = co_await extents_.WriteExtents(change.record, &draft->extents);
  if (!status.ok()) co_return status;
  drafts_.Measure(key, change.record, draft);
  status = co_await extents_.BeginAnew(operation, draft);
  if (!status.ok()) co_return status;

  const IndexKey index_key = core_.MakeKey(key);
  SearchResult now;
  status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                     core_.context.fabric.NewRoundTrip(), &now);
  if (!status.ok()) co_return status;
  // A version is of one write of the key: what has it is what was seen, wherever it lies by now.
  const bool is_there = now.found && !now.entry.word.is_register() && !core_.IsExpired(now.record);
  const bool unchanged = seen == nullptr
                             ? !now.found || (!now.entry.word.is_register() && !is_there)
                             : is_there && LoadRecordHeader(now.record).version == seen->version;
  if (!now.busy && (unchanged || Planted(Bug::kExtentsUnchecked))) {
    status = co_await Replace(operation, key, index_key, now, change, draft, done);
    if (!status.ok() || *done) co_return status;
  }
  drafts_.Abandon(*draft);
  draft->Forget();
  co_return Status::Ok();
}

}  // namespace onetrip
