// How registers end: DEL, and the change into a record (PROTOCOLS, "One key, two forms").
//
//   the register's seals     then the slot, from the register's word to     then, before that goes
//   FROZEN (or mixed)        a record with (X, F)                           final word of X = F
//   DELETED by one D         DROPPED(X, D)                                  final word = DROPPED(D)
//
// What the slot goes to is decided by the slot alone; a worker that meets a sealed register helps.
// A register's memory is given up when its final word is written and nothing in the index names it.
#include "client_core/kv/forms/register_end.h"

#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kUnresolved(StatusCode::kUnknownOutcome,
                             "a write was interrupted, and what became of it could not be learned");

// A value that becomes longer by more than this is thawed first.
constexpr uint64_t kGrowthMax = kRegisterValueBytesMax;

// An interrupted write waits for this time for the memory of a record.
constexpr uint64_t kShortTicks = 3;

}  // namespace

SizeClass RegisterEnds::ThawedClass(const IndexKey& key, const CachedRegister& entry,
                                    const ReadResult* current, uint64_t growth) {
  const uint64_t bytes = current != nullptr && current->found()
                             ? current->record().value_bytes
                             : entry.handle.ref.shape.value_bytes_max() - kKeyValueHeadBytes;
  return SizeClass::For(RecordBytes(key.bytes.size(), bytes + growth) + sizeof(RecordOrigin));
}

// The slot names `entry`; something has sealed it, or has to. Ok: the slot may have changed, by us
// or by others. REQUIRES: `operation` has been pinned since before its search. With `may_wait` the
// pins may be given up to wait for memory. kOutOfMemory: this worker has sealed nothing, unless it
// was sealed before, or came to a longer value than what is `reserved` is for.
Task<Status> RegisterEnds::EndRegister(RegisterOperation& operation, const IndexKey& key,
                                       Entry slot, CachedRegister& entry, bool may_wait,
                                       Draft* reserved, Replacement* replacement) {
  const Allocator::Holder holder(core_.allocator);
  RegisterCache::Use use(core_.registers->cache, entry);
  // Memory for the record first, or a full pool would leave a frozen register behind. What is
  // sealed takes what it has come to, behind the seals; for a DEL there is no record.
  Draft draft;
  if (reserved != nullptr) draft = std::exchange(*reserved, Draft());
  if (replacement != nullptr && replacement->growth > kGrowthMax) replacement = nullptr;
  const SealWord met_seal = entry.met_seal;
  if (draft.addr.is_null() && met_seal.open()) {
    draft.size_class =
        ThawedClass(key, entry, nullptr, replacement == nullptr ? 0 : replacement->growth);
    const Result<GlobalAddr> at_once = co_await core_.allocator.AllocatePinned(draft.size_class);
    if (!at_once.ok() && !may_wait) co_return at_once.status();
    if (!at_once.ok()) co_return co_await core_.AwaitMemory(operation, draft.size_class, nullptr);
    draft.addr = at_once.value();
  }
  if (may_wait) operation.shared_pin = SharedPin(core_.reclaimer.Pin());
  const Result<SealOutcome> sealed =
      co_await core_.registers->seal.Seal(operation, entry.handle, SealWord::Frozen(), true);
  Status status = sealed.status();
  if (status.code() == StatusCode::kNotFound) {
    status = Status::Ok();  // the bytes of F went with a node: another majority has another F
  } else if (!status.ok()) {
    status = AfterSend(status);
  } else if (sealed->deleter.has_value()) {
    const auto credited = co_await DropRegister(operation, slot, CreditOf(*sealed->deleter), false);
    status = credited.status();
  } else if (draft.addr.is_null() && met_seal.is_deleted()) {
    entry.met_seal = SealWord::Frozen();  // the DELETED one did not answer: a record is needed
  } else {
    status = co_await ThawRegister(operation, key, slot, entry, sealed->f, &draft, replacement);
    if (status.code() == StatusCode::kOutOfMemory && may_wait) {
      const uint64_t value_bytes = sealed->f.value.bytes.size() - kKeyValueHeadBytes;
      const uint64_t bytes = RecordBytes(key.bytes.size(), value_bytes) + sizeof(RecordOrigin);
      status = co_await core_.AwaitMemory(operation, SizeClass::For(bytes), nullptr);
    }
  }
  if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
  co_return status;
}

