// Keys that are held as registers: GET and SET in one round trip, and making new ones (SWARM 5;
// PROTOCOLS, "One key, two forms").
#include "client_core/kv/forms/register.h"

#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

constexpr Status kNoRoomNear(StatusCode::kOutOfMemory, "no room is left near the register");

// Returns true if a register can take the value of `record`.
bool FitsShape(const NewRecord& record, const RegisterShape& shape) {
  return kKeyValueHeadBytes + record.bytes() <= shape.value_bytes_max();
}
bool FitsEntry(const NewRecord& record, const CachedRegister& entry) {
  return FitsShape(record, entry.handle.ref.shape) && !entry.exhausted;
}

// The buffer of a word that was posted.
OutBuffer Posted(const CachedRegister& entry, MetaWord word, const OutBuffer& buffer) {
  return {buffer.addr, Ticks{entry.handle.ref.birth.value + word.time()}};
}

}  // namespace

// A value with a deadline is a record: a DEL could not tell in one round trip if it was in time.
// While regions move every value is.
bool RegisterForm::FitsRegister(const Key& key, const NewRecord& record) const {
  return WritesRegisters(core_.engine.registers()) && key.bytes.size() <= kRegisterKeyBytesMax &&
         record.bytes() <= kRegisterValueBytesMax && !core_.NeedsExtents(record) &&
         record.deadline_ms == 0 && !core_.context.view().records_only;
}

// An operation that searched while a register was forgotten may hold that very one's address.
CachedRegister* RegisterForm::Adopt(const IndexKey& key, const SearchResult& search,
                                    uint64_t forgotten) {
  RegisterHeader header;
  RegisterShape shape;
  if (forgotten != core_.Forgotten() ||
      !LoadRegisterShape(search.entry.word, search.record, &header, &shape)) {
    return nullptr;
  }
  const SlotWord word = search.entry.word;
  CachedRegister* const entry = core_.registers->cache.Adopt(key, word, header, shape);
  if (entry->handle.lane_word.is_empty() && shape.in_place_offset() <= search.record_bytes) {
    core_.registers->safe_guess.max_register().NoteLanes(entry->handle, search.record);
  }
  return entry;
}

bool RegisterForm::FillResult(const RegisterRef& ref, Tuple& tuple, ReadResult* result) const {
  KeyValue value;
  // Only its slot can tell if it was missing at one moment: the caller removes it there.
  if (!DecodeKeyValue(tuple.value.bytes, &value) || core_.IsExpired(value)) return false;
  result->found_ = true;
  result->record_ = {value.bytes,       value.bytes.size(),
                     value.deadline_ms, VersionOf(ref, tuple.word),
                     value.type,        nullptr};
  result->bytes_ = std::move(tuple.holder);
  result->shape_ = ref.shape;
  if (tuple.word.is_in_register()) result->shape_.buffer_bytes = 0;
  return true;
}

bool RegisterForm::GetFast(Key* key, ReadResult* result) {
  const IndexKey index_key = core_.MakeKey(key);
  CachedRegister* entry = core_.registers->cache.FindByHash(index_key.hash);
  if (entry == nullptr) return GetRestingFast(index_key, result);
  const RegisterRef& ref = entry->handle.ref;
  const MetaWord known = entry->handle.lane_word;
  Tuple m;
  const std::byte* image = nullptr;
  if (!core_.registers->safe_guess.ReadFast(entry->handle, &m, &image) ||
      !RegisterHasKey(image, ref.shape.register_bytes(), index_key.keyspace, index_key.bytes) ||
      !FillResult(ref, m, result)) {
    return false;
  }
  entry->Prove(index_key);
  // Another worker has written: what this one keeps there for readers is in the entry's further
  // lines.
  if (m.word.AsGuess() != known.AsGuess()) [[unlikely]] {
    core_.registers->cache.NoteRead(*entry, m.word);
  }
  core_.metrics.get_round_trips.Record(1);
  return true;
}

bool RegisterForm::GetRestingFast(const IndexKey& key, ReadResult* result) {
  RestingRegister* const resting = core_.registers->cache.FindResting(key);
  if (resting == nullptr) return false;
  RegisterHandle handle = core_.registers->cache.HandleOf(*resting);
  Tuple m;
  const std::byte* image = nullptr;
  if (!core_.registers->safe_guess.ReadFast(handle, &m, &image) ||
      !RegisterHasKey(image, handle.ref.shape.register_bytes(), key.keyspace, key.bytes) ||
      !FillResult(handle.ref, m, result)) {
    return false;
  }
  core_.registers->cache.NoteRead(resting, m.word);
  core_.registers->cache.NoteUse(resting, key);
  core_.metrics.get_round_trips.Record(1);
  return true;
}

