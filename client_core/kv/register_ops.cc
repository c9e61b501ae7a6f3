// Keys that are held as registers: GET and SET in one round trip, and making new ones (SWARM 5;
// PROTOCOLS, "One key, two forms").
#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

constexpr Status kNoRoomNear(StatusCode::kOutOfMemory, "no room is left near the register");
// So often room is looked for elsewhere before it is waited for.
constexpr int kGrantsBeside = 4;

// Whether a register can take the value of `record`.
bool FitsEntry(const NewRecord& record, const CachedRegister& entry) {
  const uint64_t bytes = kKeyValueHeadBytes + record.bytes();
  return bytes <= entry.handle.ref.shape.value_bytes_max() && !entry.exhausted;
}

// The buffer of a word that was posted.
OutBuffer Posted(const CachedRegister& entry, MetaWord word, const OutBuffer& buffer) {
  return {buffer.addr, Ticks{entry.handle.ref.birth.value + word.time()}};
}

}  // namespace

// What has a deadline is a record: a DEL could not tell in one round trip whether it was in time.
// While regions move everything is.
bool KvImpl::FitsRegister(const Key& key, const NewRecord& record) const {
  return WritesRegisters(engine_.registers()) && key.bytes.size() <= kRegisterKeyBytesMax &&
         record.bytes() <= kRegisterValueBytesMax && !NeedsExtents(record) &&
         record.deadline_ms == 0 && !context_.view().records_only;
}

// Whoever searched while a register was forgotten may hold the address of that very one.
CachedRegister* KvImpl::Adopt(const IndexKey& key, const SearchResult& search, uint64_t forgotten) {
  RegisterHeader header;
  RegisterShape shape;
  if (forgotten != Forgotten() ||
      !LoadRegisterShape(search.entry.word, search.record, &header, &shape)) {
    return nullptr;
  }
  const SlotWord word = search.entry.word;
  return registers_->cache.Adopt(key, word, header, shape);
}

bool KvImpl::FillResult(const RegisterRef& ref, Tuple& tuple, ReadResult* result) const {
  KeyValue value;
  // Whether it was missing at one moment, only its slot can tell: the caller removes it there.
  if (!DecodeKeyValue(tuple.value.bytes, &value) || IsExpired(value)) return false;
  result->found_ = true;
  result->record_ = {value.bytes,       value.bytes.size(),
                     value.deadline_ms, VersionOf(ref, tuple.word),
                     value.type,        nullptr};
  result->bytes_ = std::move(tuple.holder);
  result->shape_ = ref.shape;
  return true;
}

bool KvImpl::GetAtOnce(const Key& key, ReadResult* result) {
  const IndexKey index_key = MakeKey(key);
  CachedRegister* entry = registers_->cache.FindByHash(index_key.hash);
  if (entry == nullptr) return false;
  const RegisterRef& ref = entry->handle.ref;
  Tuple m;
  const std::byte* image = nullptr;
  if (!registers_->safe_guess.ReadAtOnce(entry->handle, &m, &image) ||
      !RegisterHasKey(image, ref.shape.register_bytes(), index_key.keyspace, index_key.bytes) ||
      !FillResult(ref, m, result)) {
    return false;
  }
  metrics_.gets_found.Add();
  metrics_.get_round_trips.Record(1);
  return true;
}

bool KvImpl::SetAtOnce(const Key& key, const NewRecord& record, BegunWrite* begun) {
  RegisterCache& cache = registers_->cache;
  if (!FitsRegister(key, record)) return false;
  const Allocator::Holder holder(allocator_);
  CachedRegister* entry = cache.Find(MakeKey(key));
  if (entry == nullptr || entry->handle.writing || !FitsEntry(record, *entry)) return false;
  const GlobalAddr near = entry->handle.ref.addr;
  if (!cache.HasBuffers(entry->buffer_class, near, Allocator::kBuffersOfAWrite) ||
      !HasMajority(*entry)) {
    return false;
  }
  const OutBuffer buffer = cache.TryTake(entry->buffer_class, near);
  const RoundTripPtr arena = context_.fabric.NewRoundTrip();
  if (!registers_->safe_guess.WriteAtOnce(entry->handle, buffer, AssembleValue(record, *arena),
                                          &begun->outcome)) {
    begun->buffers = {buffer, cache.TryTake(entry->buffer_class, near)};
    return false;
  }
  const OutBuffer posted = Posted(*entry, begun->outcome.guess, buffer);
  cache.RetireLive(*entry, posted.used);
  entry->live.push_back(posted);
  AfterWrite();
  metrics_.set_round_trips.Record(1);
  return true;
}

