// Regions that are given up: what lives there is written anew elsewhere, no matter which worker has
// its block (PROTOCOLS, "Regions that are given up").
//
// Registers become records first, as before a move. Then a record is restated, in memory that
// leaves nothing behind: no worker allocates where regions leave. Extents are copied, one at a
// time. Each is an ordinary write of the same version.
#include "client_core/kv/chores/leave.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// An object that keeps a block from becoming free by then may be lost.
constexpr uint32_t kLooksInVain = 3;

constexpr Status kNotARoot(StatusCode::kCorrupt, "a slot names a root that is none");

}  // namespace

Task<void> Leaver::LeaveGroup(Subtable table, uint32_t group, RegistersLeft* left,
                              Status* failure) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  operation.pin = core_.reclaimer.Pin();
  GroupWords words;
  Status status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  std::vector<Entry> dropped;
  const bool filling = GroupHeader(words[kGroupHeaderWord]).filling();
  for (uint32_t i = 0; i < kGroupWords && status.ok() && !filling; ++i) {
    const SlotWord word(words[i]);
    // A claim there is committed or withdrawn by the time of the next walk.
    const bool is_there = i != kGroupHeaderWord && word.is_dropped() &&
                          core_.context.view().Contains(word.addr()) &&
                          core_.context.view().IsLeaving(word.addr());
    if (is_there) dropped.push_back({table.Word(group, i), word});
  }
  for (uint64_t& bits : words) {
    const SlotWord word(bits);
    // An entry that is on its way is met at its new place.
    if (word.kind() != SlotKind::kObject || word.is_register()) bits = 0;
  }
  std::vector<ListedRegister> listed;
  const auto list = [&](uint32_t i, const EntryKey& key, const std::byte* record) {
    const SlotWord word(words[i]);
    RecordOrigin origin;
    // Wherever the register is: its buffers may be there.
    const bool has_origin = RecordHasOrigin(record, RecordKeyEnd(0), &origin);
    const bool is_there = core_.context.view().IsLeaving(word.addr()) || has_origin;
    // Only the list of a root tells where its extents are.
    if (!is_there && !word.size_class().is_root()) return;
    listed.push_back({word, key.keyspace, std::string(key.bytes)});
  };
  if (status.ok()) {
    status = co_await core_.index.ReadGroupEntries(operation, table, group, words, list);
  }
  operation.pin.Release();
  for (const Entry& one : dropped) {
    if (status.ok()) status = co_await LeaveDropped(operation, one);
  }
  for (const ListedRegister& one : listed) {
    if (!status.ok()) break;
    status = co_await LeaveKey(operation.in_flight, one);
    const bool is_short = status.code() == StatusCode::kOutOfMemory;
    const bool is_odd = status.code() == StatusCode::kCorrupt;
    if (!is_short && !is_odd) continue;
    if (is_odd && left->failure.ok()) left->failure = status;
    left->full = left->full || is_short;
    left->any = true;
    status = Status::Ok();
  }
  core_.AfterWrite();
  if (!status.ok()) *failure = status;
}

// Only its block tells the size class of a dropped register.
Task<Status> Leaver::LeaveDropped(Operation& operation, Entry dropped) {
  const GlobalAddr addr = dropped.word.addr();
  const GlobalAddr at(addr.region(), offsetof(RegionHeader, blocks) + addr.block() * 8);
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const uint64_t* bits = round_trip->ReadWord(core_.context.view().Locate(at, 0));
  const Status status = co_await Post(core_.context, operation, round_trip);
  const BlockEntry block(status.ok() ? *bits : 0);
  if (block.use() == BlockEntry::Use::kOwned && block.size_class().is_valid()) {
    co_await ends_.FreeDropped(operation.in_flight, dropped, block.size_class());
  }
  co_return status;
}