// Takes the draft's memory once a slot may name it.
Task<Status> RegisterEnds::ThawRegister(RegisterOperation& operation, const IndexKey& key,
                                        Entry slot, CachedRegister& entry, const Tuple& f,
                                        Draft* reserved, Replacement* replacement) {
  KeyValue value;
  if (!DecodeKeyValue(f.value.bytes, &value)) {
    co_return Status(StatusCode::kCorrupt, "a register that a slot names holds no value");
  }
  Draft draft = std::exchange(*reserved, Draft());
  // The same write in another form: a comparison of versions sees no change.
  const RecordView last{value.bytes,       value.bytes.size(),
                        value.deadline_ms, VersionOf(entry.handle.ref, f.word),
                        value.type,        nullptr};
  RecordFields fields;
  const uint64_t room = draft.addr.is_null() ? 0 : draft.size_class.bytes();
  const bool replaces = replacement != nullptr && !core_.IsExpired(value) &&
                        Replace(key, last, room, *replacement, &fields);
  if (!replaces) {
    fields.value_head = last.value;
    fields.deadline_ms = last.deadline_ms;
    fields.version = last.version;
    fields.type = last.type;
  }
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  fields.opcode = LogOpcode::kThawed;
  fields.origin = {entry.word.bits(), f.word.AsGuess().bits()};
  draft.bytes = static_cast<uint32_t>(RecordBytes(key.bytes.size(), fields.value_bytes()) +
                                      sizeof(RecordOrigin));
  if (draft.addr.is_null() || draft.bytes > draft.size_class.bytes()) [[unlikely]] {
    // It was sealed already, or a longer value came ahead of the seals than the one that was read.
    const Status status = co_await ReserveInPlaceOf(entry.word, SizeClass::For(draft.bytes),
                                                    RecordRoom::kReserve, &draft);
    if (!status.ok()) co_return status;
  }
  draft.buffer = core_.context.fabric.NewRoundTrip();
  draft.record = draft.buffer->Reserve(draft.bytes);
  EncodeRecord(fields, draft.record);
  drafts_.AddWrites(*draft.buffer, draft);
  const SlotWord v_new = SlotWord::Make(SlotKind::kObject, key.hash.fingerprint(), draft.size_class,
                                        draft.addr, replaces && replacement->blind);
  const Result<SlotOutcome> outcome =
      co_await core_.engine.Write(operation, {.slot = slot.slot,
                                              .v_old = slot.word.bits(),
                                              .v_new = v_new.bits(),
                                              .log = draft.addr,
                                              .first = draft.buffer.get()});
  if (!outcome.ok()) {
    if (outcome.status().code() == StatusCode::kUnknownOutcome) {
      core_.metrics.objects_left.Add();
    } else {
      drafts_.Abandon(draft);  // no slot names it, nor will
    }
    co_return outcome.status();
  }
  if (outcome.value().won) {
    if (replaces) replacement->done = true;
    core_.metrics.registers_thawed.Add();
    core_.index.CacheLocation(key.hash, {slot.slot, v_new});
    core_.registers->cache.Forget(entry.handle.ref.addr);
  } else {
    core_.metrics.lost_rounds.Add();
    drafts_.Abandon(draft);
  }
  co_return Status::Ok();
}

bool RegisterEnds::Replace(const IndexKey& key, const RecordView& last, uint64_t room,
                           Replacement& replacement, RecordFields* fields) {
  const bool is_old = Planted(Bug::kSealedMutatesTheRead) && replacement.read != nullptr;
  const Change change = replacement.mutation.Apply(is_old ? replacement.read : &last);
  const NewRecord& record = change.record;
  if (change.kind != Change::Kind::kWrite || core_.NeedsExtents(record) ||
      RecordBytes(key.bytes.size(), record.bytes()) + sizeof(RecordOrigin) > room) {
    return false;
  }
  fields->value_head = record.head;
  fields->value_gap = record.gap_bytes;
  fields->value_tail = record.tail;
  fields->value_rest = record.rest;
  fields->deadline_ms = record.deadline_ms;
  fields->version = core_.NextVersion();
  fields->type = record.type;
  if (change.version != nullptr) *change.version = fields->version;
  return true;
}

Task<Status> RegisterEnds::ReserveInPlaceOf(SlotWord register_word, SizeClass size_class,
                                            RecordRoom room, Draft* draft) {
  if (!draft->addr.is_null() && draft->size_class.bytes() >= size_class.bytes()) {
    co_return Status::Ok();
  }
  if (!draft->addr.is_null()) core_.allocator.FreeUnpublished(draft->addr, draft->size_class);
  draft->addr = GlobalAddr();
  if (room == RecordRoom::kOrdinary) {
    const Result<GlobalAddr> addr = co_await core_.allocator.AllocatePinned(size_class);
    if (!addr.ok()) co_return addr.status();
    draft->addr = addr.value();
    draft->size_class = size_class;
    co_return Status::Ok();
  }
  const Result<Allocator::Object> object = co_await core_.allocator.AllocateInPlaceOf(
      register_word.size_class(), size_class, room == RecordRoom::kReserve);
  if (!object.ok()) co_return object.status();
  draft->addr = object->addr;
  draft->size_class = object->size_class;
  co_return Status::Ok();
}