Task<Result<KvImpl::RegisterResult>> KvImpl::ReadRegister(RegisterOperation& operation,
                                                          CachedRegister& entry,
                                                          ReadResult* result) {
  RegisterCache::Use use(registers_->cache, entry);
  operation.shared_pin = SharedPin(reclaimer_.Pin());
  Result<ReadOutcome> read = co_await registers_->Read(operation, entry.handle);
  if (!read.ok()) co_return read.status();
  if (read->end == RegisterEnd::kInterrupted) {
    entry.met_seal = SealWord(read->seal);
    co_return RegisterResult::kAgain;
  }
  if (read->end != RegisterEnd::kDone || read->tuple.value.bytes.size() < kKeyValueHeadBytes) {
    co_return Status(StatusCode::kCorrupt, "a register that a slot names holds no value");
  }
  co_return FillResult(entry.handle.ref, read->tuple, result) ? RegisterResult::kDone
                                                              : RegisterResult::kExpired;
}

bool KvImpl::TryTakeBuffers(const CachedRegister& entry, WriteBuffers* buffers) {
  RegisterCache& cache = registers_->cache;
  const GlobalAddr near = entry.handle.ref.addr;
  if (!cache.HasBuffers(entry.buffer_class, near, Allocator::kBuffersOfAWrite)) return false;
  buffers->guess = cache.TryTake(entry.buffer_class, near);
  buffers->rewrite = cache.TryTake(entry.buffer_class, near);
  return true;
}

bool KvImpl::HasMajority(const CachedRegister& entry) {
  return registers_->safe_guess.max_register().ReachesMajority(entry.handle.ref) ||
         Planted(Bug::kPostedAtMinority);
}

Task<Status> KvImpl::AwaitMajority(RegisterOperation& operation, const CachedRegister& entry) {
  Backoff backoff(context_, operation);
  while (!HasMajority(entry) && !entry.forgotten) {
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    const bool in_time = co_await backoff.Wait();
    if (!in_time) {
      co_return Status(StatusCode::kUnavailable, "too few memory nodes are there for a write");
    }
  }
  // What is posted has as long again, or it would be given up as soon as it is on its way.
  operation.deadline_ns = 0;
  co_return Status::Ok();
}

// Both buffers before anything is posted: PROTOCOLS, "Registers". The caller's pins are given up if
// that takes waiting.
Task<Status> KvImpl::TakeBuffers(RegisterOperation& operation, CachedRegister& entry,
                                 WriteBuffers* buffers, Allocator::Holder* idle) {
  const GlobalAddr near = entry.handle.ref.addr;
  RegisterCache& cache = registers_->cache;
  while (!TryTakeBuffers(entry, buffers)) {
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    // Whoever may make the key another register does not wait for room here if there is some
    // elsewhere.
    if (idle != nullptr && allocator_.has_elsewhere() && !context_.hold.held()) {
      co_await allocator_.Maintain();
      if (cache.HasBuffers(entry.buffer_class, near, Allocator::kBuffersOfAWrite)) continue;
      const Status beside =
          co_await allocator_.GrantBeside(entry.word.size_class(), entry.buffer_class, near);
      const bool is_near = cache.HasBuffers(entry.buffer_class, near, Allocator::kBuffersOfAWrite);
      if (beside.ok() && !is_near) co_return kNoRoomNear;
      if (beside.ok()) continue;
    }
    const Status status = co_await cache.Refill(entry.buffer_class, near, idle);
    if (!status.ok()) co_return status;
    // Two of them have to be there at once.
    const OutBuffer first = cache.TryTake(entry.buffer_class, near);
    const Status more = co_await cache.Refill(entry.buffer_class, near);
    cache.PutBack(first, entry.buffer_class);
    if (!more.ok()) co_return more;
  }
  co_return Status::Ok();
}

