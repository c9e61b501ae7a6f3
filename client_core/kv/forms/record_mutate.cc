// Read-modify-write of a record: build the new one out of place, swing the slot from exactly the
// word that was read (PROTOCOLS, "SNAPSHOT").
#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/paused.h"
#include "client_core/kv/forms/record_form.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

// The tree to store, if it was made of the one that the key held; null: it is a new one, or none.
const Tree* ChangedTree(const NewRecord& record) {
  return record.tree != nullptr && record.tree->has_root() ? record.tree : nullptr;
}

// True if a changed tree, with `root` in the place of `old_root`, is written under a pin and takes
// no more memory than comes back from what its new pages take the place of. REQUIRES: Balance().
bool GivesBack(const Tree& tree, SizeClass root, SizeClass old_root, bool frees_as_much) {
  uint64_t written = 0;
  uint64_t taken = root.bytes();
  for (const uint32_t bytes : tree.NewPageBytes()) {
    written += bytes;
    taken += SizeClass::For(bytes).bytes();
  }
  if (written > tree.limits().pinned_bytes) return false;
  uint64_t given_up = old_root.bytes();
  for (const PageRef& page : tree.dropped()) given_up += page.size_class.bytes();
  return frees_as_much || (tree.has_root() && taken <= given_up);
}

}  // namespace

Task<Result<Step>> RecordForm::Mutate(RegisterOperation& operation, const FoundKey& found,
                                      Mutation& mutation, Room* room, Draft* draft) {
  ReadResult current;
  ShownTree shown(core_.pages);
  Change change;
  const RecordView* seen = nullptr;
  // The pages of an attempt that found no memory for its root.
  if (draft->extents) [[unlikely]] {
    drafts_.RetireAll(draft->extents->list);
    draft->extents.reset();
  }
  if (found.search.found) {
    if (!RecordIsIntact(found.search.record, found.search.entry.word.size_class().bytes())) {
      co_return Status(StatusCode::kCorrupt, "a record fails its checksum");
    }
    if (!core_.IsExpired(found.search.record)) {
      Records::FillFromRecord(found.search, &current);
      if (found.search.entry.word.size_class().is_root()) [[unlikely]] {
        Result<bool> is_applied = false;
        if (mutation.takes_trees() && LoadTreeRoot(current.record_.value, &shown.root)) {
          shown.record = current.record_;
          is_applied = co_await ApplyToTree(operation, mutation, &shown, &change);
          if (!is_applied.ok()) co_return is_applied.status();
        }
        if (!*is_applied) {
          shown.tree.reset();
          const Status status =
              co_await extents_.ReadFromExtents(operation, mutation.wanted(), room, &current);
          if (!status.ok()) co_return status;
          current.record_.holder = &current.large_;
        }
      }
      seen = shown.tree ? &shown.record : &current.record();
    }
  }
  if (!shown.tree) change = mutation.Apply(seen);
  // Only a write tells if the record is still there.
  const bool is_proved = change.kind == Change::Kind::kWrite || Planted(Bug::kHotBelieved);
  if (found.search.remembered && !is_proved) co_return Step::kAgain;
  bool done = false;
  Status status;
  switch (change.kind) {
    case Change::Kind::kKeep:
    case Change::Kind::kKeepAsRecord:
      done = !found.search.found || seen != nullptr;
      if (done) break;
      status = co_await records_.RemoveExpired(operation, found.key.database, found.index_key,
                                               found.search, &done);
      break;
    case Change::Kind::kDelete:
      done = !found.search.found;
      if (done) break;
      status = co_await records_.TryRemove(operation, found.search, &done);
      if (done) counters_.Count(found.key.database, found.index_key.keyspace, -1);
      break;
    case Change::Kind::kWrite:
      if (change.record.tree != nullptr) [[unlikely]] {
        status = co_await ReplaceByTree(operation, found, seen, change, draft, &done);
      } else if (core_.NeedsExtents(change.record)) [[unlikely]] {
        status = co_await ReplaceByExtents(operation, found.key, seen, {}, change, draft, &done);
      } else {
        status = co_await Replace(operation, found.key, found.index_key, found.search, change,
                                  draft, &done);
      }
      break;
  }
  if (!status.ok()) co_return status;
  co_return done ? Step::kDone : Step::kAgain;
}