// Several may propose the same word, each on behalf of the same deleter.
Task<Result<std::optional<uint32_t>>> RegisterEnds::DropRegister(RegisterOperation& operation,
                                                                 Entry slot, uint32_t credit,
                                                                 bool in_background) {
  const GlobalAddr register_addr = slot.word.addr();
  const SlotWord dropped = SlotWord::Dropped(register_addr, credit);
  const Result<SlotOutcome> outcome =
      co_await core_.engine.Write(operation, {.slot = slot.slot,
                                              .v_old = slot.word.bits(),
                                              .v_new = dropped.bits(),
                                              .log = GlobalAddr(),
                                              .first = nullptr,
                                              .shared = true});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) core_.metrics.objects_left.Add();
  if (!outcome.ok()) co_return outcome.status();
  const SlotWord now = outcome.value().won ? dropped : SlotWord(outcome.value().current);
  if (!now.is_dropped() || now.addr() != register_addr) {
    core_.metrics.lost_rounds.Add();
    co_return std::optional<uint32_t>();
  }
  core_.registers->cache.Forget(register_addr);
  const Entry entry{slot.slot, now};
  if (in_background) {
    co_await FreeDropped(operation.in_flight, entry, slot.word.size_class());
  } else {
    core_.context.executor.Spawn(core_.gate,
                                 FreeBeside(operation.in_flight, entry, slot.word.size_class()));
  }
  co_return std::optional<uint32_t>(now.credit());
}

Task<void> RegisterEnds::FreeBeside(Quiesce::InFlightGuard in_flight, Entry dropped,
                                    SizeClass size_class) {
  co_await FreeDropped(in_flight, dropped, size_class);
}

