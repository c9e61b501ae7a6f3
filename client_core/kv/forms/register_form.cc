// The store's operations on a key that is a register (PROTOCOLS, "One key, two forms").
#include <algorithm>
#include <optional>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/forms/register.h"

namespace onetrip {

MaybeTask<Result<Step>> RegisterForm::Get(RegisterOperation& operation, const FoundKey& found,
                                          ValueRange /*range*/, Room* /*room*/,
                                          ReadResult* result) {
  return GetFound(operation, found, result);
}

Task<Result<Step>> RegisterForm::GetFound(RegisterOperation& operation, const FoundKey& found,
                                          ReadResult* result) {
  CachedRegister* entry = Adopt(found.index_key, found.search, found.forgotten);
  if (entry == nullptr) co_return Step::kWait;
  RegisterCache::Use use(core_.registers->cache, *entry);
  QuorumCall* const begun = found.beside->Of(entry->handle.ref.addr);
  const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, result, begun);
  if (!read.ok()) co_return read.status();
  if (read.value() == RegisterResult::kDone) co_return Step::kDone;
  if (found.search.busy || Planted(Bug::kReadAwaitsEnd)) co_return Step::kWait;
  const Status status =
      co_await ends_.EndRegister(operation, found.index_key, found.search.entry, *entry,
                                 /*may_wait=*/true);
  core_.AfterWrite();
  if (status.code() == StatusCode::kOutOfMemory) {
    // Reads go on in a full pool: its time is over by this worker's clock, which has to do; and for
    // what is sealed some worker may find memory in time.
    co_return read.value() == RegisterResult::kExpired ? Step::kDone : Step::kWait;
  }
  if (!status.ok()) co_return status;
  co_return Step::kWait;
}

Task<Result<RegisterResult>> RegisterForm::ReadResting(RegisterOperation& operation,
                                                       const IndexKey& key, ReadResult* result) {
  CachedRegister* const entry = core_.registers->cache.Wake(key);
  if (entry == nullptr) co_return RegisterResult::kAgain;
  const RegisterCache::Use use(core_.registers->cache, *entry);
  RegisterReadBeside read(core_, key);
  read.Begin(entry->word);
  const GlobalAddr addr = entry->handle.ref.addr;
  const Result<RegisterResult> done =
      co_await ReadRegister(operation, *entry, result, read.Of(addr));
  if (!done.ok() || done.value() != RegisterResult::kDone) co_return done;
  if (!read.HasKey(entry->handle.ref)) {
    *result = ReadResult();
    co_return RegisterResult::kAgain;
  }
  entry->Prove(key);
  co_return RegisterResult::kDone;
}

// The record that takes the register's place has the new value, or is overwritten next.
Task<Result<Step>> RegisterForm::Overwrite(RegisterOperation& operation, const FoundKey& found,
                                           const NewRecord& record, Draft* draft) {
  CachedRegister* entry = Adopt(found.index_key, found.search, found.forgotten);
  if (entry == nullptr) co_return Step::kAgain;
  const RegisterCache::Use use(core_.registers->cache, *entry);
  Draft thawed;
  if (draft->in_place_until_ns != 0) [[unlikely]] {
    const Status status = co_await ends_.ReserveInPlaceOf(
        found.search.entry.word, RegisterEnds::ThawedClass(found.index_key, *entry),
        RecordRoom::kReserve, &thawed);
    if (!status.ok()) co_return status;
  }
  BlindWrite write(record);
  Replacement replacement{write, write.GrowthOver(*entry), /*blind=*/true};
  const bool replaces = !draft->extents && draft->in_place_until_ns == 0;
  const Status status =
      co_await ends_.EndRegister(operation, found.index_key, found.search.entry, *entry,
                                 /*may_wait=*/true, &thawed, replaces ? &replacement : nullptr);
  if (!status.ok()) co_return status;
  if (!replacement.done) co_return Step::kAgain;
  drafts_.Abandon(*draft);
  co_return Step::kDone;
}

Task<Result<Step>> RegisterForm::Delete(RegisterOperation& operation, const FoundKey& found,
                                        bool* existed) {
  CachedRegister* entry = Adopt(found.index_key, found.search, found.forgotten);
  if (entry == nullptr) co_return Step::kAgain;
  co_return co_await DeleteEntry(operation, found.key, found.index_key, *entry, existed);
}

