// GET (FUSEE SEARCH; SWARM 5).
#include <string_view>

#include "client_core/kv/slot_store.h"

namespace onetrip {
namespace {

// The part that `range` says of a value that is there whole, or is that part already.
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
  return core_.runs_inline ? GetInline(key, range, result) : GetSlow(key, range, result);
}

Task<Status> SlotStore::GetBehind(Key key, ReadResult* result) {
  if (core_.holds_registers()) [[unlikely]] {
    return Get(key, result);
  }
  return GetSlow(key, kWholeValue, result);
}

Task<Status> SlotStore::GetInline(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (registers_.GetFast(&key, result)) {
    result->record_.value = PartIn(result->record_, range);
    co_return Status::Ok();
  }
  const Status status = co_await GetSlow(key, range, result);
  co_return status;
}

// A read that loses a node begins again: at the latest under the view without that node it
// succeeds.
Task<Status> SlotStore::GetSlow(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
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
      co_return core_.Finish(core_.metrics.get_round_trips, operation, status);
    }
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    operation.in_flight.LeaveSlots();
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
  } else if (core_.registers) {
    const Result<RegisterResult> read =
        co_await registers_.ReadResting(operation, index_key, result);
    if (!read.ok() || read.value() == RegisterResult::kDone) co_return read.status();
  }
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = core_.reclaimer.Pin();
  Backoff backoff(core_.context, operation);
  Status status;
  while (true) {
    FoundKey found{key, index_key, core_.Forgotten()};
    RegisterReadBeside beside(core_, index_key);
    found.beside = &beside;
    status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                       core_.context.fabric.NewRoundTrip(), &found.search, &beside);
    if (!status.ok() || !found.search.found) break;
    Form& form = forms_.Of(found.search.entry.word);
    const Result<Step> step = co_await form.Get(operation, found, range, room, result);
    status = step.status();
    if (!status.ok() || step.value() == Step::kDone) break;
    if (step.value() == Step::kWait) {
      const bool in_time = co_await backoff.Wait();
      if (in_time) continue;
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