Task<Status> Leaver::LeaveKey(Quiesce::InFlightGuard& in_flight, const ListedRegister& listed) {
  const IndexKey key = IndexKey::Make(listed.keyspace, listed.key);
  RegisterOperation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = core_.reclaimer.Pin();
  const Allocator::Holder holder(core_.allocator);
  Draft draft;
  const absl::Cleanup unused = [&] {
    if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
  };
  Backoff backoff(core_.context, operation);
  while (true) {
    // The cluster waits for it, or may.
    if (core_.context.quiesce.held()) co_return kHeld;
    SearchResult search;
    Status status = co_await core_.index.Find(operation, key, ReadExtent::kWhole,
                                              core_.context.fabric.NewRoundTrip(), &search);
    const SlotWord word = search.entry.word;
    if (!status.ok() || !search.found || word.is_register()) co_return status;
    bool again = search.busy;
    if (!search.busy && word.size_class().is_root()) {
      status = co_await LeaveRoot(operation, key, search, &again);
      if (!status.ok() || !again) co_return status;
      // One is done: there may be hundreds, and what is retired waits for pins.
      operation.deadline_ns = 0;
      operation.pin.Release();
      operation.pin = core_.reclaimer.Pin();
    } else if (!search.busy) {
      RecordOrigin origin;
      const bool is_there = core_.context.view().IsLeaving(word.addr()) ||
                            RecordHasOrigin(search.record, RecordKeyEnd(0), &origin);
      if (!is_there) co_return Status::Ok();
      const RecordHeader header = LoadRecordHeader(search.record);
      const SizeClass size_class =
          SizeClass::For(RecordBytes(key.bytes.size(), header.value_bytes));
      if (!size_class.is_valid()) co_return Status(StatusCode::kCorrupt, "a record of no class");
      if (draft.addr.is_null() || draft.size_class.bytes() < size_class.bytes()) {
        if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
        draft.addr = GlobalAddr();
        const Result<GlobalAddr> addr = co_await AllocateToLeave(size_class);
        if (!addr.ok()) co_return addr.status();
        draft.addr = addr.value();
        draft.size_class = size_class;
      }
      bool done = false;
      status = co_await records_.RestateRecord(operation, key, search, &draft, &done);
      if (done && status.ok()) core_.metrics.objects_moved.Add();
      if (!status.ok() || done) co_return status;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

// Without any, the next walk may find what others give and compaction makes till then.
Task<Result<GlobalAddr>> Leaver::AllocateToLeave(SizeClass size_class) {
  Result<GlobalAddr> addr = co_await core_.allocator.AllocatePinned(size_class);
  if (addr.status().code() == StatusCode::kOutOfMemory) core_.allocator.TellShortage(size_class);
  co_return addr;
}

Task<Status> Leaver::LeaveRoot(RegisterOperation& operation, const IndexKey& key,
                               const SearchResult& search, bool* more) {
  *more = false;
  const SlotWord root = search.entry.word;
  if (!RecordIsIntact(search.record, root.size_class().bytes())) co_return kNotARoot;
  TreeRoot tree;
  if (LoadTreeRoot(RecordValue(search.record), &tree)) {
    co_return co_await LeaveTree(operation, key, search, tree, more);
  }
  ExtentList list;
  if (!LoadExtentList(RecordValue(search.record), &list)) co_return kNotARoot;
  const auto is_there = [this](const ExtentRef& ref) {
    return core_.context.view().IsLeaving(ref.addr);
  };
  const auto extent = std::find_if(list.extents.begin(), list.extents.end(), is_there);
  const bool has_extent = extent != list.extents.end();
  if (!has_extent && !core_.context.view().IsLeaving(root.addr())) co_return Status::Ok();
  Draft draft;
  ExtentRef copy;
  const absl::Cleanup unused = [&] {
    if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
    if (!copy.addr.is_null()) core_.allocator.Retire(copy.addr, copy.size_class);
  };
  Result<GlobalAddr> addr = co_await AllocateToLeave(root.size_class());
  if (!addr.ok()) co_return addr.status();
  draft.addr = addr.value();
  draft.size_class = root.size_class();
  ExtentRef old;
  if (has_extent) {
    old = *extent;
    addr = co_await AllocateToLeave(old.size_class);
    if (!addr.ok()) co_return addr.status();
    copy = {.addr = addr.value(), .size_class = old.size_class};
    const Status copied = co_await CopyExtent(operation, old, copy);
    if (!copied.ok()) co_return copied;
    *extent = copy;
  }
  const std::string value = EncodeExtentList(list);
  const std::string_view bytes(value);
  bool done = false;
  bool won = false;
  const Status status =
      co_await records_.RestateRecord(operation, key, search, &draft, &done, &bytes, &won);
  // A slot may name it.
  if (won || status.code() == StatusCode::kUnknownOutcome) copy.addr = GlobalAddr();
  if (won && has_extent) core_.allocator.Retire(old.addr, old.size_class);
  *more = done || status.ok();
  co_return status;
}

Task<Status> Leaver::LeaveTree(RegisterOperation& operation, const IndexKey& key,
                               const SearchResult& search, const TreeRoot& root, bool* more) {
  constexpr size_t kPagesAtOnce = 200;
  LoadedPages pages(core_.pages);
  std::optional<Tree> tree;
  size_t renewed = 0;
  while (true) {
    tree.emplace(root, pages, core_.context.options.tree);
    renewed = tree->Renew(
        [this](const PageRef& page) { return core_.context.view().IsLeaving(page.addr); },
        kPagesAtOnce);
    if (tree->is_damaged()) co_return kNotARoot;
    if (tree->missing().empty()) break;
    const Status status = co_await pages_.Load(operation, tree->missing(), &pages);
    if (!status.ok()) co_return status;
  }
  const bool is_there = core_.context.view().IsLeaving(search.entry.word.addr());
  if (renewed == 0 && !is_there) co_return Status::Ok();
  Draft draft;
  std::vector<ExtentRef> places;
  const absl::Cleanup unused = [&] {
    if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
    for (const ExtentRef& place : places) core_.allocator.Retire(place.addr, place.size_class);
  };
  for (const uint32_t bytes : tree->NewPageBytes()) {
    const Result<GlobalAddr> addr = co_await AllocateToLeave(SizeClass::For(bytes));
    if (!addr.ok()) co_return addr.status();
    places.push_back({.addr = addr.value(), .size_class = SizeClass::For(bytes)});
  }
  const std::vector<NewPage> made = TreePages::Place(*tree, places);
  Status status = co_await pages_.Write(operation, made);
  if (!status.ok()) co_return status;
  const std::string value = tree->EncodeRoot();
  const std::string_view bytes(value);
  draft.size_class = SizeClass::ForRoot(RecordBytes(key.bytes.size(), value.size()));
  const Result<GlobalAddr> addr = co_await AllocateToLeave(draft.size_class);
  if (!addr.ok()) co_return addr.status();
  draft.addr = addr.value();
  bool done = false;
  bool won = false;
  status = co_await records_.RestateRecord(operation, key, search, &draft, &done, &bytes, &won);
  // A slot may name them.
  if (won || status.code() == StatusCode::kUnknownOutcome) places.clear();
  if (won) pages_.RetireAll(tree->dropped());
  *more = done || status.ok();
  co_return status;
}

// All of the object: what an extent holds says nothing of where it lies.
Task<Status> Leaver::CopyExtent(Operation& operation, const ExtentRef& from, const ExtentRef& to) {
  const auto end = static_cast<uint32_t>(from.size_class.bytes());
  const uint32_t piece = std::max<uint32_t>(core_.context.options.turn_bytes, 64);
  for (uint32_t offset = 0; offset < end; offset += piece) {
    const uint32_t bytes = std::min(piece, end - offset);
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    const std::byte* read =
        round_trip->Read(core_.context.view().Locate(from.addr + offset, 0), bytes);
    Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) co_return status;
    round_trip->ClearOps();
    for (int i = 0; i < core_.engine.Replicas(core_.context.view(), to.addr); ++i) {
      round_trip->Write(core_.context.view().Locate(to.addr + offset, i), read, bytes);
    }
    status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) co_return status;
    if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
    if (core_.context.quiesce.is_impatient()) co_return kHeld;
  }
  co_return Status::Ok();
}

void Leaver::UseView(const View& view) {
  if (std::exchange(looks_.regions, view.leaving) == view.leaving) return;
  lost_.NoteLeaving();
  looks_.in_vain = 0;
  looks_.next_ns =
      core_.context.executor.NowNs() + 2 * core_.context.options.account_rest_us * 1000;
}

void Leaver::SeeToLeavingIfDue() {
  if (core_.context.view().leaving == 0 || looks_.under_way || core_.stopping || core_.held() ||
      core_.context.executor.NowNs() < looks_.next_ns) {
    return;
  }
  core_.context.executor.Spawn(core_.gate, SeeToLeaving());
}

// Open blocks get an owner, which looks for lost objects there; so do blocks that were granted to
// this worker by an answer that never came.
Task<void> Leaver::SeeToLeaving() {
  looks_.under_way = true;
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  bool more = begun;
  while (more && core_.context.view().leaving != 0 && !core_.held() && !core_.stopping) {
    more = co_await core_.allocator.grants().AcquireLeaving();
    if (more) co_await core_.context.executor.Yield();
  }
  const View& view = core_.context.view();
  if (begun && view.leaving != 0 && !core_.held()) {
    const auto first = static_cast<uint32_t>(view.regions.size() - view.leaving);
    (void)co_await core_.allocator.claims().ClaimGranted(operation, first);
  }
  const size_t before = std::exchange(looks_.blocks, core_.allocator.leaving_blocks());
  looks_.in_vain = looks_.blocks < before ? 0 : looks_.in_vain + 1;
  if (looks_.blocks != 0 && looks_.in_vain >= kLooksInVain) lost_.NoteMayHaveLost();
  looks_.next_ns = core_.context.executor.NowNs() + core_.context.options.account_rest_us * 1000;
  looks_.under_way = false;
}

}  // namespace onetrip