Task<Result<KvImpl::RegisterResult>> KvImpl::WriteRegister(
    RegisterOperation& operation, const IndexKey& key, CachedRegister& entry,
    const NewRecord& record, BegunWrite begun, Allocator::Holder* idle) {
  RegisterCache& cache = registers_->cache;
  RegisterCache::Use use(cache, entry);
  if (!FitsEntry(record, entry)) co_return RegisterResult::kAgain;
  WriteBuffers& buffers = begun.buffers;
  while (buffers.guess.addr.is_null()) {
    while (entry.handle.writing && !entry.forgotten) {
      entry.write_ended.Reset();
      co_await entry.write_ended.Wait();
    }
    if (!HasMajority(entry)) {
      const Status reached = co_await AwaitMajority(operation, entry);
      if (!reached.ok()) co_return reached;
    }
    if (!TryTakeBuffers(entry, &buffers)) {
      const Status taken = co_await TakeBuffers(operation, entry, &buffers, idle);
      if (!taken.ok()) co_return taken;
    }
    if (!entry.handle.writing || entry.forgotten) break;
    cache.PutBack(buffers.guess, entry.buffer_class);
    cache.PutBack(buffers.rewrite, entry.buffer_class);
    buffers = WriteBuffers();
  }
  if (entry.forgotten) {
    cache.PutBack(buffers.guess, entry.buffer_class);
    cache.PutBack(buffers.rewrite, entry.buffer_class);
    co_return RegisterResult::kAgain;
  }
  const RoundTripPtr arena = context_.fabric.NewRoundTrip();
  const std::span<const std::byte> value = AssembleValue(record, *arena);
  operation.shared_pin = SharedPin(reclaimer_.Pin());
  WriteOutcome& outcome = begun.outcome;
  const Status status =
      co_await registers_->Write(operation, entry.handle, buffers, value, &outcome);
  entry.write_ended.Set();

  // What became of the buffers.
  LiveBuffers posted;
  for (const auto& [word, buffer] :
       {std::pair(outcome.guess, buffers.guess), std::pair(outcome.rewrite, buffers.rewrite)}) {
    if (word.is_empty() && outcome.wordless && buffer.addr == buffers.rewrite.addr) {
      cache.Retire(buffer, entry.buffer_class);
    } else if (word.is_empty()) {
      cache.PutBack(buffer, entry.buffer_class);
    } else {
      posted.push_back(Posted(entry, word, buffer));
    }
  }
  Result<RegisterResult> result = RegisterResult::kDone;
  if (!status.ok()) {
    result = status;
  } else if (outcome.end == RegisterEnd::kExhausted) {
    entry.exhausted = true;
    const MechanismScope scope(context_.mechanism_observer, Mechanism::kExhaustion);
    co_return RegisterResult::kAgain;
  } else if (outcome.end == RegisterEnd::kInterrupted) {
    entry.met_seal = SealWord(outcome.seal);
    result = co_await ResolveInterrupted(operation, key, entry, outcome);
    if (result.ok()) cache.Forget(entry.handle.ref.addr);  // it has left the index
  } else {
    // The last word, or a larger one, is at a majority.
    cache.RetireLive(entry, posted.back().used);
    if (posted.size() > 1) {
      cache.Retire(posted.front(), entry.buffer_class);
      posted.erase(posted.begin());
    }
  }
  for (const OutBuffer& buffer : posted) {
    if (entry.gone) {
      cache.Retire(buffer, entry.buffer_class);
    } else {
      entry.live.push_back(buffer);
    }
  }
  co_return result;
}

std::span<const std::byte> KvImpl::AssembleValue(const NewRecord& record, RoundTrip& round_trip) {
  const uint64_t bytes = kKeyValueHeadBytes + record.bytes();
  std::byte* value = round_trip.Reserve(bytes);
  const uint64_t head = KeyValueHead(record.deadline_ms, record.type);
  std::memcpy(value, &head, sizeof(head));
  record.CopyTo(0, {reinterpret_cast<char*>(value) + sizeof(head), record.bytes()});
  return {value, bytes};
}

void KvImpl::SetDraftValue(const NewRecord& record, Draft* draft) {
  const uint64_t head = KeyValueHead(record.deadline_ms, record.type);
  draft->value.resize(sizeof(head) + record.bytes());
  std::memcpy(draft->value.data(), &head, sizeof(head));
  record.CopyTo(0, std::span(draft->value).subspan(sizeof(head)));
}

