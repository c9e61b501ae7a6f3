// How registers end: DEL, and the change into a record (PROTOCOLS, "One key, two forms").
//
//   the register's seals     then the slot, from the register's word to     then, before that goes
//   FROZEN (or mixed)        a record with (X, F)                           final word of X = F
//   DELETED by one D         DROPPED(X, D)                                  final word = DROPPED(D)
//
// What the slot goes to is decided by the slot alone; whoever meets a sealed register helps. A
// register's memory is given up when its final word is written and nothing in the index names it.
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kUnresolved(StatusCode::kUnknownOutcome,
                             "a write was interrupted, and what became of it could not be learned");

// For so long an interrupted write waits for the memory of a record.
constexpr uint64_t kShortTicks = 3;

bool Names(SlotWord word, GlobalAddr register_addr) {
  return !word.is_empty() && word.is_register() && word.addr() == register_addr;
}

}  // namespace

SizeClass KvImpl::ThawedClass(const IndexKey& key, const CachedRegister& entry,
                              const ReadResult* current) {
  const uint64_t bytes = current != nullptr && current->found()
                             ? current->record().value_bytes
                             : entry.handle.ref.shape.value_bytes_max() - kKeyValueHeadBytes;
  return SizeClass::For(RecordBytes(key.bytes.size(), bytes) + sizeof(RecordOrigin));
}

// The slot names `entry`; something has sealed it, or has to. Ok: the slot may have changed, by us
// or by others. REQUIRES: `operation` has been pinned since before its search. With `may_wait` the
// pins may be given up to wait for memory. kOutOfMemory: this worker has sealed nothing, unless it
// was sealed before, or came to a longer value than what is `reserved` is for.
Task<Status> KvImpl::EndRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                                 CachedRegister& entry, bool may_wait, Draft* reserved) {
  const Allocator::Holder holder(allocator_);
  RegisterCache::Use use(registers_->cache, entry);
  // Memory for the record first, or a full pool would leave a frozen register behind. What is
  // sealed takes what it has come to, behind the seals; for a DEL there is no record.
  Draft draft;
  if (reserved != nullptr) draft = std::exchange(*reserved, Draft());
  const SealWord met_seal = entry.met_seal;
  if (draft.addr.is_null() && met_seal.open()) {
    draft.size_class = ThawedClass(key, entry);
    const Result<GlobalAddr> at_once = co_await allocator_.AllocatePinned(draft.size_class);
    if (!at_once.ok() && !may_wait) co_return at_once.status();
    if (!at_once.ok()) co_return co_await AwaitMemory(operation, draft.size_class, nullptr);
    draft.addr = at_once.value();
  }
  if (may_wait) operation.shared_pin = SharedPin(reclaimer_.Pin());
  const Result<SealOutcome> sealed =
      co_await registers_->seal.Seal(operation, entry.handle, SealWord::Frozen(), true);
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
    status = co_await ThawRegister(operation, key, slot, entry, sealed->f, &draft);
    if (status.code() == StatusCode::kOutOfMemory && may_wait) {
      const uint64_t value_bytes = sealed->f.value.bytes.size() - kKeyValueHeadBytes;
      const uint64_t bytes = RecordBytes(key.bytes.size(), value_bytes) + sizeof(RecordOrigin);
      status = co_await AwaitMemory(operation, SizeClass::For(bytes), nullptr);
    }
  }
  if (!draft.addr.is_null()) allocator_.FreeUnpublished(draft.addr, draft.size_class);
  co_return status;
}

