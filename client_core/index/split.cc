// Growing while serving: a full subtable gives half of its keys to a new one (RACE hashing).
//
// The directory entry of the subtable says that it is being split. The child is made with every
// group marked as filling; then each group's header in the parent turns to the new depth, and its
// entries move one by one: FROZEN in the parent (readable, not writable), committed in the child at
// the same place, EMPTY in the parent. When a group of the parent holds none of the child's keys
// any more, the child's group is open. A worker that inserts meanwhile learns from the headers,
// which it reads after its own entry is visible, that its key moves.
//
// Every step is a compare-and-swap from a word that never comes back to one that is the same for
// every proposer. So any number of workers may take the steps of one split at the same time, and a
// worker that meets a split that its splitter has left finishes it: see PROTOCOLS.md, "Splits".
#include <absl/cleanup/cleanup.h>

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

// Groups that a split moves at the same time: round trips of the network take most of its time.
constexpr uint32_t kGroupsAtOnce = 16;
static_assert(kSubtableGroups % kGroupsAtOnce == 0);

constexpr Status kMapChanges(StatusCode::kUnavailable, "the cluster is changing its map");

// A split that a worker meets has this number of the longest waits to come to its end; then the
// worker finishes it.
constexpr uint64_t kPatienceTimers = 20;

// Others that split the same subtable may propose the same word.
SlotWrite SharedWrite(GlobalAddr slot, uint64_t v_old, uint64_t v_new) {
  SlotWrite write{slot, v_old, v_new, GlobalAddr()};
  write.shared = true;
  return write;
}

// Returns true if a group's header is `wanted`, or what later splits have made of it.
bool HasReached(GroupHeader header, GroupHeader wanted) {
  if (!header.is_valid() || header.suffix() != wanted.suffix()) return false;
  if (header.depth() != wanted.depth()) return header.depth() > wanted.depth();
  return wanted.filling() || !header.filling();
}

}  // namespace

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

// By CAS, for a WRITE of a worker that is late would take a header back.
Task<Status> Index::TurnGroupHeaders(Operation& operation, GlobalAddr start, uint32_t first_group,
                                     uint32_t count, GroupHeader from, GroupHeader to) {
  for (uint32_t group = first_group; group < first_group + count;) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    for (; group < first_group + count && round_trip->HasRoom(kMaxReplicas); ++group) {
      const GlobalAddr at = start + group * kGroupBytes + kGroupHeaderWord * 8;
      const View& view = context_.view();
      for (int replica = 0; replica < engine_.Replicas(view, at); ++replica) {
        if (Planted(Bug::kSplitHeaderWritten)) {
          round_trip->WriteWord(view.Locate(at, replica), to.bits());
        } else {
          round_trip->Cas(view.Locate(at, replica), from.bits(), to.bits());
        }
      }
    }
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    if (Planted(Bug::kSplitHeaderWritten)) continue;
    for (size_t i = 0; i < round_trip->size(); ++i) {
      const uint64_t found = round_trip->op(i).result;
      if (found != from.bits() && !HasReached(GroupHeader(found), to)) {
        co_return Status(StatusCode::kCorrupt, "a group of a subtable has another one's header");
      }
    }
  }
  co_return Status::Ok();
}

Task<Result<Index::Spare>> Index::TakeSpare() {
  if (!spares_.empty()) {
    const Spare spare = spares_.back();
    spares_.pop_back();
    // A worker's look for lost objects may be past the place where it gets its name.
    allocator_.accounting().KnowOf(spare.start);
    co_return spare;
  }
  const Result<GlobalAddr> start = co_await allocator_.Allocate(SizeClass::For(kSubtableBytes));
  if (!start.ok()) co_return start.status();
  // It may stay here for long without a name, as a spare or in doubt.
  allocator_.KeepBlockOf(start.value());
  co_return Spare{start.value()};
}

void Index::GiveBack(Spare spare) {
  if (spare.start.is_null()) return;
  if (spare.may_be_written) {
    spares_.push_back(spare);
  } else {
    allocator_.FreeUnpublished(spare.start, SizeClass::For(kSubtableBytes));
  }
}

// One coroutine of a worker at a time: two would write the same word, which SNAPSHOT takes for one
// writer.
Task<Status> Index::Split(Quiesce::InFlightGuard& in_flight, Subtable table) {
  const auto [at, is_ours] = splitting_.try_emplace(table.entry);
  if (!is_ours) {
    const std::shared_ptr<SplitUnderWay> other = at->second;
    co_await other->has_asked.Wait();
    if (other->memory.code() == StatusCode::kOutOfMemory) co_return other->memory;
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
    co_return Status::Ok();
  }
  const auto own = at->second = std::make_shared<SplitUnderWay>(context_.executor);
  const absl::Cleanup ended = [&] { splitting_.erase(table.entry); };
  const Allocator::Holder holder(allocator_);
  const Result<Spare> spare = co_await TakeSpare();
  own->memory = spare.status();
  own->has_asked.Set();
  if (!spare.ok()) co_return spare.status();
  co_return co_await SplitFrom(in_flight, table.entry, table.depth, spare.value());
}

