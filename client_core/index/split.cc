// Growing while serving: a full subtable gives half of its keys to a new one (RACE hashing).
//
// The directory entry of the subtable is the split's lock. The child is made with every group
// marked as filling; then each group's header in the parent turns to the new depth, and its entries
// move one by one: FROZEN in the parent (readable, not writable), committed in the child at the
// same place, EMPTY in the parent. When a group of the parent holds none of the child's keys any
// more, the child's group is open. Whoever inserts meanwhile learns from the headers, which it
// reads after its own entry is visible, that its key moves: see PROTOCOLS.md, "Splits".
#include <algorithm>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/index.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// Of a split, at work at the same time: round trips of the network are what it takes its time for.
constexpr uint32_t kGroupsAtOnce = 16;
static_assert(kSubtableGroups % kGroupsAtOnce == 0);

constexpr Status kMapChanges(StatusCode::kUnavailable, "the cluster is changing its map");

}  // namespace

Index::Index(WorkerContext& context, Reclaimer& reclaimer, Allocator& allocator, Engine& engine)
    : context_(context),
      reclaimer_(reclaimer),
      allocator_(allocator),
      engine_(engine),
      directory_(context),
      cache_(context.options.location_cache_bytes) {}

Task<Status> Index::Open() {
  Operation operation;
  Result<DirectoryWord> root = co_await directory_.Refresh(operation, 0);
  if (!root.ok()) co_return root.status();
  if (root.value().is_used()) co_return Status::Ok();

  const SizeClass size_class = SizeClass::For(kSubtableBytes);
  const Result<GlobalAddr> start = co_await allocator_.Allocate(size_class);
  if (!start.ok()) co_return start.status();
  Status status =
      co_await FormatSubtable(operation, start.value(), GroupHeader(0, 0, /*filling=*/false));
  if (!status.ok()) co_return status;
  const DirectoryWord first(start.value(), 0, context_.membership.index, /*locked=*/false);
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, {DirectoryAddr(0), 0, first.bits(), GlobalAddr()});
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won) {
    metrics_.subtable_bytes.Add(kSubtableBytes);
  } else {
    allocator_.FreeUnpublished(start.value(), size_class);
  }
  root = co_await directory_.Refresh(operation, 0);
  co_return root.status();
}

Task<Status> Index::FormatSubtable(Operation& operation, GlobalAddr start, GroupHeader header) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  auto* words = reinterpret_cast<uint64_t*>(round_trip->Reserve(kSubtableBytes));
  for (uint32_t i = 0; i < kSubtableBytes / 8; ++i) {
    words[i] = i % kGroupWords == kGroupHeaderWord ? header.bits() : 0;
  }
  const View& view = context_.view();
  for (int replica = 0; replica < engine_.Replicas(view, start); ++replica) {
    round_trip->Write(view.Locate(start, replica), reinterpret_cast<std::byte*>(words),
                      kSubtableBytes);
  }
  co_return co_await Post(context_, operation, round_trip);
}

Task<Status> Index::WriteGroupHeaders(Operation& operation, GlobalAddr start, uint32_t first_group,
                                      uint32_t count, GroupHeader header) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  for (uint32_t group = first_group; group < first_group + count; ++group) {
    if (!round_trip->HasRoom(kMaxReplicas)) {
      const Status status = co_await Post(context_, operation, round_trip);
      if (!status.ok()) co_return status;
      round_trip = context_.fabric.NewRoundTrip();
    }
    const GlobalAddr at = start + group * kGroupBytes + kGroupHeaderWord * 8;
    const View& view = context_.view();
    for (int replica = 0; replica < engine_.Replicas(view, at); ++replica) {
      round_trip->WriteWord(view.Locate(at, replica), header.bits());
    }
  }
  co_return co_await Post(context_, operation, round_trip);
}