// Takes the draft's memory once a slot may name it.
Task<Status> KvImpl::ThawRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                                  CachedRegister& entry, const Tuple& f, Draft* reserved) {
  KeyValue value;
  if (!DecodeKeyValue(f.value.bytes, &value)) {
    co_return Status(StatusCode::kCorrupt, "a register that a slot names holds no value");
  }
  Draft draft = std::exchange(*reserved, Draft());
  draft.bytes = static_cast<uint32_t>(RecordBytes(key.bytes.size(), value.bytes.size()) +
                                      sizeof(RecordOrigin));
  if (draft.addr.is_null() || draft.bytes > draft.size_class.bytes()) [[unlikely]] {
    // It was sealed already, or a longer value came ahead of the seals than the one that was read.
    const Status status =
        co_await ReserveInPlaceOf(entry.word, SizeClass::For(draft.bytes), /*own=*/true, &draft);
    if (!status.ok()) co_return status;
  }
  draft.buffer = context_.fabric.NewRoundTrip();
  draft.record = draft.buffer->Reserve(draft.bytes);
  RecordFields fields;
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  fields.value_head = value.bytes;
  fields.deadline_ms = value.deadline_ms;
  // The same write in another form: whoever compares versions sees no change.
  fields.version = VersionOf(entry.handle.ref, f.word);
  fields.type = value.type;
  fields.opcode = LogOpcode::kThawed;
  fields.origin = {entry.word.bits(), f.word.AsGuess().bits()};
  EncodeRecord(fields, draft.record);
  AddWrites(*draft.buffer, draft);
  const SlotWord v_new = SlotWord::Make(SlotKind::kObject, key.hash.fingerprint(), draft.size_class,
                                        draft.addr, /*blind=*/false);
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, {.slot = slot.slot,
                                         .v_old = slot.word.bits(),
                                         .v_new = v_new.bits(),
                                         .log = draft.addr,
                                         .first = draft.buffer.get()});
  if (!outcome.ok()) {
    if (outcome.status().code() == StatusCode::kUnknownOutcome) {
      metrics_.objects_left.Add();
    } else {
      Abandon(draft);  // no slot names it, nor will
    }
    co_return outcome.status();
  }
  if (outcome.value().won) {
    metrics_.registers_thawed.Add();
    index_.CacheLocation(key.hash, {slot.slot, v_new});
    registers_->cache.Forget(entry.handle.ref.addr);
  } else {
    metrics_.lost_rounds.Add();
    Abandon(draft);
  }
  co_return Status::Ok();
}

Task<Status> KvImpl::ReserveInPlaceOf(SlotWord register_word, SizeClass size_class, bool own,
                                      Draft* draft) {
  if (!draft->addr.is_null() && draft->size_class.bytes() >= size_class.bytes()) {
    co_return Status::Ok();
  }
  if (!draft->addr.is_null()) allocator_.FreeUnpublished(draft->addr, draft->size_class);
  draft->addr = GlobalAddr();
  if (!own) {
    const Result<GlobalAddr> addr = co_await allocator_.AllocatePinned(size_class);
    if (!addr.ok()) co_return addr.status();
    draft->addr = addr.value();
    draft->size_class = size_class;
    co_return Status::Ok();
  }
  const Result<Allocator::Object> object =
      co_await allocator_.AllocateInPlaceOf(register_word.size_class(), size_class);
  if (!object.ok()) co_return object.status();
  draft->addr = object->addr;
  draft->size_class = object->size_class;
  co_return Status::Ok();
}

Task<Status> KvImpl::RestateRecord(RegisterOperation& operation, const IndexKey& key,
                                   const SearchResult& search, Draft* reserved, bool* done,
                                   const std::string_view* root, bool* won) {
  const SlotWord v_old = search.entry.word;
  *done = reserved->addr.is_null();
  if (*done) co_return Status::Ok();
  RecordOrigin origin;
  RoundTripPtr buffer;
  const bool has_origin = TellOrigin(search, &origin, &buffer);
  if (!has_origin) buffer = context_.fabric.NewRoundTrip();
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
  AddWrites(*draft.buffer, draft);
  const SlotWord v_new = WordFor(key, draft, /*blind=*/false);
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft.addr, draft.buffer.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) metrics_.objects_left.Add();
  if (!outcome.ok()) {
    if (outcome.status().code() != StatusCode::kUnknownOutcome) Abandon(draft);
    co_return outcome.status();
  }
  *done = true;
  if (!outcome.value().won) {
    metrics_.lost_rounds.Add();
    Abandon(draft);
    co_return Status::Ok();
  }
  if (won != nullptr) *won = true;
  index_.CacheLocation(key.hash, {search.entry.slot, v_new});
  if (Planted(Bug::kMovedFreedAtOnce)) {
    allocator_.FreeUnpublished(v_old.addr(), v_old.size_class());
  } else {
    allocator_.Retire(v_old.addr(), v_old.size_class());
  }
  if (has_origin) RetireOrigin(origin);
  co_return Status::Ok();
}