Task<Result<bool>> RecordForm::ApplyToTree(RegisterOperation& operation, Mutation& mutation,
                                           ShownTree* shown, Change* change) {
  const std::string_view root = shown->record.value;
  shown->record.value = {};
  shown->record.value_bytes = TreeHeader(root).size() + LeafBytesIn(shown->root.tops[0]);
  while (true) {
    Tree& tree = shown->tree.emplace(shown->root, shown->pages, core_.context.options.tree);
    shown->record.tree = &tree;
    *change = mutation.Apply(&shown->record);
    if (tree.is_damaged()) {
      co_return Status(StatusCode::kCorrupt, "a collection's tree is damaged");
    }
    if (tree.missing().empty()) co_return true;
    if (!shown->pages.HasRoomFor(tree.missing(), tree.limits().loaded_bytes)) co_return false;
    const Status status = co_await extents_.pages().Load(operation, tree.missing(), &shown->pages);
    if (!status.ok()) co_return status;
  }
}

Task<Status> RecordForm::ReplaceByTree(RegisterOperation& operation, const FoundKey& found,
                                       const RecordView* seen, const Change& change, Draft* draft,
                                       bool* done) {
  Tree& tree = *change.record.tree;
  Status status = CheckSizes(found.key, change.record);
  if (status.ok() && tree.header().size() + tree.leaf_bytes(0) > kMaxValueBytes) {
    status = Status(StatusCode::kTooLarge, "the collection is larger than a value may be");
  }
  if (!status.ok()) co_return status;
  tree.Balance();
  const SizeClass root_class =
      SizeClass::ForRoot(RecordBytes(found.key.bytes.size(), tree.RootBytes()));
  if (!root_class.is_valid()) {
    co_return Status(StatusCode::kTooLarge, "the elements of the collection are too long for it");
  }
  const SizeClass old_root = tree.has_root() ? found.search.entry.word.size_class() : root_class;
  const bool gives_back = GivesBack(tree, root_class, old_root, change.frees_as_much);
  if (gives_back) draft->gives_up = root_class;
  SizeClass* in_place = nullptr;
  if (gives_back && draft->in_place_until_ns != 0) in_place = &draft->gives_up;
  status = co_await extents_.pages().WriteSoon(operation, tree, in_place, &draft->extents);
  if (in_place != nullptr && status.code() == StatusCode::kOutOfMemory) co_return status;
  if (status.ok()) {
    co_return co_await Replace(operation, found.key, found.index_key, found.search, change, draft,
                               done);
  }
  if (status.code() != StatusCode::kOutOfMemory) co_return status;
  // A root that was moved has its version still, but not its pages.
  const std::string root(tree.has_root() ? RecordValue(found.search.record) : std::string_view());
  co_return co_await ReplaceByExtents(operation, found.key, seen, root, change, draft, done);
}

Task<Status> RecordForm::Replace(Operation& operation, const Key& key, const IndexKey& index_key,
                                 const SearchResult& search, const Change& change, Draft* draft,
                                 bool* done) {
  const NewRecord& record = change.record;
  Status status = CheckSizes(key, record);
  if (!status.ok()) co_return status;
  const SizeClass reserved = draft->size_class;
  drafts_.Measure(key, record, draft);
  if (draft->addr.is_null() || draft->size_class != reserved) {
    if (!draft->addr.is_null()) core_.allocator.Retire(draft->addr, reserved);
    draft->addr = core_.allocator.TryAllocate(draft->size_class);
    // Before it waits for memory it has to know for what, and what it gives up.
    if (draft->addr.is_null() && search.remembered) co_return Status::Ok();
    if (record.tree == nullptr)
      draft->gives_up = drafts_.GivenUpFor(search, change, draft->size_class);
    const bool in_place = draft->in_place_until_ns != 0 && draft->gives_up.is_valid();
    if (draft->addr.is_null() && in_place) [[unlikely]] {
      status = co_await drafts_.TakeInPlace(draft);
      if (!status.ok()) co_return status;
    }
    if (draft->addr.is_null()) {
      // Waiting for memory takes giving up the pin, and with it all that was read.
      Paused paused(core_, operation);
      status = co_await drafts_.Reserve(draft);
      co_return co_await paused.Resume(status);
    }
  }
  drafts_.Encode(index_key, record, draft);
  if (change.version != nullptr) *change.version = LoadRecordHeader(draft->record).version;
  drafts_.AddWrites(*draft->buffer, *draft);
  if (!search.found) {
    status = co_await records_.TryInsert(operation, index_key, search, /*blind=*/false,
                                         draft->buffer, draft, done);
    if (*done && status.ok()) {
      counters_.Count(key.database, index_key.keyspace, 1);
      draft->Forget();
    }
    co_return status;
  }
  const SlotWord v_old = search.entry.word;
  const SlotWord v_new = drafts_.WordFor(index_key, *draft, Planted(Bug::kCountingWritesBlind));
  // The record goes with the CAS of the backups: no reader reads it before the primary names it.
  RecordOrigin origin;
  const bool has_origin = records_.TellOrigin(search, &origin, &draft->buffer);
  const Tree* const changed = ChangedTree(record);
  if (changed != nullptr && Planted(Bug::kPagesFreedEarly)) extents_.pages().FreeDropped(*changed);
  const uint64_t views = core_.hot.views();
  const MechanismScope scope = core_.hot.Writing(search);
  const Result<SlotOutcome> outcome = co_await core_.engine.Write(
      operation, {search.entry.slot, v_old.bits(), v_new.bits(), draft->addr, draft->buffer.get()});
  if (!outcome.ok()) co_return outcome.status();
  *done = outcome.value().won || Planted(Bug::kCountingLoserDone);
  if (outcome.value().won) {
    core_.index.CacheLocation(index_key.hash, {search.entry.slot, v_new});
    if (search.remembered) core_.metrics.hot_writes.Add();
    core_.hot.Wrote(operation, views, index_key, v_old, {search.entry.slot, v_new}, draft->record,
                    draft->bytes);
    extents_.pages().Keep(draft->extents);
    if (v_old.size_class().is_root()) [[unlikely]]
      co_await RetireBehindRoot(operation, v_old, changed);
    core_.allocator.Retire(v_old.addr(), v_old.size_class());
    if (has_origin) records_.RetireOrigin(origin);
  } else {
    core_.metrics.lost_rounds.Add();
    if (search.remembered) core_.hot.Forget(index_key.hash);
    // The memory was written as one record and no operation may read it as such; but the next
    // attempt has another content, so it takes other memory.
    if (changed == nullptr || !Planted(Bug::kLosersPagesKept)) drafts_.Abandon(*draft);
  }
  draft->Forget();
  co_return Status::Ok();
}