Task<Result<Step>> RegisterForm::DeleteKnown(RegisterOperation& operation, const Key& key,
                                             const IndexKey& index_key, bool* existed) {
  CachedRegister* entry = nullptr;
  if (core_.registers) {
    entry = core_.runs_inline ? FindInline(index_key) : core_.registers->cache.Find(index_key);
  }
  if (entry == nullptr) co_return Step::kAgain;
  co_return co_await DeleteEntry(operation, key, index_key, *entry, existed);
}

Task<Result<Step>> RegisterForm::DeleteEntry(RegisterOperation& operation, const Key& key,
                                             const IndexKey& index_key, CachedRegister& entry,
                                             bool* existed) {
  const Result<RegisterResult> result =
      co_await ends_.DeleteRegister(operation, key, index_key, entry, existed);
  if (!result.ok()) co_return result.status();
  co_return result.value() == RegisterResult::kDone ? Step::kDone : Step::kAgain;
}

// A mutation that changes nothing leaves the register as it is: it is read first, unless the
// mutation says that it will most likely change it. One that does is applied to what the register
// is sealed with.
Task<Result<Step>> RegisterForm::Mutate(RegisterOperation& operation, const FoundKey& found,
                                        Mutation& mutation, Room* /*room*/, Draft* draft) {
  CachedRegister* entry = Adopt(found.index_key, found.search, found.forgotten);
  if (entry == nullptr) co_return Step::kAgain;
  RegisterCache::Use use(core_.registers->cache, *entry);
  // In one step the key would go on taking the register's memory, which the next change needs.
  if (core_.allocator.is_lean() && draft->in_place_until_ns == 0) [[unlikely]] {
    draft->in_place_until_ns =
        core_.context.executor.NowNs() + core_.context.options.memory_wait_ms * 1'000'000;
  }
  Replacement replacement{mutation};
  const std::optional<uint64_t> growth = mutation.growth();
  if (growth && draft->in_place_until_ns == 0) {
    replacement.growth = *growth;
    const Status status =
        co_await ends_.EndRegister(operation, found.index_key, found.search.entry, *entry,
                                   /*may_wait=*/true, nullptr, &replacement);
    if (!status.ok()) co_return status;
    co_return replacement.done ? Step::kDone : Step::kAgain;
  }
  ReadResult current;
  const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, &current);
  if (!read.ok()) co_return read.status();
  Change change;
  const bool is_read = read.value() == RegisterResult::kDone;
  if (is_read) change = mutation.Apply(&current.record());
  if (is_read && change.kind == Change::Kind::kKeep) {
    co_return Step::kDone;
  }
  const SlotWord word = found.search.entry.word;
  const SizeClass thawed_class = ends_.ThawedClass(found.index_key, *entry, &current);
  draft->gives_up = drafts_.GivenUpFor(found.key, word, thawed_class, is_read ? &change : nullptr);
  Draft thawed;
  const bool is_sealed = read.value() == RegisterResult::kAgain;
  if (draft->in_place_until_ns != 0 && draft->gives_up.is_valid() && !is_sealed) [[unlikely]] {
    const Status reserved =
        co_await ends_.ReserveInPlaceOf(word, thawed_class, RecordRoom::kReserve, &thawed);
    if (!reserved.ok()) co_return reserved;
  }
  const bool replaces = change.kind == Change::Kind::kWrite && draft->in_place_until_ns == 0;
  if (replaces) {
    const uint64_t bytes = change.record.bytes();
    replacement.growth = bytes - std::min(bytes, current.record().value_bytes);
    replacement.read = &current.record();
  }
  const Status status =
      co_await ends_.EndRegister(operation, found.index_key, found.search.entry, *entry,
                                 /*may_wait=*/true, &thawed, replaces ? &replacement : nullptr);
  if (!status.ok()) co_return status;
  co_return replacement.done ? Step::kDone : Step::kAgain;
}

Task<Status> RegisterForm::Sweep(Operation& operation, Entry entry, bool* gone) {
  return ends_.SweepRegister(operation.in_flight, entry, gone);
}

Sight RegisterForm::See(const std::byte* /*image*/, uint64_t /*now_ms*/,
                        KeyFacts* /*facts*/) const {
  return Sight::kAsk;  // it may have ended before its slot is emptied
}

}  // namespace onetrip