// Several may propose the same word, each on behalf of the same deleter.
Task<Result<std::optional<uint32_t>>> KvImpl::DropRegister(RegisterOperation& operation, Entry slot,
                                                           uint32_t credit, bool in_background) {
  const GlobalAddr register_addr = slot.word.addr();
  const SlotWord dropped = SlotWord::Dropped(register_addr, credit);
  const Result<SlotOutcome> outcome = co_await engine_.Write(operation, {.slot = slot.slot,
                                                                         .v_old = slot.word.bits(),
                                                                         .v_new = dropped.bits(),
                                                                         .log = GlobalAddr(),
                                                                         .first = nullptr,
                                                                         .shared = true});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) metrics_.objects_left.Add();
  if (!outcome.ok()) co_return outcome.status();
  const SlotWord now = outcome.value().won ? dropped : SlotWord(outcome.value().current);
  if (!now.is_dropped() || now.addr() != register_addr) {
    metrics_.lost_rounds.Add();
    co_return std::optional<uint32_t>();
  }
  registers_->cache.Forget(register_addr);
  const Entry entry{slot.slot, now};
  if (in_background) {
    co_await FreeDropped(operation.presence, entry, slot.word.size_class());
  } else {
    context_.executor.Spawn(gate_, FreeBeside(operation.presence, entry, slot.word.size_class()));
  }
  co_return std::optional<uint32_t>(now.credit());
}

Task<void> KvImpl::FreeBeside(ViewHold::Presence presence, Entry dropped, SizeClass size_class) {
  co_await FreeDropped(presence, dropped, size_class);
}

// In the background: records the end in the register, then frees the slot; whoever frees it gives
// the register's memory up.
Task<void> KvImpl::FreeDropped(ViewHold::Presence& presence, Entry dropped, SizeClass size_class) {
  Operation operation;
  const LentPresence lent(presence, operation);
  operation.pin = reclaimer_.Pin();
  const GlobalAddr register_addr = dropped.word.addr();
  RoundTripPtr first = context_.fabric.NewRoundTrip();
  RegisterSeal::AddFinal(context_, *first, register_addr,
                         FinalWord::Dropped(dropped.word.credit()).bits());
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, {.slot = dropped.slot,
                                         .v_old = dropped.word.bits(),
                                         .v_new = index_.NewEmptyWord().bits(),
                                         .log = GlobalAddr(),
                                         .first = first.get()});
  if (outcome.status().code() == StatusCode::kUnknownOutcome) metrics_.objects_left.Add();
  if (!outcome.ok() || !outcome.value().won) co_return;
  metrics_.registers_dropped.Add();
  allocator_.RetireRegister(register_addr, size_class);
}