// In the background: records the end in the register, then frees the slot; the worker that frees it
// gives the register's memory up.
Task<void> RegisterEnds::FreeDropped(Quiesce::InFlightGuard& in_flight, Entry dropped,
                                     SizeClass size_class) {
  Operation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = core_.reclaimer.Pin();
  const GlobalAddr register_addr = dropped.word.addr();
  RoundTripPtr first = core_.context.fabric.NewRoundTrip();
  RegisterSeal::AddFinal(core_.context, *first, register_addr,
                         FinalWord::Dropped(dropped.word.credit()).bits());
  const Result<SlotOutcome> outcome =
      co_await core_.engine.Write(operation, {.slot = dropped.slot,
                                              .v_old = dropped.word.bits(),
                                              .v_new = core_.index.NewEmptyWord().bits(),
                                              .log = GlobalAddr(),
                                              .first = first.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) core_.metrics.objects_left.Add();
  if (!outcome.ok() || !outcome.value().won) co_return;
  core_.metrics.registers_dropped.Add();
  core_.allocator.RetireRegister(register_addr, size_class);
}

// The final word of a register that is sealed, once it has left the index; its end is helped along
// as long as it has not. The operation keeps its pin throughout, so the register is still there.
Task<Result<FinalWord>> RegisterEnds::AwaitFinalWord(RegisterOperation& operation,
                                                     const IndexKey& key, CachedRegister& entry) {
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) co_return kUnresolved;
  const GlobalAddr register_addr = entry.handle.ref.addr;
  Backoff backoff(core_.context, operation);
  RetryAcrossViews retry(core_.context, operation);
  uint64_t short_until_ns = 0;
  while (true) {
    SearchResult search;
    Status status = co_await core_.index.Find(operation, key, ReadExtent::kKey,
                                              core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status =
          co_await drafts_.FindAgain(operation, key, ReadExtent::kKey, nullptr, status, &search);
    }
    if (!status.ok()) co_return kUnresolved;
    const bool still_there = search.found && NamesRegister(search.entry.word, register_addr);
    if (!still_there && !search.busy) {
      RecordOrigin origin;
      const bool carried_on = search.found && !search.entry.word.is_register() &&
                              RecordHasOrigin(search.record, RecordKeyEnd(0), &origin) &&
                              SlotWord(origin.register_word).addr() == register_addr;
      if (carried_on) {
        co_return FinalWord(origin.last_word);
      }
      if (Planted(Bug::kInterruptedAsksSlotOnly)) co_return Status(StatusCode::kNotFound);
      const Result<FinalWord> recorded =
          co_await core_.registers->seal.ReadFinal(operation, entry.handle);
      if (!recorded.ok()) {
        const bool again = co_await core_.MayTryAgain(operation, recorded.status(), &retry);
        if (again) continue;
        co_return kUnresolved;
      }
      co_return recorded.value();
    }
    if (still_there && !search.busy) {
      status = co_await EndRegister(operation, key, search.entry, entry, /*may_wait=*/false);
      if (status.code() == StatusCode::kOutOfMemory) {
        // Others may free some in time; but not what this pin keeps from coming back.
        const uint64_t now_ns = core_.context.executor.NowNs();
        if (short_until_ns == 0) {
          short_until_ns = now_ns + kShortTicks * core_.context.options.epoch_tick_us * 1000;
        }
        if (now_ns >= short_until_ns) co_return kUnresolved;
      } else if (!status.ok()) {
        const bool again = co_await core_.MayTryAgain(operation, status, &retry);
        if (!again) co_return kUnresolved;
      }
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kUnresolved;
  }
}

// A write that met a seal: whether it took effect before the register ended, or has to be done
// again.
Task<Result<RegisterResult>> RegisterEnds::ResolveInterrupted(RegisterOperation& operation,
                                                              const IndexKey& key,
                                                              CachedRegister& entry,
                                                              const WriteOutcome& outcome) {
  core_.metrics.interrupted_writes.Add();
  if (Planted(Bug::kInterruptedAlwaysRedone)) co_return RegisterResult::kAgain;
  if (Planted(Bug::kInterruptedNeverRedone)) co_return RegisterResult::kDone;
  const Result<FinalWord> end = co_await AwaitFinalWord(operation, key, entry);
  if (Planted(Bug::kInterruptedAsksSlotOnly) && end.status().code() == StatusCode::kNotFound) {
    co_return RegisterResult::kAgain;
  }
  if (!end.ok()) co_return end.status();
  const FinalWord final_word = end.value();

  // It had not come to its word yet.
  if (outcome.guess.is_empty() && outcome.rewrite.is_empty()) co_return RegisterResult::kAgain;
  // Not recorded yet: its slot says DROPPED.
  const bool dropped = final_word.is_empty() || final_word.is_dropped();
  const MetaWord f = dropped ? MetaWord() : final_word.word().AsGuess();
  const MetaWord w = outcome.guess.AsGuess();
  const MetaWord w2 = outcome.rewrite.AsGuess();
  if (!dropped && (f == w || f == w2)) co_return RegisterResult::kDone;
  if (!w2.is_empty()) {
    co_return dropped || f > w2 ? RegisterResult::kDone : RegisterResult::kAgain;
  }
  // No reader has read it without a lock where the register came to less: what is everywhere ahead
  // of the seals is in F.
  const bool may_be_read = dropped || f > w;
  if (may_be_read) {
    // It began before the register's end was complete: it came just ahead of that.
    if (outcome.spread == GuessSpread::kFresh) co_return RegisterResult::kDone;
    if (outcome.spread == GuessSpread::kUnknown) co_return kUnresolved;
  }
  const Result<bool> locked = co_await core_.registers->safe_guess.timestamp_lock().TryLock(
      operation, entry.handle, outcome.guess, LockMode::kWrite);
  if (!locked.ok()) co_return kUnresolved;
  co_return locked.value() ? RegisterResult::kAgain : RegisterResult::kDone;
}

// No database can name the key any more; its register still has to be closed to workers that wrote
// to it before.
Task<Status> RegisterEnds::SweepRegister(Quiesce::InFlightGuard& in_flight, Entry slot,
                                         bool* gone) {
  RegisterOperation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.shared_pin = SharedPin(core_.reclaimer.Pin());
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const std::byte* bytes =
      round_trip->Read(core_.context.view().Locate(slot.word.addr(), 0), kRegisterHeaderBytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  if (!status.ok()) co_return status;
  RegisterHeader header;
  RegisterRef ref;
  if (!LoadRegisterShape(slot.word, bytes, &header, &ref.shape)) {
    co_return Status(StatusCode::kCorrupt, "a slot names a register that is none");
  }
  ref.addr = slot.word.addr();
  ref.incarnation = header.incarnation;
  ref.birth = Ticks{header.birth_ticks};
  const RegisterHandle handle(ref, core_.registers->clock);
  const WorkerId me = core_.context.membership.id;
  const Result<SealOutcome> sealed =
      co_await core_.registers->seal.Seal(operation, handle, SealWord::Deleted(me), false);
  if (!sealed.ok()) co_return sealed.status();
  const Result<std::optional<uint32_t>> dropped = co_await DropRegister(
      operation, slot, CreditOf(sealed->one_deleter ? *sealed->deleter : me), true);
  if (!dropped.ok()) co_return dropped.status();
  *gone = dropped->has_value();
  co_return Status::Ok();
}

}  // namespace onetrip
