// SETs that make a key a register, or another one.
#include <utility>

#include "client_core/kv/forms/register.h"

namespace onetrip {

void RegisterForm::KeepRegister(const IndexKey& key, SlotWord word, const Draft& draft) {
  // Over a network a register that rests has to be read before it can be written.
  if (core_.runs_inline && !draft.has_out &&
      core_.registers->cache.AdoptResting(key, word, draft.header, draft.shape, draft.word)) {
    core_.registers->clock.Forget(draft.times);
    return;
  }
  CachedRegister* entry = core_.registers->cache.Adopt(key, word, draft.header, draft.shape);
  entry->handle.times = draft.times;
  entry->handle.lane_word = draft.word;
  if (draft.has_out) entry->live.push_back(draft.out);
}

// A SET that makes a register, from one attempt to the next.
struct RegisterForm::RegisterSet {
  RegisterSet(WorkerContext& context, Operation& operation, const NewRecord& record_in)
      : record(record_in), busy(context, operation) {}

  const NewRecord& record;
  // Waits for all attempts: after a few polls it lets the worker's other operations go on, also
  // where operations complete inline.
  Backoff busy;
  Draft draft;               // the register
  bool written = false;      // the draft's bytes are on all replicas
  bool renew_shape = false;  // the key's register has to make room for another
  bool moves = false;        // ... since there is no room left near it
  bool as_record = false;    // the key stays a record
};

Task<Status> RegisterForm::SetRegister(RegisterOperation& operation, Key key,
                                       const IndexKey& index_key, const NewRecord& record,
                                       BegunWrite begun, Allocator::Holder& holder,
                                       bool* as_record) {
  RegisterSet set(core_.context, operation, record);
  Draft& draft = set.draft;
  draft.holder = &holder;
  Status status;
  while (true) {
    CachedRegister* entry = core_.registers->cache.Find(index_key);
    if (entry != nullptr && !set.renew_shape && !set.moves) {
      const Result<RegisterResult> result =
          co_await WriteRegister(operation, index_key, *entry, record, std::exchange(begun, {}),
                                 draft.addr.is_null() ? &holder : nullptr);
      status = result.status();
      set.moves = status.code() == StatusCode::kOutOfMemory && draft.addr.is_null() &&
                  core_.allocator.has_elsewhere();
      if ((!status.ok() && !set.moves) ||
          (status.ok() && result.value() == RegisterResult::kDone)) {
        break;
      }
    }
    // Begun in this turn, on the entry that is there: what was posted must be brought to its end.
    CHECK(begun.buffers.guess.addr.is_null());
    if (draft.addr.is_null()) {
      operation.shared_pin = SharedPin();
      operation.in_flight.LeaveSlots();
      drafts_.SetDraftValue(record, &draft);
      status = co_await drafts_.ReserveRegister(index_key, &draft);
      if (!status.ok()) break;
      drafts_.EncodeRegister(index_key, &draft);
      set.written = false;
    }
    const bool entered = co_await core_.EnterSlots(operation);
    if (!entered) {
      status = kHeld;
      break;
    }
    operation.pin = core_.reclaimer.Pin();
    const Result<RegisterResult> result = co_await SetThroughIndex(operation, key, index_key, &set);
    operation.pin.Release();
    operation.in_flight.LeaveSlots();
    status = result.status();
    *as_record = set.as_record;
    if (!status.ok() || set.as_record) break;
    if (result.value() == RegisterResult::kDone) co_return status;
    if (OutOfTime(core_.context, operation)) {
      status = kContended;
      break;
    }
  }
  operation.shared_pin = SharedPin();
  if (status.code() != StatusCode::kUnknownOutcome) drafts_.Abandon(draft);
  co_return status;
}

// One attempt. kDone: the draft is the key's register now, or was overwritten at once by another
// blind write, and belongs to no operation here any more.
Task<Result<RegisterResult>> RegisterForm::SetThroughIndex(RegisterOperation& operation, Key key,
                                                           const IndexKey& index_key,
                                                           RegisterSet* set) {
  Draft* const draft = &set->draft;
  RoundTripPtr first = set->written ? core_.context.fabric.NewRoundTrip() : draft->buffer;
  if (!set->written) drafts_.AddWrites(*first, *draft);
  SearchResult search;
  const uint64_t forgotten = core_.Forgotten();
  Status status =
      co_await core_.index.Find(operation, index_key, ReadExtent::kKey, std::move(first), &search);
  if (!status.ok()) {
    status = co_await drafts_.FindAgain(operation, index_key, ReadExtent::kKey,
                                        set->written ? nullptr : draft, status, &search);
  }
  if (!status.ok()) co_return status;
  set->written = true;
  if (search.busy) {
    const bool in_time = co_await set->busy.Wait();
    if (!in_time) co_return kContended;
    co_return RegisterResult::kAgain;
  }
  if (!search.found) {
    bool done = false;
    status = co_await records_.TryInsert(operation, index_key, search, /*blind=*/true,
                                         RoundTripPtr(), draft, &done);
    if (!status.ok()) co_return status;
    if (!done) co_return RegisterResult::kAgain;
    KeepRegister(index_key, drafts_.WordFor(index_key, *draft, /*blind=*/true), *draft);
    counters_.Count(key.database, index_key.keyspace, 1);
    co_return RegisterResult::kDone;
  }
  if (search.entry.word.is_register()) {
    CachedRegister* entry = Adopt(index_key, search, forgotten);
    if (entry == nullptr) co_return RegisterResult::kAgain;
    RegisterCache::Use use(core_.registers->cache, *entry);
    const bool too_small = draft->value.size() > entry->handle.ref.shape.value_bytes_max();
    set->renew_shape = too_small || entry->exhausted || set->moves;
    if (!set->renew_shape) co_return RegisterResult::kAgain;
    // The value goes to the record that ends the register: the next SET makes that one.
    BlindWrite write(set->record);
    Replacement replacement{write, write.GrowthOver(*entry), /*blind=*/true};
    status = co_await ends_.EndRegister(operation, index_key, search.entry, *entry,
                                        /*may_wait=*/true, nullptr, &replacement);
    if (!status.ok()) co_return status;
    // It may have waited for memory, and have sealed nothing.
    if (!replacement.done) co_return RegisterResult::kAgain;
    drafts_.Abandon(*draft);
    co_return RegisterResult::kDone;
  }
  set->moves = false;
  // A record that was made by a read-modify-write, most likely by more of them to come, stays one
  // until it is overwritten twice.
  if (!search.entry.word.blind() && !set->renew_shape) {
    set->as_record = true;
    co_return RegisterResult::kAgain;
  }
  bool won = false;
  const Result<Step> step =
      co_await records_.OverwriteBlindly(operation, index_key, search, draft, &won);
  if (!step.ok()) co_return step.status();
  if (won) KeepRegister(index_key, drafts_.WordFor(index_key, *draft, /*blind=*/true), *draft);
  co_return step.value() == Step::kDone ? RegisterResult::kDone : RegisterResult::kAgain;
}

}  // namespace onetrip
