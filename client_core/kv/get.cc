// GET (FUSEE SEARCH; SWARM 5).
#include <string_view>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/slot_store.h"

namespace onetrip {
namespace {

// What `range` says of a value that is there whole, or is that part already.
std::string_view PartIn(const RecordView& record, ValueRange range) {
  if (record.value.size() != record.value_bytes) return record.value;
  const ValuePart part = PartOf(record.value_bytes, range);
  return record.value.substr(part.offset, part.bytes);
}

}  // namespace

Task<Status> SlotStore::GetPart(Key key, ValueRange range, ReadResult* result) {
  if (core_.holds_registers()) [[unlikely]] {
    return core_.AfterHold([this, key, range, result] { return GetPart(key, range, result); });
  }
  return core_.runs_inline ? GetInline(key, range, result) : GetSlowly(key, range, result);
}

Task<Status> SlotStore::GetBehind(Key key, ReadResult* result) {
  if (core_.holds_registers()) [[unlikely]] {
    return Get(key, result);
  }
  return GetSlowly(key, kWholeValue, result);
}

Task<Status> SlotStore::GetInline(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (registers_.GetFast(&key, result)) {
    result->record_.value = PartIn(result->record_, range);
    co_return Status::Ok();
  }
  const Status status = co_await GetSlowly(key, range, result);
  co_return status;
}

// A read that loses a node begins again: at the latest under the view without that node it
// succeeds.
Task<Status> SlotStore::GetSlowly(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(core_.context.hold);
  Room room;
  RetryAcrossViews retry(core_.context, operation);
  while (true) {
    Status status = co_await TryGet(operation, key, range, &room, result);
    if (room.turn) [[unlikely]] {
      status = co_await extents_.WaitForRoom(operation, &room);
      if (status.ok()) continue;
      co_return core_.Finish(core_.metrics.get_round_trips, operation, status);
    }
    if (!retry.IsWorth(status)) {
      result->record_.value = PartIn(result->record_, range);
      (result->found_ ? core_.metrics.gets_found : core_.metrics.gets_missing).Add();
      co_return core_.Finish(core_.metrics.get_round_trips, operation, status);
    }
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    operation.presence.LeaveSlots();
    co_await retry.Wait();
  }
}

// FUSEE SEARCH. Linearized when the slot is read from the primary, or, of an expired record, when
// the slot is emptied.
Task<Status> SlotStore::TryGet(RegisterOperation& operation, Key key, ValueRange range, Room* room,
                               ReadResult* result) {
  *result = ReadResult();
  const IndexKey index_key = core_.MakeKey(key);
  CachedRegister* known = core_.registers ? core_.registers->cache.Find(index_key) : nullptr;
  if (known != nullptr) {
    const Result<RegisterResult> read = co_await registers_.ReadRegister(operation, *known, result);
    if (!read.ok() || read.value() == RegisterResult::kDone) co_return read.status();
  }
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = core_.reclaimer.Pin();
  Backoff backoff(core_.context, operation);
  Status status;
  while (true) {
    SearchResult search;
    const uint64_t forgotten = core_.Forgotten();
    status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                       core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found) break;
    if (search.entry.word.is_register()) {
      CachedRegister* entry = registers_.Adopt(index_key, search, forgotten);
      if (entry != nullptr) {
        RegisterCache::Use use(core_.registers->cache, *entry);
        const Result<RegisterResult> read =
            co_await registers_.ReadRegister(operation, *entry, result);
        status = read.status();
        if (!status.ok() || read.value() == RegisterResult::kDone) break;
        if (!search.busy && !Planted(Bug::kReadAwaitsEnd)) {
          status = co_await ends_.EndRegister(operation, index_key, search.entry, *entry, true);
          core_.AfterWrite();
          if (status.code() == StatusCode::kOutOfMemory) {
            // Reads go on in a full pool: its time is over by this worker's clock, which has to do;
            // and for what is sealed somebody may find memory in time.
            status = Status::Ok();
            if (read.value() == RegisterResult::kExpired) break;
          }
          if (!status.ok()) break;
        }
      }
      const bool go_on = co_await backoff.Wait();
      if (go_on) continue;
      status = kContended;
      break;
    }
    if (!RecordIsIntact(search.record, search.entry.word.size_class().bytes())) {
      status = Status(StatusCode::kCorrupt, "a record fails its checksum");
      break;
    }
    if (!core_.IsExpired(search.record)) [[likely]] {
      records_.FillFromRecord(search, result);
      if (search.entry.word.size_class().is_root()) [[unlikely]] {
        status = co_await extents_.ReadFromExtents(operation, range, room, result);
      }
      break;
    }
    bool removed = false;
    if (!search.busy) {
      status =
          co_await records_.RemoveExpired(operation, key.database, index_key, search, &removed);
      core_.AfterWrite();
      if (!status.ok() || removed) break;
    } else if (!co_await backoff.Wait()) {
      status = kContended;
      break;
    }
    if (OutOfTime(core_.context, operation)) {
      status = kContended;
      break;
    }
  }
  co_return status;
}

}  // namespace onetrip
