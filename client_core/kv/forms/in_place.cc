// Changes in a full pool that leave a key with no more memory than it had: what they give up comes
// back behind them, so until then they may use what it is about to leave, or the memory nodes'
// reserve (PROTOCOLS, "The reserve").
#include <algorithm>

#include "client_core/kv/forms/draft.h"

namespace onetrip {

// The record's replacement gives up the record, with the register that it took the place of.
SizeClass Drafts::GivenUpFor(const SearchResult& search, const Change& change,
                             SizeClass needed) const {
  if (!needed.is_valid() || needed.is_root()) return SizeClass();
  if (change.frees_as_much) return needed;
  if (!search.found) return SizeClass();
  const SizeClass replaced = search.entry.word.size_class();
  // With its extents.
  if (replaced.is_root()) return needed;
  RecordOrigin origin;
  uint64_t bytes = replaced.bytes();
  if (core_.registers && RecordHasOrigin(search.record, RecordKeyEnd(0), &origin)) {
    bytes += SlotWord(origin.register_word).size_class().bytes();
  }
  if (needed.bytes() > bytes) return SizeClass();
  return std::max(replaced, needed, [](SizeClass a, SizeClass b) { return a.bytes() < b.bytes(); });
}

// The record that takes the register's place is given up with the next step, with the register, if
// the change leaves no more than that.
SizeClass Drafts::GivenUpFor(const Key& key, SlotWord register_word, SizeClass thawed,
                             const Change* change) {
  const SizeClass given_up(std::max(register_word.size_class().index(), thawed.index()));
  // It is sealed: only a record lets a worker write the key again.
  if (change == nullptr || change->kind != Change::Kind::kWrite) return given_up;
  const SizeClass needed = SizeClass::For(RecordBytes(key.bytes.size(), change->record.bytes()));
  const bool fits = needed.is_valid() && needed.bytes() <= given_up.bytes();
  return fits || change->frees_as_much ? given_up : SizeClass();
}

Task<Status> Drafts::TakeInPlace(Draft* draft) {
  const Result<Allocator::Object> object =
      co_await core_.allocator.AllocateInPlaceOf(draft->gives_up, draft->size_class);
  if (!object.ok()) co_return object.status();
  draft->addr = object->addr;
  draft->size_class = object->size_class;
  co_return Status::Ok();
}

Task<Status> Drafts::GoOnInPlace(RegisterOperation& operation, Draft* draft) {
  constexpr Status kFull(StatusCode::kOutOfMemory, "no memory node has free memory");
  if (!draft->gives_up.is_valid()) co_return kFull;
  const uint64_t now_ns = core_.context.executor.NowNs();
  if (draft->in_place_until_ns == 0) {
    draft->in_place_until_ns = now_ns + core_.context.options.memory_wait_ms * 1'000'000;
    co_return Status::Ok();
  }
  if (now_ns >= draft->in_place_until_ns) co_return kFull;
  // The memory that others have given up so is of that class; the owners of its blocks open them
  // when they hear that a worker is short of it.
  // One that holds memory goes on holding it: a look for what is lost waits for its end.
  Allocator::Holder* idle = nullptr;
  if (draft->addr.is_null() && !draft->extents) idle = draft->holder;
  const Status status = co_await core_.AwaitMemory(operation, draft->gives_up, idle);
  co_return status;
}

}  // namespace onetrip