Task<void> RecordForm::RetireBehindRoot(Operation& operation, SlotWord root, const Tree* changed) {
  if (changed == nullptr) {
    co_await extents_.RetireExtents(operation, root);
  } else if (!Planted(Bug::kPagesFreedEarly)) {
    extents_.pages().RetireAll(changed->dropped());
  }
}

Task<Status> RecordForm::ReplaceByExtents(RegisterOperation& operation, const Key& key,
                                          const RecordView* seen, std::string_view root,
                                          const Change& change, Draft* draft, bool* done) {
  Status status = CheckSizes(key, change.record);
  if (!status.ok()) co_return status;
  drafts_.Abandon(*draft);
  draft->Forget();
  operation.shared_pin = SharedPin();
  operation.pin.Release();
  operation.in_flight = Quiesce::InFlightGuard();
  if (change.record.tree != nullptr) {
    status = co_await extents_.pages().WriteInTurns(*change.record.tree, &draft->extents);
  } else {
    status = co_await extents_.WriteExtents(change.record, &draft->extents);
  }
  if (!status.ok()) {
    const Status begun = co_await extents_.BeginAnew(operation, nullptr);
    co_return begun.ok() ? status : begun;
  }
  drafts_.Measure(key, change.record, draft);
  status = co_await extents_.BeginAnew(operation, draft);
  if (!status.ok()) co_return status;

  const IndexKey index_key = core_.MakeKey(key);
  SearchResult now;
  status = co_await core_.index.Find(operation, index_key, ReadExtent::kWhole,
                                     core_.context.fabric.NewRoundTrip(), &now);
  if (!status.ok()) co_return status;
  // A version is of one write of the key: what has it is what was seen, wherever it lies by now.
  const bool is_there = now.found && !now.entry.word.is_register() && !core_.IsExpired(now.record);
  const bool any_root = root.empty() || Planted(Bug::kTreeRootNotCompared);
  const bool unchanged = seen == nullptr
                             ? !now.found || (!now.entry.word.is_register() && !is_there)
                             : is_there && LoadRecordHeader(now.record).version == seen->version &&
                                   (any_root || RecordValue(now.record) == root);
  if (!now.busy && (unchanged || Planted(Bug::kExtentsUnchecked))) {
    status = co_await Replace(operation, key, index_key, now, change, draft, done);
    if (!status.ok() || *done) co_return status;
  }
  // Small changes of a tree are faster, every time.
  constexpr uint32_t kRoundsMax = 50;
  const bool is_starved = ++draft->lost_rounds >= kRoundsMax;
  drafts_.Abandon(*draft);
  draft->Forget();
  co_return is_starved ? kContended : Status::Ok();
}

}  // namespace onetrip