Task<Status> Index::FinishSplit(Quiesce::InFlightGuard& in_flight, uint32_t entry) {
  unfinished_.Done(entry);
  if (Planted(Bug::kSplitLeftUnfinished)) co_return Status::Ok();
  const auto [at, is_ours] = splitting_.try_emplace(entry);
  if (!is_ours) co_return Status::Ok();
  const auto own = at->second = std::make_shared<SplitUnderWay>(context_.executor);
  own->has_asked.Set();
  const absl::Cleanup ended = [&] { splitting_.erase(entry); };
  const Allocator::Holder holder(allocator_);
  Status status = co_await SplitFrom(in_flight, entry, std::nullopt, Spare());
  if (status.code() == StatusCode::kNotFound) {
    own->has_asked.Reset();
    const Result<Spare> spare = co_await TakeSpare();
    status = own->memory = spare.status();
    own->has_asked.Set();
    if (spare.ok()) status = co_await SplitFrom(in_flight, entry, std::nullopt, spare.value());
  }
  if (!status.ok()) NoteUnfinished(entry);
  co_return status;
}

// The caller has taken memory for the child if it may need it: no operation waits for memory at a
// slot.
Task<Status> Index::SplitFrom(Quiesce::InFlightGuard& in_flight, uint32_t entry,
                              std::optional<uint32_t> at_depth, Spare spare) {
  Status status;
  {
    Operation operation;
    const LentInFlightGuard lent(in_flight, operation);
    const bool entered = co_await EnterSlots(operation);
    status = kMapChanges;
    if (entered) status = co_await SplitExclusively(operation, entry, at_depth, &spare);
    // The caller may have to wait for memory next.
    operation.in_flight.LeaveSlots();
  }
  GiveBack(spare);
  co_return status;
}

Task<Status> Index::SplitExclusively(Operation& operation, uint32_t entry,
                                     std::optional<uint32_t> at_depth, Spare* spare) {
  const Result<DirectoryWord> seen = co_await directory_.Refresh(operation, entry);
  if (!seen.ok()) co_return seen.status();
  DirectoryWord word = seen.value();
  if (at_depth.has_value()) {
    // The worker that swings the directory entry splits; others wait, and then finish the split.
    bool mine = !word.locked() && word.depth() == *at_depth;
    if (mine && *at_depth == kMaxDepth) {
      co_return Status(StatusCode::kOutOfMemory, "the index cannot grow beyond its directory");
    }
    if (mine) {
      const DirectoryWord locked =
          DirectoryWord::Splitting(word.subtable(), word.depth(), context_.membership.index);
      // An earlier attempt of this worker may go on beside this one.
      const Result<SlotOutcome> outcome = co_await engine_.Write(
          operation, SharedWrite(directory_.AddrOf(entry), word.bits(), locked.bits()));
      if (!outcome.ok()) co_return outcome.status();
      mine = outcome.value().won || outcome.value().current == locked.bits();
      word = mine ? locked : DirectoryWord(outcome.value().current);
    }
    if (!mine) {
      operation.in_flight.LeaveSlots();
      if (word.locked()) NoteUnfinished(word.filling() ? Directory::ParentEntry(entry) : entry);
      co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
      co_return Status::Ok();
    }
  } else if (!word.splitting()) {
    co_return Status::Ok();
  }
  const Status status = co_await TakeSteps(operation, entry, word, spare);
  if (status.ok()) unfinished_.Done(entry);
  if (!status.ok() && status.code() != StatusCode::kNotFound) NoteUnfinished(entry);
  co_return status;
}

void Index::NoteUnfinished(uint32_t entry) {
  const uint64_t patience_ns = kPatienceTimers * context_.options.wait_timer_max_us * 1000;
  unfinished_.Met(entry, context_.executor.NowNs() + patience_ns / 2 +
                             context_.executor.rng().Below(patience_ns / 2 + 1));
}