bool RegisterForm::HasKeyInline(const RegisterRef& ref, const IndexKey& key) {
  const uint32_t bytes = kRegisterHeaderBytes + ref.shape.key_bytes;
  const RoundTripPtr batch = core_.context.fabric.NewRoundTrip();
  const std::byte* const image = batch->Read(core_.context.view().Locate(ref.addr, 0), bytes);
  return core_.context.fabric.PostInline(batch).ok() && InNOut::IsOf(ref, image) &&
         RegisterHasKey(image, bytes, key.keyspace, key.bytes);
}

CachedRegister* RegisterForm::FindInline(const IndexKey& key) {
  RegisterCache& cache = core_.registers->cache;
  CachedRegister* entry = cache.FindByHash(key.hash);
  if (entry == nullptr) [[unlikely]] {
    entry = cache.Wake(key);
    if (entry == nullptr) return nullptr;
  }
  if (entry->unproven) {
    if (!HasKeyInline(entry->handle.ref, key)) return nullptr;
    entry->Prove(key);
  }
  return entry->IsOf(key) ? entry : nullptr;
}

bool RegisterForm::SetFast(Key* key, const NewRecord& record, BegunWrite* begun) {
  RegisterCache& cache = core_.registers->cache;
  if (!FitsRegister(*key, record)) return false;
  const Allocator::Holder holder(core_.allocator);
  const IndexKey index_key = core_.MakeKey(key);
  CachedRegister* entry = cache.Find(index_key);
  if (entry == nullptr) return SetRestingFast(index_key, record, begun);
  if (entry->handle.writing || !FitsEntry(record, *entry)) return false;
  const GlobalAddr near = entry->handle.ref.addr;
  if (!cache.HasBuffers(entry->buffer_class, near, Allocator::kBuffersOfAWrite) ||
      !HasMajority(entry->handle.ref)) {
    return false;
  }
  const OutBuffer buffer = cache.TryTake(entry->buffer_class, near);
  const RoundTripPtr arena = core_.context.fabric.NewRoundTrip();
  if (!core_.registers->safe_guess.WriteFast(entry->handle, buffer, AssembleValue(record, *arena),
                                             &begun->outcome)) {
    begun->buffers = {buffer, cache.TryTake(entry->buffer_class, near)};
    return false;
  }
  const OutBuffer posted = Posted(*entry, begun->outcome.guess, buffer);
  cache.RetireLive(*entry, posted.used);
  entry->live.push_back(posted);
  core_.AfterWrite();
  core_.metrics.set_round_trips.Record(1);
  return true;
}

bool RegisterForm::SetRestingFast(const IndexKey& key, const NewRecord& record, BegunWrite* begun) {
  RegisterCache& cache = core_.registers->cache;
  RestingRegister* const resting = cache.FindResting(key);
  if (resting == nullptr) return false;
  RegisterHandle handle = cache.HandleOf(*resting);
  const SizeClass buffer_class(resting->buffer_class);
  if (!FitsShape(record, handle.ref.shape) || !HasKeyInline(handle.ref, key)) return false;
  if (!HasMajority(handle.ref) ||
      !cache.HasBuffers(buffer_class, handle.ref.addr, Allocator::kBuffersOfAWrite)) {
    // With an entry what is missing is waited for, and no other register made first.
    cache.Wake(key)->Prove(key);
    return false;
  }
  const OutBuffer buffer = cache.TryTake(buffer_class, handle.ref.addr);
  const RoundTripPtr arena = core_.context.fabric.NewRoundTrip();
  const bool is_done = core_.registers->safe_guess.WriteFast(
      handle, buffer, AssembleValue(record, *arena), &begun->outcome);
  core_.registers->clock.Forget(handle.times);
  if (!is_done) {
    begun->buffers = {buffer, cache.TryTake(buffer_class, handle.ref.addr)};
    CachedRegister* const entry = cache.Wake(key);
    CHECK(entry != nullptr);
    entry->Prove(key);
    return false;
  }
  cache.NoteWritten(resting, handle.lane_word);
  cache.NoteUse(resting, key);
  core_.AfterWrite();
  core_.metrics.set_round_trips.Record(1);
  return true;
}

Task<Result<RegisterResult>> RegisterForm::ReadRegister(RegisterOperation& operation,
                                                        CachedRegister& entry, ReadResult* result,
                                                        QuorumCall* begun) {
  RegisterCache::Use use(core_.registers->cache, entry);
  operation.shared_pin = SharedPin(core_.reclaimer.Pin());
  Result<ReadOutcome> read = co_await core_.registers->Read(operation, entry.handle, begun);
  if (!read.ok()) co_return read.status();
  if (read->end == RegisterEnd::kInterrupted) {
    entry.met_seal = SealWord(read->seal);
    co_return RegisterResult::kAgain;
  }
  if (read->end != RegisterEnd::kDone || read->tuple.value.bytes.size() < kKeyValueHeadBytes) {
    co_return Status(StatusCode::kCorrupt, "a register that a slot names holds no value");
  }
  core_.registers->cache.NoteRead(entry, read->tuple.word);
  co_return FillResult(entry.handle.ref, read->tuple, result) ? RegisterResult::kDone
                                                              : RegisterResult::kExpired;
}

