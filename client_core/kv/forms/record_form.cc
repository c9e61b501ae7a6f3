#include "client_core/kv/forms/record_form.h"

#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kNotIntact(StatusCode::kCorrupt, "a record fails its checksum");

bool IsIntact(const SearchResult& search) {
  return RecordIsIntact(search.record, search.entry.word.size_class().bytes());
}

}  // namespace

// Linearized when the slot is read from the primary, or, of an expired record, when the slot is
// emptied.
MaybeTask<Result<Step>> RecordForm::Get(RegisterOperation& operation, const FoundKey& found,
                                        ValueRange range, Room* room, ReadResult* result) {
  if (!IsIntact(found.search)) return Result<Step>(kNotIntact);
  if (core_.IsExpired(found.search.record)) [[unlikely]] {
    return GetExpired(operation, found);
  }
  Records::FillFromRecord(found.search, result);
  if (found.search.entry.word.size_class().is_root()) [[unlikely]] {
    return GetLarge(operation, range, room, result);
  }
  return Result<Step>(Step::kDone);
}

Task<Result<Step>> RecordForm::GetExpired(Operation& operation, const FoundKey& found) {
  if (found.search.busy) co_return Step::kWait;
  bool removed = false;
  const Status status = co_await records_.RemoveExpired(operation, found.key.database,
                                                        found.index_key, found.search, &removed);
  core_.AfterWrite();
  if (!status.ok()) co_return status;
  co_return removed ? Step::kDone : Step::kAgain;
}

Task<Result<Step>> RecordForm::GetLarge(Operation& operation, ValueRange range, Room* room,
                                        ReadResult* result) {
  const Status status = co_await extents_.ReadFromExtents(operation, range, room, result);
  if (!status.ok()) co_return status;
  co_return Step::kDone;
}

Task<Result<Step>> RecordForm::Overwrite(RegisterOperation& operation, const FoundKey& found,
                                         const NewRecord& /*record*/, Draft* draft) {
  return records_.OverwriteBlindly(operation, found.index_key, found.search, draft);
}

Task<Result<Step>> RecordForm::Delete(RegisterOperation& operation, const FoundKey& found,
                                      bool* existed) {
  bool removed = false;
  if (core_.IsExpired(found.search.record)) {
    const Status status = co_await records_.RemoveExpired(operation, found.key.database,
                                                          found.index_key, found.search, &removed);
    if (!status.ok()) co_return status;
    co_return removed ? Step::kDone : Step::kAgain;
  }
  const Status status = co_await records_.TryRemove(operation, found.search, &removed);
  if (!status.ok()) co_return status;
  if (!removed && !Planted(Bug::kDeleteLoserCounts)) co_return Step::kAgain;
  *existed = true;
  core_.hot.Forget(found.index_key.hash);
  counters_.Count(found.key.database, found.index_key.keyspace, -1);
  co_return Step::kDone;
}

Task<Status> RecordForm::Sweep(Operation& operation, Entry entry, bool* gone) {
  SearchResult found;
  found.entry = entry;
  found.bytes = core_.context.fabric.NewRoundTrip();
  found.record = found.bytes->Read(core_.context.view().Locate(entry.word.addr(), 0),
                                   EntryKeyEnd(entry.word, 0));
  const Status status = co_await Post(core_.context, operation, found.bytes);
  if (!status.ok()) co_return status;
  co_return co_await records_.TryRemove(operation, found, gone);
}

Sight RecordForm::See(const std::byte* image, uint64_t now_ms, KeyFacts* facts) const {
  const RecordHeader header = LoadRecordHeader(image);
  if (header.deadline_ms != 0 && now_ms >= header.deadline_ms) return Sight::kGone;
  *facts = {header.deadline_ms, header.type};
  return Sight::kThere;
}

Task<Status> RecordForm::NameMemory(OrphanInventory& inventory, Operation& operation,
                                    SlotWord word) {
  return word.size_class().is_root() ? NameExtents(inventory, operation, word)
                                     : NameOrigin(inventory, operation, word);
}

// A record that took a register's place names it until it is replaced itself.
Task<Status> RecordForm::NameOrigin(OrphanInventory& inventory, Operation& operation,
                                    SlotWord word) {
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const auto bytes =
      static_cast<uint32_t>(std::min<uint64_t>(word.size_class().bytes(), RecordKeyEnd(0)));
  const std::byte* record = round_trip->Read(core_.context.view().Locate(word.addr(), 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  RecordOrigin origin;
  if (status.ok() && RecordHasOrigin(record, bytes, &origin)) {
    const GlobalAddr addr = SlotWord(origin.register_word).addr();
    inventory.blocks.Name(addr);
    if (core_.registers) core_.registers->cache.SeeAny(addr);
  }
  co_return status;
}

// Wherever the root is: of blocks that were one worker's, some may have been taken over already.
Task<Status> RecordForm::NameExtents(OrphanInventory& inventory, Operation& operation,
                                     SlotWord root) {
  if (Planted(Bug::kExtentsNotNamed)) co_return Status::Ok();
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const auto bytes = static_cast<uint32_t>(root.size_class().bytes());
  const std::byte* record = round_trip->Read(core_.context.view().Locate(root.addr(), 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  if (!status.ok()) co_return status;
  constexpr Status kNone(StatusCode::kCorrupt, "a slot names a root that is none");
  if (!RecordIsIntact(record, bytes)) co_return kNone;
  TreeRoot tree;
  if (LoadTreeRoot(RecordValue(record), &tree)) {
    if (Planted(Bug::kPagesNotNamed)) co_return Status::Ok();
    co_return co_await extents_.pages().ForEach(
        operation, tree, tree.tops.size(), [&inventory](const PageName& name, bool /*is_leaf*/) {
          inventory.blocks.Name(name.page.addr);
        });
  }
  ExtentList list;
  if (!LoadExtentList(RecordValue(record), &list)) co_return kNone;
  for (const ExtentRef& ref : list.extents) inventory.blocks.Name(ref.addr);
  co_return status;
}

}  // namespace onetrip
