// Read-modify-write: read the record, build the new one out of place, swing the slot from exactly
// the word that was read; a loser reads again (PROTOCOLS, "SNAPSHOT").
#include <absl/cleanup/cleanup.h>

#include <utility>

#include "client_core/kv/slot_store.h"

namespace onetrip {

Task<Status> SlotStore::ReadModifyWrite(Key key, Mutation& mutation) {
  if (!core_.context.fabric.completes_inline()) return ReadModifyWriteInTurn(key, mutation);
  const bool gathers = key.in_order != nullptr || repeated_keys_.Note(key);
  if (gathers) return ReadModifyWriteGathered(key, mutation);
  // One has ended before the next begins, unless it waits: for memory, or for others.
  if (mutations_under_way_ == 0) [[likely]] {
    return StartReadModifyWrite(key, mutation, nullptr);
  }
  return ReadModifyWriteInTurn(key, mutation);
}

Task<Status> SlotStore::ReadModifyWriteInTurn(Key key, Mutation& mutation) {
  MutationQueue::Place place(mutations_, key, mutation);
  co_await place.Turn();
  if (place.outcome().has_value()) co_return *place.outcome();
  co_return co_await Lead(key, place);
}

// Inline: others that begin in this turn of the loop join it.
Task<Status> SlotStore::ReadModifyWriteGathered(Key key, Mutation& mutation) {
  MutationQueue::Place place(mutations_, key, mutation);
  if (place.has_turn()) {
    co_await core_.context.executor.Yield();
    if (place.is_alone()) repeated_keys_.NoteAlone(key);
  } else {
    co_await place.Turn();
  }
  if (place.outcome().has_value()) co_return *place.outcome();
  co_return co_await Lead(key, place);
}

Task<Status> SlotStore::Lead(Key key, MutationQueue::Place& place) {
  while (true) {
    MutationQueue::Batch batch = mutations_.Lead(place);
    const Status status = co_await StartReadModifyWrite(key, batch, &batch);
    if (mutations_.Finish(place, batch, status)) co_return status;
  }
}

Task<Status> SlotStore::StartReadModifyWrite(Key key, Mutation& mutation,
                                             MutationQueue::Batch* batch) {
  if (core_.held()) [[unlikely]] {
    return core_.AfterHold(
        [this, key, &mutation, batch] { return ReadModifyWriteNow(key, mutation, batch); });
  }
  return ReadModifyWriteNow(key, mutation, batch);
}

Task<Status> SlotStore::ReadModifyWriteNow(Key key, Mutation& mutation,
                                           MutationQueue::Batch* batch) {
  if (key.bytes.size() > kMaxKeyBytes) {
    co_return Status(StatusCode::kTooLarge, "key is longer than 65535 bytes");
  }
  ++mutations_under_way_;
  const absl::Cleanup at_the_end = [this] { --mutations_under_way_; };
  Allocator::Holder holder(core_.allocator);
  RegisterOperation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
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
  bool is_first = true;
  while (!done && status.ok()) {
    // Anew each time: an attempt may have given up its pin, and with it a keyspace that was
    // flushed.
    const IndexKey index_key = core_.MakeKey(key);
    draft.gives_up = SizeClass();
    FoundKey found{key, index_key, core_.Forgotten()};
    const bool is_hot = std::exchange(is_first, false) && core_.hot.Find(index_key, &found.search);
    if (!is_hot) {
      status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                         core_.context.fabric.NewRoundTrip(), &found.search);
    }
    if (!status.ok() || found.search.busy) [[unlikely]] {
      const Result<Step> searched = co_await SearchOn(operation, &found, status);
      status = searched.status();
      if (!status.ok()) break;
      if (searched.value() == Step::kAgain) continue;
    }
    Form& form = found.search.found ? forms_.Of(found.search.entry.word) : forms_.OfMissing();
    const Result<Step> step = co_await form.Mutate(operation, found, mutation, &room, &draft);
    status = step.status();
    done = status.ok() && step.value() == Step::kDone;
    if (status.code() == StatusCode::kOutOfMemory) [[unlikely]]
      status = co_await drafts_.GoOnInPlace(operation, &draft);
    const bool is_over = status.ok() || status.code() == StatusCode::kUnknownOutcome ||
                         status.code() == kHeld.code();
    if (is_hot && !is_over) [[unlikely]] {
      // It may be one of a value that is no more.
      core_.hot.Forget(index_key.hash);
      drafts_.Abandon(draft);
      draft.Forget();
      status = Status::Ok();
    }
    if (room.turn) [[unlikely]] {
      if (batch != nullptr) mutations_.Disband(*batch);
      status = co_await extents_.WaitForRoom(operation, &room);
    }
    if (!done && status.ok() && OutOfTime(core_.context, operation)) status = kContended;
  }
  // Memory reserved for an attempt that was not the last one.
  if (status.code() != StatusCode::kUnknownOutcome) drafts_.Abandon(draft);
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.rmw_round_trips, operation, status);
}

// Behind a search that has failed with `status`, or found the key's subtable busy. kAgain: the
// keyspace was flushed meanwhile.
Task<Result<Step>> SlotStore::SearchOn(RegisterOperation& operation, FoundKey* found,
                                       Status status) {
  Backoff backoff(core_.context, operation);
  while (true) {
    if (!status.ok()) {
      status = co_await drafts_.FindAgain(operation, found->index_key, ReadExtent::kWhole, nullptr,
                                          status, &found->search);
      // A key flushed meanwhile may have expired since: it was there when the flush took it.
      const bool is_flushed = core_.MakeKey(found->key).keyspace != found->index_key.keyspace;
      if (status.ok() && is_flushed) co_return Step::kAgain;
    }
    if (!status.ok()) co_return status;
    if (!found->search.busy) co_return Step::kDone;
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
    found->forgotten = core_.Forgotten();
    status = co_await core_.index.Find(operation, found->index_key, ReadExtent::kWhole,
                                       core_.context.fabric.NewRoundTrip(), &found->search);
  }
}

}  // namespace onetrip