bool RegisterForm::TryTakeBuffers(const CachedRegister& entry, WriteBuffers* buffers) {
  RegisterCache& cache = core_.registers->cache;
  const GlobalAddr near = entry.handle.ref.addr;
  if (!cache.HasBuffers(entry.buffer_class, near, Allocator::kBuffersOfAWrite)) return false;
  buffers->guess = cache.TryTake(entry.buffer_class, near);
  buffers->rewrite = cache.TryTake(entry.buffer_class, near);
  return true;
}

bool RegisterForm::HasMajority(const RegisterRef& ref) {
  return core_.registers->safe_guess.max_register().ReachesMajority(ref) ||
         Planted(Bug::kPostedAtMinority);
}

Task<Status> RegisterForm::AwaitMajority(RegisterOperation& operation,
                                         const CachedRegister& entry) {
  Backoff backoff(core_.context, operation);
  while (!HasMajority(entry.handle.ref) && !entry.forgotten) {
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    const bool in_time = co_await backoff.Wait();
    if (!in_time) {
      co_return Status(StatusCode::kUnavailable, "too few memory nodes are there for a write");
    }
  }
  // Posted work has as long again, or it would be given up as soon as it is on its way.
  operation.deadline_ns = 0;
  co_return Status::Ok();
}

// Both buffers before anything is posted: PROTOCOLS, "Registers". The caller's pins are given up if
// that takes waiting.
Task<Status> RegisterForm::TakeBuffers(RegisterOperation& operation, CachedRegister& entry,
                                       WriteBuffers* buffers, Allocator::Holder* idle) {
  const GlobalAddr near = entry.handle.ref.addr;
  RegisterCache& cache = core_.registers->cache;
  while (!TryTakeBuffers(entry, buffers)) {
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    // An operation that may make the key another register does not wait for room here if there is
    // some elsewhere.
    if (idle != nullptr && core_.allocator.has_elsewhere() && !core_.context.quiesce.held()) {
      co_await core_.allocator.Maintain();
      if (cache.HasBuffers(entry.buffer_class, near, Allocator::kBuffersOfAWrite)) continue;
      const Status beside =
          co_await core_.allocator.GrantBeside(entry.word.size_class(), entry.buffer_class, near);
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

// Tells what became of the buffers of a write: those that no word names are free again.
LiveBuffers RegisterForm::PostedBuffers(CachedRegister& entry, const WriteBuffers& buffers,
                                        const WriteOutcome& outcome) {
  RegisterCache& cache = core_.registers->cache;
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
  return posted;
}

Task<Result<RegisterResult>> RegisterForm::WriteRegister(RegisterOperation& operation,
                                                         const IndexKey& key, CachedRegister& entry,
                                                         const NewRecord& record, BegunWrite begun,
                                                         Allocator::Holder* idle) {
  RegisterCache& cache = core_.registers->cache;
  RegisterCache::Use use(cache, entry);
  if (!FitsEntry(record, entry)) co_return RegisterResult::kAgain;
  WriteBuffers& buffers = begun.buffers;
  while (buffers.guess.addr.is_null()) {
    while (entry.handle.writing && !entry.forgotten) {
      entry.write_ended.Reset();
      co_await entry.write_ended.Wait();
    }
    if (!HasMajority(entry.handle.ref)) {
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
  const RoundTripPtr arena = core_.context.fabric.NewRoundTrip();
  const std::span<const std::byte> value = AssembleValue(record, *arena);
  operation.shared_pin = SharedPin(core_.reclaimer.Pin());
  WriteOutcome& outcome = begun.outcome;
  const Status status =
      co_await core_.registers->Write(operation, entry.handle, buffers, value, &outcome);
  entry.write_ended.Set();

  LiveBuffers posted = PostedBuffers(entry, buffers, outcome);
  Result<RegisterResult> result = RegisterResult::kDone;
  if (!status.ok()) {
    result = status;
  } else if (outcome.end == RegisterEnd::kExhausted) {
    entry.exhausted = true;
    const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kExhaustion);
    co_return RegisterResult::kAgain;
  } else if (outcome.end == RegisterEnd::kInterrupted) {
    entry.met_seal = SealWord(outcome.seal);
    result = co_await ends_.ResolveInterrupted(operation, key, entry, outcome);
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

std::span<const std::byte> RegisterForm::AssembleValue(const NewRecord& record,
                                                       RoundTrip& round_trip) {
  const uint64_t bytes = kKeyValueHeadBytes + record.bytes();
  std::byte* value = round_trip.Reserve(bytes);
  const uint64_t head = KeyValueHead(record.deadline_ms, record.type);
  std::memcpy(value, &head, sizeof(head));
  record.CopyTo(0, {reinterpret_cast<char*>(value) + sizeof(head), record.bytes()});
  return {value, bytes};
}

}  // namespace onetrip
