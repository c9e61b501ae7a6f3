// Records: keys whose slots name all that there is of them (FUSEE UPDATE, INSERT and DELETE).
#include "client_core/kv/forms/record.h"

#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/paused.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

// PROTOCOLS, "One key, two forms": the writer that replaces a register's object first writes F into
// the register's final word, in the same round trip as the first step of its own.
bool Records::TellOrigin(const SearchResult& search, RecordOrigin* origin, RoundTripPtr* first) {
  if (!core_.registers || !RecordHasOrigin(search.record, RecordKeyEnd(0), origin)) return false;
  if (!*first) *first = core_.context.fabric.NewRoundTrip();
  RegisterSeal::AddFinal(core_.context, **first, SlotWord(origin->register_word).addr(),
                         origin->last_word);
  return true;
}

void Records::RetireOrigin(const RecordOrigin& origin) {
  const SlotWord word(origin.register_word);
  core_.registers->cache.Forget(word.addr());
  core_.allocator.RetireRegister(word.addr(), word.size_class());
}

// The draft takes the place of the record that `search` found, whatever it holds.
Task<Result<Step>> Records::OverwriteBlindly(Operation& operation, const IndexKey& key,
                                             const SearchResult& search, Draft* draft, bool* won) {
  const SlotWord v_new = drafts_.WordFor(key, *draft, /*blind=*/true);
  RecordOrigin origin;
  // The draft's own WRITEs went with the search, if there was one.
  RoundTripPtr first;
  if (search.remembered) first = draft->buffer;
  const bool has_origin = TellOrigin(search, &origin, &first);
  const uint64_t views = core_.hot.views();
  const MechanismScope scope = core_.hot.Writing(search);
  const Result<SlotOutcome> outcome =
      co_await core_.engine.Write(operation, {.slot = search.entry.slot,
                                              .v_old = search.entry.word.bits(),
                                              .v_new = v_new.bits(),
                                              .log = draft->addr,
                                              .first = first.get()});
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won) {
    core_.index.CacheLocation(key.hash, {search.entry.slot, v_new});
    const SlotWord old = search.entry.word;
    if (search.remembered) core_.metrics.hot_writes.Add();
    core_.hot.Wrote(operation, views, key, old, {search.entry.slot, v_new}, draft->record,
                    draft->bytes);
    if (old.size_class().is_root()) [[unlikely]]
      co_await extents_.RetireExtents(operation, old);
    core_.allocator.Retire(old.addr(), old.size_class());
    if (has_origin) RetireOrigin(origin);
    if (won != nullptr) *won = true;
    co_return Step::kDone;
  }
  core_.metrics.lost_rounds.Add();
  // Lost to another blind write of this key: ours happened just before it. What is remembered may
  // have been replaced before this operation began.
  Result<bool> overwritten = false;
  if (search.remembered) core_.hot.Forget(key.hash);
  if (!search.remembered || Planted(Bug::kHotLoserDone)) {
    const Entry now{search.entry.slot, SlotWord(outcome.value().current)};
    overwritten = co_await core_.index.IsBlindWriteOf(operation, key, now);
    RetryAcrossViews retry(core_.context, operation);
    while (!overwritten.ok()) {
      const bool again = co_await core_.MayTryAgain(operation, overwritten.status(), &retry);
      if (!again) co_return overwritten.status();
      overwritten = co_await core_.index.IsBlindWriteOf(operation, key, now);
    }
  }
  if (overwritten.value() || Planted(Bug::kBlindLoserAlwaysOk)) {
    drafts_.Abandon(*draft);
    co_return Step::kDone;
  }
  if (outcome.value().spent) {
    const Status renewed = co_await drafts_.Renew(operation, key, draft);
    if (!renewed.ok()) co_return renewed;
  }
  co_return Step::kAgain;
}

Task<Status> Records::TryInsert(Operation& operation, const IndexKey& key,
                                const SearchResult& search, bool blind, RoundTripPtr writes,
                                Draft* draft, bool* done) {
  Entry entry;
  const Result<InsertOutcome> outcome = co_await core_.index.Insert(
      operation, key, search, drafts_.WordFor(key, *draft, blind), std::move(writes), &entry);
  if (!outcome.ok()) co_return outcome.status();
  switch (outcome.value()) {
    case InsertOutcome::kInserted:
      *done = true;
      co_return Status::Ok();
    case InsertOutcome::kSearchAgain:
      core_.metrics.lost_rounds.Add();
      co_return Status::Ok();
    case InsertOutcome::kRenew:
      core_.metrics.lost_rounds.Add();
      co_return co_await drafts_.Renew(operation, key, draft);
    case InsertOutcome::kFull: {
      Paused paused(core_, operation);
      const Status status =
          co_await core_.index.MakeRoom(core_.gate, operation.in_flight, search.table, key.hash);
      co_return co_await paused.Resume(status);
    }
  }
  co_return Status::Ok();
}