// Two coroutines of one worker would write the same lock word, which SNAPSHOT takes for one writer.
Task<Status> Index::Split(ViewHold::Presence& presence, Subtable table) {
  if (std::find(splitting_.begin(), splitting_.end(), table.entry) != splitting_.end()) {
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
    co_return Status::Ok();
  }
  splitting_.push_back(table.entry);
  const Status status = co_await SplitExclusively(presence, table);
  splitting_.erase(std::find(splitting_.begin(), splitting_.end(), table.entry));
  co_return status;
}

Task<Status> Index::SplitExclusively(ViewHold::Presence& presence, Subtable table) {
  const SizeClass size_class = SizeClass::For(kSubtableBytes);
  const Result<GlobalAddr> start = co_await allocator_.Allocate(size_class);
  if (!start.ok()) co_return start.status();
  const GlobalAddr child_start = start.value();
  Operation operation;
  const LentPresence lent(presence, operation);
  const bool entered = co_await EnterSlots(operation);
  if (!entered) {
    allocator_.FreeUnpublished(child_start, size_class);
    co_return kMapChanges;
  }

  // Lock: whoever swings the directory entry splits.
  const Result<DirectoryWord> seen = co_await directory_.Refresh(operation, table.entry);
  if (!seen.ok()) {
    allocator_.FreeUnpublished(child_start, size_class);
    co_return seen.status();
  }
  const uint32_t depth = seen.value().depth();
  bool mine = !seen.value().locked() && depth == table.depth;
  if (mine && depth == kMaxDepth) {
    allocator_.FreeUnpublished(child_start, size_class);
    co_return Status(StatusCode::kOutOfMemory, "the index cannot grow beyond its directory");
  }
  const DirectoryWord locked(table.start, depth, context_.membership.index, /*locked=*/true);
  if (mine) {
    const Result<SlotOutcome> outcome = co_await engine_.Write(
        operation, {DirectoryAddr(table.entry), seen.value().bits(), locked.bits(), GlobalAddr()});
    if (!outcome.ok()) {
      if (outcome.status().code() != StatusCode::kUnknownOutcome) {
        allocator_.FreeUnpublished(child_start, size_class);
      }
      co_return outcome.status();
    }
    mine = outcome.value().won;
  }
  if (!mine) {
    allocator_.FreeUnpublished(child_start, size_class);
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
    co_return Status::Ok();
  }

  const uint32_t child_entry = table.entry | (1U << depth);
  const GroupHeader parent_header(depth + 1, table.entry, /*filling=*/false);
  const GroupHeader filling(depth + 1, child_entry, /*filling=*/true);
  const GroupHeader open(depth + 1, child_entry, /*filling=*/false);
  Status status =
      co_await Persist(operation, [&] { return FormatSubtable(operation, child_start, filling); });
  if (!status.ok()) co_return status;
  // The child is locked too until it is filled: it must not split before.
  const DirectoryWord child(child_start, depth + 1, context_.membership.index, /*locked=*/true);
  Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, {DirectoryAddr(child_entry), 0, child.bits(), GlobalAddr()});
  if (!outcome.ok()) co_return outcome.status();
  if (!outcome.value().won) {
    co_return Status(StatusCode::kCorrupt, "a directory entry is taken before its split");
  }
  metrics_.subtable_bytes.Add(kSubtableBytes);

  status = co_await Persist(operation, [&] {
    return WriteGroupHeaders(operation, table.start, 0, kSubtableGroups, parent_header);
  });
  if (!status.ok()) co_return status;
  directory_.Keep(child_entry, child);
  directory_.NoteDepth(table.entry, depth + 1);
  // The groups know nothing of each other. Each is at the slots by itself, and may leave them for a
  // hold, which would wait for us in vain.
  operation.presence.LeaveSlots();
  for (uint32_t first = 0; first < kSubtableGroups; first += kGroupsAtOnce) {
    std::vector<Task<void>> groups;
    for (uint32_t group = first; group < first + kGroupsAtOnce; ++group) {
      groups.push_back(FillGroup(operation.presence, table, child_start, group, open, &status));
    }
    co_await WhenAll(std::move(groups));
    if (!status.ok()) co_return status;
  }
  const bool again = co_await EnterSlots(operation);
  if (!again) co_return kMapChanges;

  // Unlock the child first: the parent's next split may only begin when this one is over.
  const DirectoryWord child_open(child_start, depth + 1, context_.membership.index, false);
  outcome = co_await engine_.Write(
      operation, {DirectoryAddr(child_entry), child.bits(), child_open.bits(), GlobalAddr()});
  if (!outcome.ok()) co_return outcome.status();
  const DirectoryWord parent_open(table.start, depth + 1, context_.membership.index, false);
  outcome = co_await engine_.Write(
      operation, {DirectoryAddr(table.entry), locked.bits(), parent_open.bits(), GlobalAddr()});
  if (!outcome.ok()) co_return outcome.status();
  metrics_.splits.Add();
  co_return Status::Ok();
}