// A write that met a seal: whether it took effect before the register ended, or has to be done
// again. The operation keeps its pin throughout, so the register is still there to be asked.
Task<Result<KvImpl::RegisterResult>> KvImpl::ResolveInterrupted(RegisterOperation& operation,
                                                                const IndexKey& key,
                                                                CachedRegister& entry,
                                                                const WriteOutcome& outcome) {
  metrics_.interrupted_writes.Add();
  if (Planted(Bug::kInterruptedAlwaysRedone)) co_return RegisterResult::kAgain;
  if (Planted(Bug::kInterruptedNeverRedone)) co_return RegisterResult::kDone;
  const bool entered = co_await EnterSlots(operation);
  if (!entered) co_return kUnresolved;
  const GlobalAddr register_addr = entry.handle.ref.addr;
  Backoff backoff(context_, operation);
  NodeWait node_wait;
  uint64_t short_until_ns = 0;
  FinalWord final_word;
  while (true) {
    SearchResult search;
    Status status = co_await index_.Find(operation, key, ReadExtent::kKey,
                                         context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await FindAgain(operation, key, ReadExtent::kKey, nullptr, status, &search);
    }
    if (!status.ok()) co_return kUnresolved;
    const bool still_there = search.found && Names(search.entry.word, register_addr);
    if (!still_there && !search.busy) {
      RecordOrigin origin;
      const bool carried_on = search.found && !search.entry.word.is_register() &&
                              RecordHasOrigin(search.record, RecordKeyEnd(0), &origin) &&
                              SlotWord(origin.register_word).addr() == register_addr;
      if (carried_on) {
        final_word = FinalWord(origin.last_word);
        break;
      }
      if (Planted(Bug::kInterruptedAsksSlotOnly)) co_return RegisterResult::kAgain;
      const Result<FinalWord> recorded =
          co_await registers_->seal.ReadFinal(operation, entry.handle);
      if (!recorded.ok()) {
        const bool again = co_await MayTryAgain(operation, recorded.status(), &node_wait);
        if (again) continue;
        co_return kUnresolved;
      }
      final_word = recorded.value();
      break;
    }
    if (still_there && !search.busy) {
      status = co_await EndRegister(operation, key, search.entry, entry, /*may_wait=*/false);
      if (status.code() == StatusCode::kOutOfMemory) {
        // Others may free some in time; but not what this pin keeps from coming back.
        const uint64_t now_ns = context_.executor.NowNs();
        if (short_until_ns == 0) {
          short_until_ns = now_ns + kShortTicks * context_.options.epoch_tick_us * 1000;
        }
        if (now_ns >= short_until_ns) co_return kUnresolved;
      } else if (!status.ok()) {
        const bool again = co_await MayTryAgain(operation, status, &node_wait);
        if (!again) co_return kUnresolved;
      }
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kUnresolved;
  }

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
  // Nobody has read it without a lock where the register came to less: what is everywhere ahead of
  // the seals is in F.
  const bool may_be_read = dropped || f > w;
  if (may_be_read) {
    // It began before the register's end was complete: it came just ahead of that.
    if (outcome.spread == GuessSpread::kFresh) co_return RegisterResult::kDone;
    if (outcome.spread == GuessSpread::kUnknown) co_return kUnresolved;
  }
  const Result<bool> locked = co_await registers_->safe_guess.timestamp_lock().TryLock(
      operation, entry.handle, outcome.guess, LockMode::kWrite);
  if (!locked.ok()) co_return kUnresolved;
  co_return locked.value() ? RegisterResult::kAgain : RegisterResult::kDone;
}

// One round trip if all replicas take the seal: nobody else can be credited then.
Task<Result<KvImpl::RegisterResult>> KvImpl::DeleteRegister(RegisterOperation& operation, Key key,
                                                            const IndexKey& index_key,
                                                            CachedRegister& entry, bool* existed) {
  RegisterCache::Use use(registers_->cache, entry);
  operation.shared_pin = SharedPin(reclaimer_.Pin());
  const GlobalAddr register_addr = entry.handle.ref.addr;
  const WorkerId me = context_.membership.id;
  std::optional<uint32_t> credited;
  bool alive = true;
  bool knows_value = true;
  const bool first = registers_->cache.BeginDelete(entry.handle.ref);
  if (first) {
    // Whether it was alive is judged by the time before the seal: what had time left then was there
    // to be deleted, and others may have found it gone before that time was up.
    const uint64_t began_ms = context_.clock.NowMs();
    const auto seal = SealWord::Deleted(me);
    Result<SealOutcome> sealed =
        co_await registers_->seal.Seal(operation, entry.handle, seal, true);
    if (!sealed.ok() && sealed.status().code() == StatusCode::kNotFound) {
      // Of a register that ended before, the value may be gone already. Only who is credited with
      // its end has to know it.
      knows_value = false;
      sealed = co_await registers_->seal.Seal(operation, entry.handle, seal, false);
    }
    if (!sealed.ok()) co_return knows_value ? AfterSend(sealed.status()) : kUnresolved;
    KeyValue value;
    alive = knows_value && DecodeKeyValue(sealed->f.value.bytes, &value) &&
            (value.deadline_ms == 0 || began_ms < value.deadline_ms);
    if (sealed->all_mine) {
      credited = CreditOf(me);
      // Until the slot is empty.
      context_.executor.Spawn(
          gate_, UnmapDeleted(operation.presence, RegisterCache::Use(registers_->cache, entry)));
    } else {
      const uint32_t credit = CreditOf(sealed->one_deleter ? *sealed->deleter : me);
      const Result<std::optional<uint32_t>> asked =
          co_await CreditedDeleter(operation, index_key, entry, credit);
      if (!asked.ok()) co_return asked.status();
      credited = asked.value();
    }
  }
  if (credited.has_value()) {
    if (*credited == CreditOf(me) || Planted(Bug::kDeleteCreditForgotten)) {
      *existed = alive && !Planted(Bug::kDeleteCreditForgotten);
      Count(key.database, index_key.keyspace, -1);
      if (!knows_value) co_return kUnresolved;
    }
    co_return RegisterResult::kDone;
  }
  if (first) co_return RegisterResult::kAgain;
  // Another DEL of this worker decides: help it, and look again.
  SearchResult search;
  const Status status = co_await index_.Find(operation, index_key, ReadExtent::kKey,
                                             context_.fabric.NewRoundTrip(), &search);
  if (!status.ok()) co_return status;
  if (search.found && !search.busy && Names(search.entry.word, register_addr)) {
    const Result<SealOutcome> sealed =
        co_await registers_->seal.Seal(operation, entry.handle, SealWord::Deleted(me), false);
    if (!sealed.ok()) co_return AfterSend(sealed.status());
    const Result<std::optional<uint32_t>> dropped = co_await DropRegister(
        operation, search.entry, CreditOf(sealed->one_deleter ? *sealed->deleter : me),
        /*in_background=*/false);
    if (!dropped.ok()) co_return AfterSend(dropped.status());
  }
  co_return RegisterResult::kAgain;
}

// A majority is sealed, some perhaps FROZEN: a DEL may still take the register as it is. Installs
// `credit` in the slot, or learns who was faster. Nothing: the register is a record, or has ended
// before.
Task<Result<std::optional<uint32_t>>> KvImpl::CreditedDeleter(RegisterOperation& operation,
                                                              const IndexKey& key,
                                                              CachedRegister& entry,
                                                              uint32_t credit) {
  const GlobalAddr register_addr = entry.handle.ref.addr;
  Backoff backoff(context_, operation);
  while (true) {
    SearchResult search;
    Status status = co_await index_.Find(operation, key, ReadExtent::kKey,
                                         context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) {
      status = co_await FindAgain(operation, key, ReadExtent::kKey, nullptr, status, &search);
    }
    if (!status.ok()) co_return AfterSend(status);
    if (!search.busy && search.found && Names(search.entry.word, register_addr)) {
      const Result<std::optional<uint32_t>> decided =
          co_await DropRegister(operation, search.entry, credit, /*in_background=*/false);
      if (!decided.ok()) co_return AfterSend(decided.status());
      if (decided->has_value()) co_return *decided;
    } else if (!search.busy) {
      RecordOrigin origin;
      if (search.found && !search.entry.word.is_register() &&
          RecordHasOrigin(search.record, RecordKeyEnd(0), &origin) &&
          SlotWord(origin.register_word).addr() == register_addr) {
        co_return std::optional<uint32_t>();
      }
      const Result<FinalWord> recorded =
          co_await registers_->seal.ReadFinal(operation, entry.handle);
      if (!recorded.ok()) co_return AfterSend(recorded.status());
      // Dropped for somebody else, perhaps long ago: that says nothing about the key now.
      const uint32_t me = CreditOf(context_.membership.id);
      if (recorded->is_dropped() && recorded->credit() == me) {
        co_return std::optional<uint32_t>(me);
      }
      if (!recorded->is_empty()) co_return std::optional<uint32_t>();
      // Dropped, and whoever did it is about to record for whom.
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kUnresolved;
  }
}

// In the background, after a DEL in one round trip.
Task<void> KvImpl::UnmapDeleted(ViewHold::Presence presence, RegisterCache::Use use) {
  const CachedRegister& entry = use.entry();
  const uint32_t me = CreditOf(context_.membership.id);
  RegisterOperation operation;
  operation.presence = std::move(presence);
  operation.pin = reclaimer_.Pin();
  const IndexKey key = IndexKey::Make(entry.keyspace, entry.key());
  Backoff backoff(context_, operation);
  while (true) {
    SearchResult search;
    const Status status = co_await index_.Find(operation, key, ReadExtent::kKey,
                                               context_.fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return;
    if (!search.busy) {
      if (!search.found || !Names(search.entry.word, entry.handle.ref.addr)) co_return;
      const auto decided =
          co_await DropRegister(operation, search.entry, me, /*in_background=*/true);
      if (!decided.ok() || decided->has_value()) co_return;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return;
  }
}

// Nobody can name the key any more; its register still has to be closed to those who wrote to it
// before.
Task<Status> KvImpl::SweepRegister(ViewHold::Presence& presence, Entry slot, bool* gone) {
  RegisterOperation operation;
  const LentPresence lent(presence, operation);
  operation.shared_pin = SharedPin(reclaimer_.Pin());
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const std::byte* bytes =
      round_trip->Read(context_.view().Locate(slot.word.addr(), 0), kRegisterHeaderBytes);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  RegisterHeader header;
  RegisterRef ref;
  if (!LoadRegisterShape(slot.word, bytes, &header, &ref.shape)) {
    co_return Status(StatusCode::kCorrupt, "a slot names a register that is none");
  }
  ref.addr = slot.word.addr();
  ref.incarnation = header.incarnation;
  ref.birth = Ticks{header.birth_ticks};
  const RegisterHandle handle(ref, registers_->clock);
  const WorkerId me = context_.membership.id;
  const Result<SealOutcome> sealed =
      co_await registers_->seal.Seal(operation, handle, SealWord::Deleted(me), false);
  if (!sealed.ok()) co_return sealed.status();
  const Result<std::optional<uint32_t>> dropped = co_await DropRegister(
      operation, slot, CreditOf(sealed->one_deleter ? *sealed->deleter : me), true);
  if (!dropped.ok()) co_return dropped.status();
  *gone = dropped->has_value();
  co_return Status::Ok();
}

}  // namespace onetrip