// PROTOCOLS "Splits", 2 to 5, from wherever others have come to.
Task<Status> Index::TakeSteps(Operation& operation, uint32_t entry, DirectoryWord locked,
                              Spare* spare) {
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kSplit);
  const uint32_t depth = locked.depth();
  const Subtable table{locked.subtable(), entry, depth};
  const uint32_t child_entry = entry | (1U << depth);
  const Result<DirectoryWord> made =
      co_await PublishChild(operation, child_entry, depth + 1, spare);
  if (!made.ok()) co_return made.status();
  const DirectoryWord child = made.value();
  const GlobalAddr child_start = child.subtable();

  Status status = co_await Persist(operation, [&] {
    return TurnGroupHeaders(operation, table.start, 0, kSubtableGroups,
                            GroupHeader(depth, entry, /*filling=*/false),
                            GroupHeader(depth + 1, entry, /*filling=*/false));
  });
  if (!status.ok()) co_return status;
  directory_.Keep(child_entry, child);
  directory_.NoteDepth(entry, depth + 1);
  // The groups know nothing of each other. Each is at the slots by itself, and may leave them for a
  // quiesce, which would wait for us in vain.
  operation.in_flight.LeaveSlots();
  for (uint32_t first = 0; first < kSubtableGroups; first += kGroupsAtOnce) {
    std::vector<Task<void>> groups;
    for (uint32_t group = first; group < first + kGroupsAtOnce; ++group) {
      groups.push_back(
          FillGroup(operation.in_flight, table, child_entry, child_start, group, &status));
    }
    co_await WhenAll(std::move(groups));
    if (!status.ok()) co_return status;
  }
  const bool again = co_await EnterSlots(operation);
  if (!again) co_return kMapChanges;

  // The child first: the parent's next split may only begin when this one is over.
  if (child.filling() || (child.locked() && Planted(Bug::kSplitUnlocksLate))) {
    status = co_await OpenEntry(operation, child_entry, child,
                                DirectoryWord::Open(child_start, depth + 1));
    if (!status.ok()) co_return status;
  }
  status =
      co_await OpenEntry(operation, entry, locked, DirectoryWord::Open(table.start, depth + 1));
  co_return status;
}

// Takes the child that is in the directory already. Else `*spare` becomes the child, and null.
Task<Result<DirectoryWord>> Index::PublishChild(Operation& operation, uint32_t entry,
                                                uint32_t depth, Spare* spare) {
  const Result<DirectoryWord> seen = co_await directory_.Refresh(operation, entry);
  if (!seen.ok()) co_return seen.status();
  const auto doubtful = in_doubt_.find(entry);
  if (doubtful != in_doubt_.end()) {
    allocator_.accounting().KnowOf(doubtful->second);  // as in TakeSpare()
  }
  if (seen.value().is_used()) {
    if (doubtful != in_doubt_.end()) {
      if (doubtful->second != seen.value().subtable()) GiveBack({doubtful->second});
      in_doubt_.erase(doubtful);
    }
    co_return seen.value();
  }
  GlobalAddr start;
  if (doubtful != in_doubt_.end()) {
    // Its entry may appear yet, so it is not written again. Where a region leaves, it moves as
    // every subtable does.
    start = doubtful->second;
  }
  if (start.is_null()) {
    if (spare->start.is_null())
      co_return Status(StatusCode::kNotFound, "a split has no memory yet");
    start = std::exchange(*spare, Spare()).start;
    if (context_.view().IsLeaving(start)) {
      Retire(start);
      co_return Status(StatusCode::kNotFound, "a split has no memory yet");
    }
    const Status status = co_await Persist(operation, [&] {
      return FormatSubtable(operation, start, GroupHeader(depth, entry, /*filling=*/true));
    });
    if (!status.ok()) {
      // A WRITE may be on its way: only one of ours, which comes behind it, may follow.
      GiveBack({start, /*may_be_written=*/true});
      co_return status;
    }
    in_doubt_[entry] = start;
  }
  const DirectoryWord child = DirectoryWord::Filling(start, depth, context_.membership.index);
  const Result<SlotOutcome> outcome =
      co_await engine_.Write(operation, SharedWrite(directory_.AddrOf(entry), 0, child.bits()));
  if (!outcome.ok()) co_return outcome.status();
  in_doubt_.erase(entry);
  if (outcome.value().won) {
    metrics_.subtable_bytes.Add(kSubtableBytes);
    co_return child;
  }
  const DirectoryWord current(outcome.value().current);
  if (current == child) co_return child;
  GiveBack({start});
  if (!current.is_used()) {
    co_return Status(StatusCode::kCorrupt, "a directory entry was emptied");
  }
  co_return current;
}

// Others may have done so, and have begun to split it again.
Task<Status> Index::OpenEntry(Operation& operation, uint32_t entry, DirectoryWord from,
                              DirectoryWord to) {
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, SharedWrite(directory_.AddrOf(entry), from.bits(), to.bits()));
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won && from.splitting()) metrics_.splits.Add();
  if (!outcome.value().won) {
    const DirectoryWord current(outcome.value().current);
    const bool sound =
        current.subtable() == to.subtable() && current.depth() >= to.depth() && !current.filling();
    if (!sound) co_return Status(StatusCode::kCorrupt, "a directory entry went back");
  }
  co_return Status::Ok();
}