// Register and buffer on the same nodes.
Task<Status> KvImpl::ReserveRegister(const IndexKey& key, Draft* draft) {
  const RegisterPlan plan =
      PlanRegister(key.bytes.size(), draft->value.size(), registers_->Lanes(context_.options));
  draft->is_register = true;
  draft->shape = plan.shape;
  draft->size_class = plan.size_class;
  draft->out_class = plan.buffer_class;
  draft->addr = GlobalAddr();
  // Who waits for the first time holds nothing. Whoever does so again, since the last memory that
  // there was served for the one or for the other, keeps what it has.
  GlobalAddr addr;
  bool has_waited = false;
  int grants = 0;
  while (true) {
    if (addr.is_null()) {
      addr = allocator_.TryAllocateBeside(plan.size_class, plan.buffer_class);
    }
    if (addr.is_null()) addr = allocator_.TryAllocate(plan.size_class);
    if (addr.is_null()) {
      const Result<GlobalAddr> allocated =
          co_await allocator_.Allocate(plan.size_class, draft->holder);
      if (!allocated.ok()) co_return allocated.status();
      addr = allocated.value();
    }
    draft->out = registers_->cache.TryTake(plan.buffer_class, addr);
    if (!draft->out.addr.is_null()) break;
    const GlobalAddr near = addr;
    if (!has_waited) allocator_.FreeUnpublished(std::exchange(addr, GlobalAddr()), plan.size_class);
    // Where it would lie there may be no room for buffers though there is elsewhere.
    if (!has_waited && grants++ < kGrantsBeside) {
      const Status beside =
          co_await allocator_.GrantBeside(plan.size_class, plan.buffer_class, near);
      if (beside.ok()) continue;
    }
    Allocator::Holder* const idle = has_waited ? nullptr : draft->holder;
    const Status status = co_await registers_->cache.Refill(plan.buffer_class, near, idle);
    has_waited = true;
    if (status.ok()) continue;
    if (!addr.is_null()) allocator_.FreeUnpublished(addr, plan.size_class);
    co_return status;
  }
  draft->addr = addr;
  co_return Status::Ok();
}

// A register with its first word, which is verified: nobody else can have written yet. All of it is
// on all replicas before a slot names it, so that no WRITE of it comes late.
void KvImpl::EncodeRegister(const IndexKey& key, Draft* draft) {
  draft->times = registers_->clock.Times(registers_->clock.Birth(draft->out.used));
  const std::optional<RegisterTime> time = registers_->clock.Guess(draft->times, draft->out.used);
  CHECK(time.has_value());  // a register that is born now
  draft->word = MetaWord(*time, draft->out.addr).AsVerified();
  draft->out.used = Ticks{draft->times.birth.value + *time};
  draft->header = {.log_word = 0,
                   .keyspace = key.keyspace.value,
                   .key_bytes = static_cast<uint16_t>(key.bytes.size()),
                   .lanes = static_cast<uint8_t>(draft->shape.lanes),
                   .buffer_class = draft->out_class.index(),
                   .incarnation = NextVersion(),
                   .birth_ticks = draft->times.birth.value,
                   .final_word = 0,
                   .seal = 0};
  const WrittenValue value{context_.membership.id,
                           std::as_bytes(std::span(draft->value.data(), draft->value.size()))};
  draft->buffer = context_.fabric.NewRoundTrip();
  draft->out_bytes = BufferBulkBytes(draft->value.size());
  draft->out_bulk = draft->buffer->Reserve(draft->out_bytes);
  EncodeBuffer(draft->out.used, value, draft->out_bulk);

  draft->bytes = draft->shape.register_bytes();
  draft->record = draft->buffer->Reserve(draft->bytes);
  std::memset(draft->record, 0, draft->bytes);
  std::memcpy(draft->record, &draft->header, sizeof(draft->header));
  std::memcpy(draft->record + kRegisterHeaderBytes, key.bytes.data(), key.bytes.size());
  const uint64_t word = draft->word.bits();
  const uint8_t lane = InNOut::LaneOf(context_.membership.id, draft->shape);
  std::memcpy(draft->record + draft->shape.lane_offset(lane), &word, sizeof(word));
  if (draft->value.size() <= draft->shape.in_place_bytes) {
    EncodeInPlace(draft->word, value, draft->record + draft->shape.in_place_offset());
  }
}

void KvImpl::KeepRegister(const IndexKey& key, SlotWord word, const Draft& draft) {
  CachedRegister* entry = registers_->cache.Adopt(key, word, draft.header, draft.shape);
  entry->handle.times = draft.times;
  entry->handle.lane_word = draft.word;
  entry->live.push_back(draft.out);
}

// A SET that makes a register, from one attempt to the next.
struct KvImpl::RegisterSet {
  Draft draft;               // the register
  bool written = false;      // the draft's bytes are on all replicas
  bool renew_shape = false;  // the key's register has to make room for another
  bool moves = false;        // ... since there is no room left near it
  bool as_record = false;    // the key stays a record
};