Task<bool> Index::EnterSlots(Operation& operation) {
  const bool entered = co_await operation.presence.EnterSlots(
      context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000);
  co_return entered;
}

Task<void> Index::FillGroup(ViewHold::Presence presence, Subtable from, GlobalAddr child,
                            uint32_t group, GroupHeader open, Status* failure) {
  Operation operation;
  operation.presence = std::move(presence);
  const bool entered = co_await EnterSlots(operation);
  Status status = entered ? Status::Ok() : kMapChanges;
  if (status.ok()) {
    status = co_await Persist(operation, [&] {
      return MoveGroup(operation.presence, from, child, group, open.depth() - 1);
    });
  }
  if (status.ok()) {
    status = co_await Persist(operation,
                              [&] { return WriteGroupHeaders(operation, child, group, 1, open); });
  }
  if (!status.ok()) *failure = status;
}

Task<Status> Index::ReadGroupKeys(Operation& operation, Subtable table, uint32_t group,
                                  const GroupWords& words, GroupKeys* keys) {
  return ReadGroupEntries(operation, table, group, words,
                          [keys](uint32_t word, const EntryKey& key, const std::byte* /*record*/) {
                            keys->keyspace[word] = key.keyspace;
                            keys->hash[word] = KeyHash(HashKey(key.keyspace, key.bytes));
                          });
}

Task<Status> Index::ReadGroupEntries(Operation& operation, Subtable table, uint32_t group,
                                     const GroupWords& words, EntryVisitor visit) {
  constexpr uint64_t kPeekBytes = 128;  // holds the keys of most records
  const View& view = context_.view();
  const NodeId node = view.Locate(table.Word(group, 0), 0).node;
  std::array<const std::byte*, kGroupWords> records{};
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    const SlotWord word(words[i]);
    if (i == kGroupHeaderWord || word.is_empty()) continue;
    if (!word.size_class().is_valid() || !view.Contains(word.addr())) {
      co_return Status(StatusCode::kCorrupt, "a slot points outside the pool");
    }
    const uint64_t bytes = std::min(kPeekBytes, word.size_class().bytes());
    records[i] =
        round_trip->Read(RecordReplica(view, word.addr(), node), static_cast<uint32_t>(bytes));
  }
  if (round_trip->empty()) co_return Status::Ok();
  Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    if (records[i] == nullptr) continue;
    const SlotWord word(words[i]);
    const std::byte* record = records[i];
    uint64_t available = std::min(kPeekBytes, word.size_class().bytes());
    RoundTripPtr longer = context_.fabric.NewRoundTrip();
    EntryKey key;
    uint64_t key_bytes = 0;
    if (EntryKeyLength(word, record, available, &key_bytes) &&
        EntryKeyEnd(word, key_bytes) > available) {
      const View& now = context_.view();
      available = EntryKeyEnd(word, key_bytes);
      record =
          longer->Read(RecordReplica(now, word.addr(), node), static_cast<uint32_t>(available));
      status = co_await Post(context_, operation, longer);
      if (!status.ok()) co_return status;
    }
    if (!LoadEntryKey(word, record, available, &key)) {
      co_return Status(StatusCode::kCorrupt, "a key outgrows its object");
    }
    visit(i, key, record);
  }
  co_return Status::Ok();
}