Task<Status> Index::ReadDirectoryStretch(Operation& operation, uint32_t first, uint32_t count,
                                         std::vector<uint32_t>* used) {
  std::vector<uint32_t> splitting;
  const Status status =
      co_await directory_.RefreshStretch(operation, first, count, used, &splitting);
  for (const uint32_t entry : splitting) NoteUnfinished(entry);
  co_return status;
}

Task<bool> Index::EnterSlots(Operation& operation) {
  CHECK(operation.in_flight.IsOf(context_.quiesce));
  const bool entered = co_await operation.in_flight.EnterSlots(
      context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000);
  co_return entered;
}

Task<void> Index::FillGroup(Quiesce::InFlightGuard in_flight, Subtable from, uint32_t child_entry,
                            GlobalAddr child, uint32_t group, Status* failure) {
  Operation operation;
  operation.in_flight = std::move(in_flight);
  const bool entered = co_await EnterSlots(operation);
  Status status = entered ? Status::Ok() : kMapChanges;
  if (status.ok() && !Planted(Bug::kSplitOpensEarly)) {
    status = co_await Persist(
        operation, [&] { return MoveGroup(operation.in_flight, from, child, group, from.depth); });
  }
  if (status.ok()) {
    status = co_await Persist(operation, [&] {
      return TurnGroupHeaders(operation, child, group, 1,
                              GroupHeader(from.depth + 1, child_entry, /*filling=*/true),
                              GroupHeader(from.depth + 1, child_entry, /*filling=*/false));
    });
  }
  if (status.ok() && Planted(Bug::kSplitOpensEarly)) {
    status = co_await MoveGroup(operation.in_flight, from, child, group, from.depth);
  }
  if (!status.ok()) *failure = status;
}

// Moves what bit `bit` of the hash sends to the child. A word that changed while we tried to freeze
// or kill it is looked at again.
Task<Status> Index::MoveGroup(Quiesce::InFlightGuard& in_flight, Subtable from, GlobalAddr to,
                              uint32_t group, uint32_t bit) {
  Operation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = reclaimer_.Pin();
  Backoff backoff(context_, operation);
  while (true) {
    bool again = false;
    GroupWords words;
    Status status = co_await ReadGroup(operation, &from, group, &words);
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
    // A claim is its owner's alone. It is committed, and then moves, or withdrawn.
    *again = !Planted(Bug::kSplitPassesClaims);
    co_return Status::Ok();
  }
  if (from.word.kind() != SlotKind::kObject && from.word.kind() != SlotKind::kFrozen) {
    co_return Status(StatusCode::kCorrupt, "a subtable that is being split holds a foreign word");
  }
  // Another worker that takes the same steps proposes the same words. The blind bit would tell them
  // apart: it is of one write only, and not of the move.
  const SlotWord object = from.word.WithKind(SlotKind::kObject);
  const SlotWord frozen = from.word.WithKind(SlotKind::kFrozen);
  if (from.word != frozen) {
    const Result<SlotOutcome> froze =
        co_await engine_.Write(operation, SharedWrite(from.slot, from.word.bits(), frozen.bits()));
    if (!froze.ok()) co_return froze.status();
    if (!froze.value().won && froze.value().current != frozen.bits()) {
      *again = true;
      co_return Status::Ok();
    }
  }
  if (Planted(Bug::kSplitEmptiesFirst)) {
    (void)co_await engine_.Write(operation,
                                 {from.slot, frozen.bits(), NewEmptyWord().bits(), GlobalAddr()});
  }
  const Result<SlotOutcome> copied =
      co_await engine_.Write(operation, SharedWrite(to, 0, object.bits()));
  if (!copied.ok()) co_return copied.status();
  const bool is_there = copied.value().won || SlotWord(copied.value().current) == object;
  if (Planted(Bug::kSplitEmptiesFirst)) co_return Status::Ok();
  if (!is_there) {
    // Another worker has moved it, and clients have gone on; then it has left the parent, too.
    *again = true;
    co_return Status::Ok();
  }
  // Only another worker that moves the entry can win this CAS: no other one touches a frozen entry.
  const Result<SlotOutcome> removed = co_await engine_.Write(
      operation, {from.slot, frozen.bits(), NewEmptyWord().bits(), GlobalAddr()});
  co_return removed.ok() ? Status::Ok() : removed.status();
}

}  // namespace onetrip