Task<Status> KvImpl::SetRegister(RegisterOperation& operation, Key key, const IndexKey& index_key,
                                 const NewRecord& record, BegunWrite begun,
                                 Allocator::Holder& holder, bool* as_record) {
  RegisterSet set;
  Draft& draft = set.draft;
  draft.holder = &holder;
  Status status;
  while (true) {
    CachedRegister* entry = registers_->cache.Find(index_key);
    if (entry != nullptr && !set.renew_shape && !set.moves) {
      const Result<RegisterResult> result =
          co_await WriteRegister(operation, index_key, *entry, record, std::exchange(begun, {}),
                                 draft.addr.is_null() ? &holder : nullptr);
      status = result.status();
      set.moves = status.code() == StatusCode::kOutOfMemory && draft.addr.is_null() &&
                  allocator_.has_elsewhere();
      if ((!status.ok() && !set.moves) ||
          (status.ok() && result.value() == RegisterResult::kDone)) {
        break;
      }
    }
    // Begun in this turn, on the entry that is there: what was posted must be brought to its end.
    CHECK(begun.buffers.guess.addr.is_null());
    if (draft.addr.is_null()) {
      operation.shared_pin = SharedPin();
      operation.presence.LeaveSlots();
      SetDraftValue(record, &draft);
      status = co_await ReserveRegister(index_key, &draft);
      if (!status.ok()) break;
      EncodeRegister(index_key, &draft);
      set.written = false;
    }
    const bool entered = co_await EnterSlots(operation);
    if (!entered) {
      status = kHeld;
      break;
    }
    operation.pin = reclaimer_.Pin();
    const Result<RegisterResult> result = co_await SetThroughIndex(operation, key, index_key, &set);
    operation.pin.Release();
    operation.presence.LeaveSlots();
    status = result.status();
    *as_record = set.as_record;
    if (!status.ok() || set.as_record) break;
    if (result.value() == RegisterResult::kDone) co_return status;
    if (OutOfTime(context_, operation)) {
      status = kContended;
      break;
    }
  }
  operation.shared_pin = SharedPin();
  if (status.code() != StatusCode::kUnknownOutcome) Abandon(draft);
  co_return status;
}

// One attempt. kDone: the draft is the key's register now, or was overwritten at once by another
// blind write, and belongs to nobody here any more.
Task<Result<KvImpl::RegisterResult>> KvImpl::SetThroughIndex(RegisterOperation& operation, Key key,
                                                             const IndexKey& index_key,
                                                             RegisterSet* set) {
  Draft* const draft = &set->draft;
  RoundTripPtr first = set->written ? context_.fabric.NewRoundTrip() : draft->buffer;
  if (!set->written) AddWrites(*first, *draft);
  SearchResult search;
  const uint64_t forgotten = Forgotten();
  Status status =
      co_await index_.Find(operation, index_key, ReadExtent::kKey, std::move(first), &search);
  if (!status.ok()) {
    status = co_await FindAgain(operation, index_key, ReadExtent::kKey,
                                set->written ? nullptr : draft, status, &search);
  }
  if (!status.ok()) co_return status;
  set->written = true;
  if (search.busy) {
    Backoff backoff(context_, operation);
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
    co_return RegisterResult::kAgain;
  }
  if (!search.found) {
    bool done = false;
    status = co_await TryInsert(operation, index_key, search, /*blind=*/true, draft, &done);
    if (!status.ok()) co_return status;
    if (!done) co_return RegisterResult::kAgain;
    KeepRegister(index_key, WordFor(index_key, *draft, /*blind=*/true), *draft);
    Count(key.database, index_key.keyspace, 1);
    co_return RegisterResult::kDone;
  }
  if (search.entry.word.is_register()) {
    CachedRegister* entry = Adopt(index_key, search, forgotten);
    if (entry == nullptr) co_return RegisterResult::kAgain;
    RegisterCache::Use use(registers_->cache, *entry);
    const bool too_small = draft->value.size() > entry->handle.ref.shape.value_bytes_max();
    set->renew_shape = too_small || entry->exhausted || set->moves;
    if (!set->renew_shape) co_return RegisterResult::kAgain;
    status = co_await EndRegister(operation, index_key, search.entry, *entry, /*may_wait=*/true);
    if (!status.ok()) co_return status;
    // It may have waited for memory, and have sealed nothing.
    co_return RegisterResult::kAgain;
  }
  set->moves = false;
  // A record that was made by a read-modify-write, most likely by more of them to come, stays one
  // until it is overwritten twice.
  if (!search.entry.word.blind() && !set->renew_shape) {
    set->as_record = true;
    co_return RegisterResult::kAgain;
  }
  const Result<BlindOutcome> outcome =
      co_await OverwriteBlindly(operation, index_key, search, *draft);
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value() == BlindOutcome::kLost) co_return RegisterResult::kAgain;
  if (outcome.value() == BlindOutcome::kWon) {
    KeepRegister(index_key, WordFor(index_key, *draft, /*blind=*/true), *draft);
  } else {
    Abandon(*draft);
  }
  co_return RegisterResult::kDone;
}

}  // namespace onetrip