Task<Status> Records::TryRemove(Operation& operation, const SearchResult& search, bool* removed) {
  const SlotWord v_old = search.entry.word;
  const SlotWord empty = core_.index.NewEmptyWord();
  RecordOrigin origin;
  RoundTripPtr tell;
  const bool has_origin = TellOrigin(search, &origin, &tell);
  const Result<SlotOutcome> outcome =
      co_await core_.engine.Write(operation, {.slot = search.entry.slot,
                                              .v_old = v_old.bits(),
                                              .v_new = empty.bits(),
                                              .log = GlobalAddr(),
                                              .first = tell.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) core_.metrics.objects_left.Add();
  if (!outcome.ok()) co_return outcome.status();
  *removed = outcome.value().won;
  if (*removed) {
    if (v_old.size_class().is_root()) [[unlikely]]
      co_await extents_.RetireExtents(operation, v_old);
    core_.allocator.Retire(v_old.addr(), v_old.size_class());
    if (has_origin) RetireOrigin(origin);
  } else {
    core_.metrics.lost_rounds.Add();
  }
  co_return Status::Ok();
}

// A record was alive when its slot was read and is expired by now: what the key held in between
// only the slot can tell. Emptied from the very word that was read, it was missing at that moment;
// a word that has changed must be looked at again, for it may have been changed before the
// deadline.
Task<Status> Records::RemoveExpired(Operation& operation, uint32_t database, const IndexKey& key,
                                    const SearchResult& search, bool* removed) {
  Status status = co_await TryRemove(operation, search, removed);
  if (!*removed && Planted(Bug::kExpiryRemovesWhatIsNow)) {
    SearchResult now;
    status = co_await core_.index.Find(operation, key, ReadExtent::kKey,
                                       core_.context.fabric.NewRoundTrip(), &now);
    if (now.found) status = co_await TryRemove(operation, now, removed);
  }
  if (*removed) {
    core_.metrics.expired.Add();
    counters_.Count(database, key.keyspace, -1);
  }
  co_return status;
}

Task<Status> Records::RestateRecord(RegisterOperation& operation, const IndexKey& key,
                                    const SearchResult& search, Draft* reserved, bool* done,
                                    const std::string_view* root, bool* won) {
  const SlotWord v_old = search.entry.word;
  *done = reserved->addr.is_null();
  if (*done) co_return Status::Ok();
  RecordOrigin origin;
  RoundTripPtr buffer;
  const bool has_origin = TellOrigin(search, &origin, &buffer);
  if (!has_origin) buffer = core_.context.fabric.NewRoundTrip();
  if (!RecordIsIntact(search.record, v_old.size_class().bytes())) {
    co_return Status(StatusCode::kCorrupt, "a record fails its checksum");
  }
  const RecordHeader header = LoadRecordHeader(search.record);
  const std::string_view value = root != nullptr ? *root : RecordValue(search.record);
  const uint64_t bytes = RecordBytes(key.bytes.size(), value.size());
  // Others were faster, with a larger one.
  *done = bytes > reserved->size_class.bytes();
  if (*done) co_return Status::Ok();
  Draft draft = std::exchange(*reserved, Draft());
  draft.bytes = static_cast<uint32_t>(bytes);
  draft.buffer = std::move(buffer);
  draft.record = draft.buffer->Reserve(draft.bytes);
  RecordFields fields;
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  fields.value_head = value;
  fields.deadline_ms = header.deadline_ms;
  fields.version = header.version;
  fields.type = header.type;
  fields.opcode = LogOpcode::kRestated;
  EncodeRecord(fields, draft.record);
  drafts_.AddWrites(*draft.buffer, draft);
  const SlotWord v_new = drafts_.WordFor(key, draft, /*blind=*/false);
  const Result<SlotOutcome> outcome = co_await core_.engine.Write(
      operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft.addr, draft.buffer.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) core_.metrics.objects_left.Add();
  if (!outcome.ok()) {
    if (outcome.status().code() != StatusCode::kUnknownOutcome) drafts_.Abandon(draft);
    co_return outcome.status();
  }
  *done = true;
  if (!outcome.value().won) {
    core_.metrics.lost_rounds.Add();
    drafts_.Abandon(draft);
    co_return Status::Ok();
  }
  if (won != nullptr) *won = true;
  core_.index.CacheLocation(key.hash, {search.entry.slot, v_new});
  if (Planted(Bug::kMovedFreedAtOnce)) {
    core_.allocator.FreeUnpublished(v_old.addr(), v_old.size_class());
  } else {
    core_.allocator.Retire(v_old.addr(), v_old.size_class());
  }
  if (has_origin) RetireOrigin(origin);
  co_return Status::Ok();
}

void Records::FillFromRecord(const SearchResult& search, ReadResult* result) {
  const RecordHeader header = LoadRecordHeader(search.record);
  const std::string_view value = RecordValue(search.record);
  result->found_ = true;
  result->record_ = {value, value.size(), header.deadline_ms, header.version, header.type, nullptr};
  result->bytes_ = search.bytes;
}

}  // namespace onetrip