// Moves what bit `bit` of the hash sends to the child. A word that changed while we tried to freeze
// or kill it is looked at again.
Task<Status> Index::MoveGroup(ViewHold::Presence& presence, Subtable from, GlobalAddr to,
                              uint32_t group, uint32_t bit) {
  Operation operation;
  const LentPresence lent(presence, operation);
  operation.pin = reclaimer_.Pin();
  Backoff backoff(context_, operation);
  while (true) {
    bool again = false;
    GroupWords words;
    Status status = co_await ReadGroup(operation, from, group, &words);
    if (!status.ok()) co_return status;
    GroupKeys keys;
    status = co_await ReadGroupKeys(operation, from, group, words, &keys);
    if (!status.ok()) co_return status;
    for (uint32_t i = 0; i < kGroupWords; ++i) {
      const SlotWord word(words[i]);
      if (i == kGroupHeaderWord || word.is_empty()) continue;
      if (((keys.hash[i].bits() >> bit) & 1) == 0) continue;
      status = co_await MoveEntry(operation, {from.Word(group, i), word},
                                  to + group * kGroupBytes + i * 8, &again);
      if (!status.ok()) co_return status;
    }
    if (!again) co_return Status::Ok();
    if (!co_await backoff.Wait()) {
      co_return Status(StatusCode::kUnknownOutcome,
                       "a slot changes faster than a split can move it");
    }
  }
}

Task<Status> Index::MoveEntry(Operation& operation, Entry from, GlobalAddr to, bool* again) {
  if (from.word.kind() == SlotKind::kTentative) {
    // Its inserter will search again, in the child.
    const Result<SlotOutcome> killed = co_await engine_.Write(
        operation, {from.slot, from.word.bits(), NewEmptyWord().bits(), GlobalAddr()});
    if (!killed.ok()) co_return killed.status();
    if (!killed.value().won) *again = true;
    co_return Status::Ok();
  }
  const SlotWord frozen = from.word.WithKind(SlotKind::kFrozen);
  if (from.word.kind() == SlotKind::kFrozen) {
    // By this split, before a node was lost; perhaps it is in the child already.
    from.word = from.word.WithKind(SlotKind::kObject);
  } else if (from.word.kind() != SlotKind::kObject) {
    co_return Status(StatusCode::kCorrupt, "a subtable that is being split holds a foreign word");
  } else {
    const Result<SlotOutcome> froze = co_await engine_.Write(
        operation, {from.slot, from.word.bits(), frozen.bits(), GlobalAddr()});
    if (!froze.ok()) co_return froze.status();
    if (!froze.value().won) {
      *again = true;
      co_return Status::Ok();
    }
  }
  if (Planted(Bug::kSplitEmptiesFirst)) {
    (void)co_await engine_.Write(operation,
                                 {from.slot, frozen.bits(), NewEmptyWord().bits(), GlobalAddr()});
  }
  const Result<SlotOutcome> copied =
      co_await engine_.Write(operation, {to, 0, from.word.bits(), GlobalAddr()});
  if (!copied.ok()) co_return copied.status();
  if (!copied.value().won &&
      SlotWord(copied.value().current).WithKind(SlotKind::kFrozen) != frozen) {
    co_return Status(StatusCode::kCorrupt, "a slot of a subtable that is being filled was taken");
  }
  if (Planted(Bug::kSplitEmptiesFirst)) co_return Status::Ok();
  const Result<SlotOutcome> removed = co_await engine_.Write(
      operation, {from.slot, frozen.bits(), NewEmptyWord().bits(), GlobalAddr()});
  if (!removed.ok()) co_return removed.status();
  if (!removed.value().won) {
    co_return Status(StatusCode::kCorrupt, "a frozen slot changed");
  }
  co_return Status::Ok();
}

}  // namespace onetrip
